"""These tests want veRL: they run in the trainer's environment, by `--confcutdir tests/verl`."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("verl") else ["test_*.py"]
