"""Grading by the grader of an MLE-bench competition, inside the grading process after the fork.

Its grader is one function that checks and scores at once. A submission that it refuses with its
own exception is the program's fault. For any other exception the competition's sample or gold
submission decides: a grader that fails on those too is at fault itself.
"""

from __future__ import annotations

import importlib
import math
import traceback
from typing import TYPE_CHECKING, Any

from reward_server.errors import SetupError
from reward_server.grade.phases import Phase
from reward_server.tasks.sdk.competition import read_competition
from reward_server.tasks.sdk.modules import load_file
from reward_server.tasks.sdk.submission_table import Caps, InvalidSubmissionError, read_table
from reward_server.tasks.sdk.tables import parse_csv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reward_server.grade.phases import Answer, Enter
    from reward_server.tasks.sdk.competition import Competition

_PACKAGE = "mlebench"
_DETAIL_CHARACTERS = 500


def score_competition(
    folder: Path, answers: Path, submission: bytes, file_bytes: int, enter: Enter
) -> Answer:
    """Grade the bytes against the answers, announcing each phase before it begins."""
    enter(Phase.ANSWERS)
    competition = read_competition(folder)
    grade, refusal = _load_grader(folder, competition)
    raw_answers = answers.read_bytes()
    caps = _caps(raw_answers, competition.controls(answers)[0], file_bytes)
    enter(Phase.SUBMISSION)
    try:
        table = read_table(submission, caps)
    except InvalidSubmissionError:
        return {"outcome": "invalid"}
    enter(Phase.GRADER)
    try:
        score = _to_score(grade(table, parse_csv(raw_answers)))
    except refusal:
        return {"outcome": "invalid"}
    except Exception:  # noqa: BLE001 -- the control decides whose fault it is
        return {"outcome": "doubt", "detail": traceback.format_exc()[-_DETAIL_CHARACTERS:]}
    return {"outcome": "invalid"} if score is None else {"outcome": "score", "score": score}


def score_control(folder: Path, answers: Path) -> Answer:
    """Grade the sample submission, then the gold one; the first that passes clears the grader.

    Raises:
        Exception: the grader's own, when neither passes.
    """
    competition = read_competition(folder)
    grade, _ = _load_grader(folder, competition)
    *others, last = competition.controls(answers)
    for control in others:
        try:
            return _passed(grade, control, answers)
        except Exception:  # noqa: BLE001, S112 -- the sample of some competitions is refused
            continue
    return _passed(grade, last, answers)


def _passed(grade: Callable[..., Any], control: Path, answers: Path) -> Answer:
    _to_score(grade(parse_csv(control.read_bytes()), parse_csv(answers.read_bytes())))
    return {"outcome": "passed"}


def _to_score(found: Any) -> float | None:  # noqa: ANN401 -- whatever a grader returns
    score = None if found is None else float(found)
    return score if score is not None and math.isfinite(score) else None


def _caps(raw_answers: bytes, sample: Path, file_bytes: int) -> Caps:
    """Return caps for tables like the answers and like the sample, which may differ in shape."""
    one, other = (Caps.beside(data, file_bytes) for data in (raw_answers, sample.read_bytes()))
    return Caps(
        file_bytes=file_bytes,
        lines=max(one.lines, other.lines),
        columns=max(one.columns, other.columns),
        cells=max(one.cells, other.cells),
        line_bytes=max(one.line_bytes, other.line_bytes),
    )


def _load_grader(
    folder: Path, competition: Competition
) -> tuple[Callable[..., Any], type[Exception]]:
    """Import the competition's function, and the exception it refuses submissions with.

    The package is loaded from the competition's folder and not from `sys.path`, so that nothing
    shadows a module of the server.
    """
    package = folder.parent.parent
    load_file(_PACKAGE, package / "__init__.py", [str(package)])
    module, _, function = competition.grader.grade_fn.partition(":")
    grade = getattr(importlib.import_module(module), function, None)
    if not callable(grade):
        message = f"{competition.id}: there is no {competition.grader.grade_fn}"
        raise SetupError(message)
    refusal = importlib.import_module(f"{_PACKAGE}.grade_helpers").InvalidSubmissionError
    return grade, refusal
