"""Both layouts of control groups, played by plain files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from reward_server.sandbox.bubblewrap.cgroups import (
    CgroupCounters,
    CgroupV1,
    CgroupV2,
    NoCgroup,
    make_group,
    missing_limits,
    remove_stale_groups,
)

MIB = 1 << 20
V1 = ("memory", "pids", "cpuset", "cpuacct")


def prepare_v1(root: Path, name: str = "n") -> None:
    """Lay out the files that the kernel would make with the folders."""
    for controller in V1:
        (root / controller / "reward_server" / name).mkdir(parents=True)
    for folder in (Path(), Path("reward_server"), Path("reward_server", name)):
        for file, text in (("cpuset.cpus", "0-3"), ("cpuset.mems", "0")):
            path = root / "cpuset" / folder / file
            path.write_text(text if folder == Path() else "")
    write_v1(root, name)


def write_v1(root: Path, name: str = "n", oom: int = 0, refused: int = 0, peak: int = 0) -> None:
    memory = root / "memory" / "reward_server" / name
    (memory / "memory.oom_control").write_text(f"oom_kill_disable 0\nunder_oom 0\noom_kill {oom}\n")
    (memory / "memory.max_usage_in_bytes").write_text(f"{peak}\n")
    (memory / "memory.failcnt").write_text("4\n")
    (memory / "memory.stat").write_text("cache 9\nrss 8\nshmem 7\ntotal_rss 8\n")
    (root / "pids" / "reward_server" / name / "pids.events").write_text(f"max {refused}\n")
    (root / "cpuacct" / "reward_server" / name / "cpuacct.usage").write_text("2500000000\n")


V2_FILES = {
    "memory.stat": "anon 8\nfile 9\nshmem 7\n",
    "memory.events": "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\n",
    "pids.events": "max 5\n",
    "cpu.stat": "usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n",
}


@pytest.fixture
def v2_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A unified tree whose folders are born with their files, as the kernel's are."""
    prepare_v2(tmp_path)
    mkdir = Path.mkdir

    def make(
        path: Path, mode: int = 0o777, *, parents: bool = False, exist_ok: bool = False
    ) -> None:
        mkdir(path, mode, parents, exist_ok)
        for file, text in V2_FILES.items():
            (path / file).write_text(text)

    monkeypatch.setattr(Path, "mkdir", make)
    return tmp_path


def prepare_v2(root: Path, controllers: str = "cpuset cpu io memory pids") -> None:
    (root / "cgroup.controllers").write_text(controllers)
    (root / "cgroup.subtree_control").write_text("")


def test_v1_sets_its_limits_and_counts(tmp_path: Path) -> None:
    prepare_v1(tmp_path)
    group = CgroupV1(tmp_path, "n", [1, 3])
    cpuset = tmp_path / "cpuset" / "reward_server"
    assert (cpuset / "cpuset.cpus").read_text() == "0-3"
    assert (cpuset / "n" / "cpuset.cpus").read_text() == "1,3"
    assert (cpuset / "n" / "cpuset.mems").read_text() == "0"
    assert len(group.procs_files) == len(V1)
    write_v1(tmp_path, oom=2, refused=7, peak=9)
    assert group.read() == CgroupCounters(2, 7, 2.5, 9, 4)
    assert group.leftover_bytes() == 7
    group.limit(100 * MIB, 10)
    memory = tmp_path / "memory" / "reward_server" / "n"
    assert int((memory / "memory.limit_in_bytes").read_text()) >= 100 * MIB
    assert group.read().peak_memory_bytes == 0, "the peak is that of one run"
    assert int((tmp_path / "pids" / "reward_server" / "n" / "pids.max").read_text()) >= 10
    assert not (memory / "memory.memsw.limit_in_bytes").exists()
    group.remove()


@pytest.mark.parametrize(("old", "new"), [(100, 200), (200, 100)])
def test_v1_limits_move_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: int, new: int
) -> None:
    """Memory may never be above memory and swap together: the kernel refuses that order."""
    prepare_v1(tmp_path)
    memory = tmp_path / "memory" / "reward_server" / "n"
    plain, with_swap = memory / "memory.limit_in_bytes", memory / "memory.memsw.limit_in_bytes"
    plain.write_text("1")
    with_swap.write_text("1")
    group = CgroupV1(tmp_path, "n", [0])
    write = Path.write_text

    def kernel(path: Path, text: str) -> int:
        if path == plain and int(text) > int(with_swap.read_text()):
            raise OSError
        if path == with_swap and int(text) < int(plain.read_text()):
            raise OSError
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", kernel)
    for value in (old, new):
        group.limit(value * MIB, 10)
        assert plain.read_text() == with_swap.read_text()
        assert value * MIB <= int(plain.read_text()) < (value + 64) * MIB
    group.remove()


def test_v2_sets_its_limits_and_counts(v2_root: Path) -> None:
    group = CgroupV2(v2_root, "n", [0, 2])
    folder = v2_root / "reward_server" / "n"
    for place in (v2_root, v2_root / "reward_server"):
        assert set((place / "cgroup.subtree_control").read_text().split()) == {
            "+memory", "+pids", "+cpuset", "+cpu",
        }  # fmt: skip
    assert (folder / "cpuset.cpus").read_text() == "0,2"
    assert group.procs_files == (str(folder / "cgroup.procs"),)
    assert group.read() == CgroupCounters(3, 5, 1.5, None, 9)
    assert group.leftover_bytes() == 7
    group.limit(100 * MIB, 10)
    assert int((folder / "memory.max").read_text()) >= 100 * MIB
    assert int((folder / "pids.max").read_text()) >= 10
    assert (folder / "memory.swap.max").read_text() == "0"
    group.remove()


