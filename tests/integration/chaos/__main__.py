"""A chaos run of any length: `make chaos SECONDS_OF_CHAOS=600 SEED=1`."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.registry import Registry
from tests.integration.chaos.programs import TASK
from tests.integration.chaos.running import ChaosPlan, running_world, unleash


def main() -> None:
    """Run, print the report, and exit with 1 on a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    folder = Path(tempfile.mkdtemp(prefix="reward-chaos-"))
    folder.chmod(0o755)  # open to the account that root runs Postgres as
    data_dir = folder / "data"
    data_dir.mkdir()
    prepare_task(Registry(data_dir).folder(TASK), data_dir)
    with running_world(folder, data_dir) as world:
        report = unleash(world, ChaosPlan(options.seconds, seed))
    sys.stdout.write("\n".join(report.lines()) + "\n")
    if report.violations:
        sys.exit(f"logs are in {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
