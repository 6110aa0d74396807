from __future__ import annotations

from pathlib import Path

import pytest

from reward_server.sandbox.machine_memory import memory_bytes

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "groups").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(f"MemTotal:  {8 * GIB >> 10} kB\nMemFree: 1 kB\n")
    return tmp_path


def limit(machine: Path, folder: str, text: str, file: str = "memory.max") -> None:
    path = machine / "groups" / folder
    path.mkdir(parents=True, exist_ok=True)
    (path / file).write_text(text)


def read(machine: Path, membership: str) -> int:
    (machine / "proc" / "self" / "cgroup").write_text(membership)
    return memory_bytes(machine / "proc", machine / "groups")


def test_without_groups_it_is_the_machines(machine: Path) -> None:
    assert memory_bytes(machine / "proc", machine / "groups") == 8 * GIB
    assert read(machine, "0::/\n") == 8 * GIB


def test_a_container_sees_its_own_limit(machine: Path) -> None:
    limit(machine, "", f"{2 * GIB}\n")
    assert read(machine, "0::/\n") == 2 * GIB


def test_the_tightest_group_above_us_counts(machine: Path) -> None:
    limit(machine, "a", f"{3 * GIB}\n")
    limit(machine, "a/b", "max\n")
    assert read(machine, "0::/a/b\n") == 3 * GIB


def test_the_layout_with_one_tree_per_controller_is_read(machine: Path) -> None:
    limit(machine, "memory/a", f"{GIB}\n", "memory.limit_in_bytes")
    assert read(machine, "4:memory:/a\n3:cpu:/\n0::/\n") == GIB


def test_this_machine_has_some() -> None:
    assert memory_bytes() > 64 << 20
    assert Path("/proc/meminfo").exists()