def test_counters_that_are_not_there_count_nothing(tmp_path: Path) -> None:
    prepare_v1(tmp_path)
    group = CgroupV1(tmp_path, "n", [0])
    memory = tmp_path / "memory" / "reward_server" / "n"
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\n")
    (tmp_path / "pids" / "reward_server" / "n" / "pids.events").write_text("")
    assert group.read() == CgroupCounters(0, 0, 2.5, 0, 4)
    group.remove()


def test_a_busy_or_removed_cgroup_does_not_fail_the_shutdown(v2_root: Path) -> None:
    group, folder = CgroupV2(v2_root, "n", [0]), v2_root / "reward_server" / "n"
    group.remove()  # not empty here, as with processes in it
    assert folder.exists()
    for file in folder.iterdir():
        file.unlink()
    group.remove()
    assert not folder.exists()
    group.remove()


@pytest.mark.parametrize("kind", [CgroupV1, CgroupV2])
def test_a_removed_group_touches_no_file_that_is_not_its_own(
    tmp_path: Path, v2_root: Path, kind: type[CgroupV1 | CgroupV2]
) -> None:
    prepare_v1(tmp_path)
    group = kind(v2_root, "n", [0])
    group.limit(MIB, 1)
    group.remove()
    for number in range(8):  # these get the numbers that the group had
        (tmp_path / f"innocent-{number}").write_text("data")
    files = [(tmp_path / f"innocent-{number}").open("r+") for number in range(8)]
    group.remove()
    with contextlib.suppress(OSError):
        group.limit(MIB, 1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        group.read()
    for file in files:
        with file:
            assert file.read() == "data"


def test_missing_limits_are_listed(tmp_path: Path) -> None:
    assert any("memory" in text for text in missing_limits(tmp_path))
    group = make_group(0, [0], tmp_path)
    assert isinstance(group, NoCgroup)
    group.limit(1, 1)
    group.remove()
    assert (group.procs_files, group.read()) == ((), CgroupCounters())


@pytest.mark.parametrize("controllers", ["", "cpu io", "memory pids cpu"])
def test_a_unified_tree_without_our_controllers_is_no_use(tmp_path: Path, controllers: str) -> None:
    prepare_v2(tmp_path, controllers)
    assert missing_limits(tmp_path)


def test_a_unified_tree_with_them_is(v2_root: Path) -> None:
    assert missing_limits(v2_root) == ()
    group = make_group(0, [0], v2_root)
    assert isinstance(group, CgroupV2)
    group.remove()


def test_one_tree_per_controller_needs_them_all(tmp_path: Path) -> None:
    for controller in V1[:-1]:
        (tmp_path / controller).mkdir()
    assert missing_limits(tmp_path)
    (tmp_path / V1[-1]).mkdir()
    assert missing_limits(tmp_path) == ()


def test_groups_of_two_sandboxes_never_share_a_name(v2_root: Path) -> None:
    one, other = make_group(0, [0], v2_root), make_group(0, [0], v2_root)
    assert one.procs_files != other.procs_files
    assert Path(one.procs_files[0]).parent.name.startswith(f"{os.getpid()}-")
    one.remove()
    other.remove()


def test_only_groups_of_the_dead_are_stale(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    folders = [tmp_path / "reward_server", *(tmp_path / name / "reward_server" for name in V1)]
    for folder in folders:
        for name in (f"{child}-0", f"{child}-1-ab", f"{os.getpid()}-0", "other-0", "plain"):
            (folder / name).mkdir(parents=True)
    (folders[0] / f"{child}-9").mkdir()
    (folders[0] / f"{child}-9" / "busy").write_text("")
    remove_stale_groups(tmp_path)
    for folder in folders:
        kept = {path.name for path in folder.iterdir()}
        assert kept - {f"{child}-9"} == {f"{os.getpid()}-0", "other-0", "plain"}
    assert (folders[0] / f"{child}-9").exists()


def test_a_machine_without_groups_has_no_stale_ones(tmp_path: Path) -> None:
    remove_stale_groups(tmp_path / "nowhere")


def test_cores_can_be_assigned_for_one_run(v2_root: Path) -> None:
    group = make_group(0, [0], v2_root)
    (folder,) = (v2_root / "reward_server").glob("*-0-*")
    for cores, text in (((0, 2), "0,2"), ((0,), "0")):
        group.assign(cores)
        assert (folder / "cpuset.cpus").read_text() == text
    group.remove()


@pytest.mark.parametrize("kind", [CgroupV1, CgroupV2])
def test_files_of_the_zygote_itself_are_not_left_by_a_box(
    kind: type[CgroupV1 | CgroupV2], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind is CgroupV1:
        prepare_v1(tmp_path)
        (tmp_path / "pids" / "reward_server" / "n" / "pids.current").write_text("2")
        stat = tmp_path / "memory" / "reward_server" / "n" / "memory.stat"
    else:
        request.getfixturevalue("v2_root")
        stat = tmp_path / "reward_server" / "n" / "memory.stat"
    group = kind(tmp_path, "n", [0])
    if kind is CgroupV2:
        (stat.parent / "pids.current").write_text("2")
    found = []
    stat.write_text("shmem 50\n")
    group.settle()
    for shared in (50, 80, 40, 50):  # settled while a box was still going, it finds that out
        stat.write_text(f"shmem {shared}\n")
        found.append(group.leftover_bytes())
    assert found == [0, 30, 0, 10]
    group.remove()
