"""From which interpreter a program is forked."""

from __future__ import annotations

import pytest

from reward_server.sandbox.bubblewrap.package_guess import PackageGuess

GUESS = PackageGuess(("numpy", "sklearn.linear_model"))


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np",
        "import os, numpy",
        "from sklearn.linear_model import Ridge",
        "def f():\n    import numpy",
        "import statsmodels.api as sm",
        "import os, statsmodels",
        "from bayes_opt import BayesianOptimization",
        "__import__('numpy')",
        "import importlib; importlib.import_module('sklearn')",
    ],
)
def test_a_program_that_names_a_package_needs_packages(code: str) -> None:
    assert GUESS.needs_packages(code)


@pytest.mark.parametrize(
    "code",
    [
        "print(1)",
        "",
        "import os, sys",
        "import os.path as p, json  # numpyish",
        "from pathlib import Path",
        "from collections import (\n    deque,\n)",
        "import",
        "import ,",
        "raise ValueError",
    ],
)
def test_a_program_that_names_none_needs_no_packages(code: str) -> None:
    assert not GUESS.needs_packages(code)
