"""Chaos for as long as one likes: `make chaos SECONDS_OF_CHAOS=600 SEED=1`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from reward_server.tasks.preparation import prepare_task
from reward_server.tasks.registry import Registry
from tests.chaos.programs import TASK
from tests.chaos.running import Plan, running_world, unleash


def main() -> None:
    """Run, say what happened, and exit with 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    options = parser.parse_args()
    seed = random.randrange(1 << 31) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="reward-chaos-"))
    folder.chmod(0o755)
    registry = Registry(folder / "data")
    (folder / "data").mkdir()
    prepare_task(registry.folder(TASK), folder / "data")
    with running_world(folder, folder / "data") as world:
        report = unleash(world, Plan(options.seconds, seed))
    print("\n".join(report.lines()))
    print(f"logs: {folder}")
    sys.exit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
