"""What each built-in task accepts and refuses, as MLE-bench's graders do."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from reward_server.grade.table import Caps, read_table
from reward_server.tasks.folders import BUILT_IN
from reward_server.tasks.modules import load_module
from reward_server.tasks.tables import parse_csv

ANSWERS = {
    "random_acts_of_pizza": b"request_id,requester_received_pizza\na,0\nb,1\nc,0\n",
    "spooky_author_identification": b"id,EAP,HPL,MWS\na,1,0,0\nb,0,1,0\nc,0,0,1\n",
    "nomad2018_predict_transparent_conductors": (
        b"id,formation_energy_ev_natom,bandgap_energy_ev\n1,0.1,1\n2,0.2,2\n"
    ),
}
PIZZA, SPOOKY, NOMAD = ANSWERS
PIZZA_HEADER = "request_id,requester_received_pizza\n"
SPOOKY_HEADER = "id,EAP,HPL,MWS\n"
NOMAD_HEADER = "id,formation_energy_ev_natom,bandgap_energy_ev\n"
SPOOKY_REST = "b,0.1,0.8,0.1\nc,0.2,0.2,0.6\n"

VALID = [
    (PIZZA, "in another order", PIZZA_HEADER + "c,0.1\na,0.2\nb,0.9\n"),
    (PIZZA, "a constant", PIZZA_HEADER + "a,0\nb,0\nc,0\n"),
    (PIZZA, "True and False", PIZZA_HEADER + "a,False\nb,True\nc,False\n"),
    (PIZZA, "an extra column", "x,request_id,requester_received_pizza\n1,a,0\n1,b,1\n1,c,0\n"),
    (PIZZA, "swapped columns", "requester_received_pizza,request_id\n0,a\n1,b\n0,c\n"),
    (PIZZA, "an unnamed index", ",request_id,requester_received_pizza\n0,a,0\n1,b,1\n2,c,0\n"),
    (PIZZA, "an index without a header", PIZZA_HEADER + "0,a,0\n1,b,1\n2,c,0\n"),
    (SPOOKY, "classes in another order", "id,MWS,HPL,EAP\na,0,0,1\nb,0,1,0\nc,1,0,0\n"),
    (SPOOKY, "a sum off by 1e-5", SPOOKY_HEADER + "a,0.60001,0.2,0.2\n" + SPOOKY_REST),
    (
        SPOOKY,
        "True and False everywhere",
        SPOOKY_HEADER + "a,True,False,False\nb,False,True,False\nc,False,False,True\n",
    ),
    (NOMAD, "unknown ids", NOMAD_HEADER + "x,0.1,1\ny,0.2,2\n"),
    (NOMAD, "no ids", "bandgap_energy_ev,formation_energy_ev_natom\n1,0.1\n2,0.2\n"),
    (NOMAD, "whole numbers", NOMAD_HEADER + "1,0,1\n2,0,2\n"),
    (NOMAD, "a number beyond 64 bits", NOMAD_HEADER + "1,0.1," + "9" * 30 + "\n2,0.2,2\n"),
]

INVALID = [
    (PIZZA, "an empty file", ""),
    (PIZZA, "a header alone", PIZZA_HEADER),
    (PIZZA, "logits", PIZZA_HEADER + "a,-3.1\nb,2.2\nc,0.5\n"),
    (PIZZA, "a tiny negative", PIZZA_HEADER + "a,-1e-12\nb,1\nc,0\n"),
    (PIZZA, "infinity", PIZZA_HEADER + "a,inf\nb,1\nc,0\n"),
    (PIZZA, "a missing value", PIZZA_HEADER + "a,\nb,1\nc,0\n"),
    (PIZZA, "True and a missing value", PIZZA_HEADER + "a,True\nb,\nc,False\n"),
    (PIZZA, "words", PIZZA_HEADER + "a,yes\nb,no\nc,no\n"),
    (PIZZA, "words among numbers", PIZZA_HEADER + "a,0.5\nb,True\nc,no\n"),
    (PIZZA, "a repeated id", PIZZA_HEADER + "a,0\na,1\nc,0\n"),
    (PIZZA, "an unknown id", PIZZA_HEADER + "a,0\nb,1\nd,0\n"),
    (PIZZA, "a missing id", PIZZA_HEADER + "a,0\nb,1\n,0\n"),
    (PIZZA, "numeric ids", PIZZA_HEADER + "1,0\n2,1\n3,0\n"),
    (PIZZA, "too many rows", PIZZA_HEADER + "a,0\nb,1\nc,0\nc,0\n"),
    (PIZZA, "semicolons", "request_id;requester_received_pizza\na;0\nb;1\nc;0\n"),
    (PIZZA, "a space in the header", "request_id, requester_received_pizza\na,0\nb,1\nc,0\n"),
    (SPOOKY, "rounded", SPOOKY_HEADER + "a,0.6001,0.2,0.2\n" + SPOOKY_REST),
    (SPOOKY, "a sum off by 1.2e-5", SPOOKY_HEADER + "a,0.600012,0.2,0.2\n" + SPOOKY_REST),
    (SPOOKY, "a tiny negative", SPOOKY_HEADER + "a,-1e-9,0.5,0.5\n" + SPOOKY_REST),
    (SPOOKY, "a gap in a row of one", SPOOKY_HEADER + "a,,0.5,0.5\n" + SPOOKY_REST),
    (SPOOKY, "logits", SPOOKY_HEADER + "a,3,-1,-1\n" + SPOOKY_REST),
    (SPOOKY, "an extra column", "id,EAP,HPL,MWS,x\na,1,0,0,0\nb,0,1,0,0\nc,0,0,1,0\n"),
    (SPOOKY, "the id last", "EAP,HPL,MWS,id\n1,0,0,a\n0,1,0,b\n0,0,1,c\n"),
    (SPOOKY, "True beside numbers", SPOOKY_HEADER + "a,True,0,0\nb,False,1,0\nc,False,0,1\n"),
    (SPOOKY, "words", SPOOKY_HEADER + "a,x,y,z\n" + SPOOKY_REST),
    (SPOOKY, "an unknown id", SPOOKY_HEADER + "z,1,0,0\n" + SPOOKY_REST),
    (NOMAD, "a tiny negative", NOMAD_HEADER + "1,-1e-9,1\n2,0.2,2\n"),
    (NOMAD, "infinity", NOMAD_HEADER + "1,inf,1\n2,0.2,2\n"),
    (NOMAD, "words", NOMAD_HEADER + "1,low,1\n2,0.2,2\n"),
    (NOMAD, "one target alone", "id,bandgap_energy_ev\n1,1\n2,2\n"),
]


def grade(task: str, submission: str) -> float:
    module, answers = load_module(BUILT_IN / task / "grade.py"), ANSWERS[task]
    table = read_table(submission.encode(), Caps.beside(answers, 1 << 20))
    return float(module.score(*module.align(table, parse_csv(answers))))


@pytest.mark.parametrize(
    ("task", "submission"), [pytest.param(t, s, id=f"{t}: {what}") for t, what, s in VALID]
)
def test_a_submission_of_this_kind_is_scored(task: str, submission: str) -> None:
    assert math.isfinite(grade(task, submission))


@pytest.mark.parametrize(
    ("task", "submission"), [pytest.param(t, s, id=f"{t}: {what}") for t, what, s in INVALID]
)
def test_a_submission_of_this_kind_is_refused_before_the_metric(task: str, submission: str) -> None:
    module, answers = load_module(BUILT_IN / task / "grade.py"), ANSWERS[task]
    table = read_table(submission.encode(), Caps.beside(answers, 1 << 20))
    with pytest.raises(Exception):  # noqa: B017, PT011 -- any exception in align is a refusal
        module.align(table, parse_csv(answers))


@pytest.mark.parametrize("task", ANSWERS)
def test_the_answers_themselves_have_the_best_score(task: str) -> None:
    best = 1.0 if task == PIZZA else 0.0
    assert grade(task, ANSWERS[task].decode()) == pytest.approx(best, abs=1e-12)


def test_log_loss_clips_but_does_not_rescale() -> None:
    submission = pd.DataFrame({"EAP": [0.6, 0.1, 0.2], "HPL": [0.2, 0.8, 0.2]})
    submission["MWS"] = [0.200005, 0.1, 0.6]
    text = submission.assign(id=["a", "b", "c"])[["id", "EAP", "HPL", "MWS"]].to_csv(index=False)
    expected = -(math.log(0.6) + math.log(0.8) + math.log(0.6)) / 3
    assert grade(SPOOKY, text) == pytest.approx(expected, abs=1e-12)
