from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reward_server.sandbox.pressure import PressureMonitor, PressureSample, lost_share

if TYPE_CHECKING:
    from pathlib import Path

CALM = PressureSample(at=0.0, cpu=0.0, memory=0.0, busy=0.0, stolen=0.0)


def after(**changes: float | None) -> PressureSample:
    values = {"at": 10.0, "cpu": 0.0, "memory": 0.0, "busy": 10.0, "stolen": 0.0, **changes}
    return PressureSample(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reading", "own_seconds", "share"),
    [
        (after(), 10.0, 0.0),
        (after(cpu=5.0), 5.0, 0.5),
        (after(cpu=9.0), 10.0, 0.0),  # its own threads, or other slots, waited
        (after(cpu=0.0), 5.0, 0.0),  # others worked while it slept
        (after(cpu=5.0, busy=6.0), 5.0, 0.1),
        (after(stolen=3.0), 7.0, 0.3),
        (after(memory=2.0), 10.0, 0.2),
        (after(cpu=99.0, busy=99.0), 0.0, 1.0),
    ],
)
def test_only_what_others_took_counts(
    reading: PressureSample, own_seconds: float, share: float
) -> None:
    found = lost_share(CALM, reading, own_seconds, was_full=False)
    assert found == pytest.approx(share, abs=0.01)


def test_a_box_at_its_own_memory_limit_stalls_by_its_own_doing() -> None:
    assert lost_share(CALM, after(memory=9.0), 10.0, was_full=True) == 0


def test_without_kernel_support_there_is_no_pressure(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    barometer = PressureMonitor(tmp_path / "gone", [0], tmp_path)
    assert lost_share(barometer.read(), barometer.read(), 1.0, was_full=False) is None


def test_the_box_itself_is_read_before_the_machine(tmp_path: Path) -> None:
    group, machine = tmp_path / "group", tmp_path / "pressure"
    (tmp_path / "stat").write_text("cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 100 0 50 7 7 0 50 300 0 0\n")
    for folder, ending, total in ((group, ".pressure", 1_500_000), (machine, "", 9_000_000)):
        folder.mkdir()
        for name in ("cpu", "memory"):
            (folder / f"{name}{ending}").write_text(f"some avg10=1.0 total={total}\nfull total=1\n")
    reading = PressureMonitor(group, [1], tmp_path).read()
    assert (reading.cpu, reading.memory, reading.busy, reading.stolen) == (1.5, 1.5, 2.0, 3.0)
    assert PressureMonitor(None, [1], tmp_path).read().cpu == 9.0
