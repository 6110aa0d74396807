"""The figures of arXiv 2509.01684 that a model is compared with: Tables 1, 2 and 4.

Each is the mean and the standard error over three runs of the best score found; the RL column is
the same in all three tables. A dash stands where no run had a valid submission. Nothing here says
how a figure was made; see docs/evaluate.md for what may be compared. The paper's text counts 8, 9
and 10 tasks won by RL, its figures give 7, 9 and 11.
"""

from __future__ import annotations

from dataclasses import dataclass

_TASKS = (
    "detecting-insults-in-social-commentary",
    "learning-agency-lab-automated-essay-scoring-2",
    "random-acts-of-pizza",
    "tweet-sentiment-extraction",
    "tabular-playground-series-may-2022",
    "tabular-playground-series-dec-2021",
    "us-patent-phrase-to-phrase-matching",
    "plant-pathology-2020-fgvc7",
    "leaf-classification",
    "nomad2018-predict-transparent-conductors",
    "spooky-author-identification",
    "lmsys-chatbot-arena",
)
_COLUMNS: tuple[tuple[str, tuple[int, ...], str], ...] = (
    (
        "Qwen2.5-3B AIDE",
        (1,),
        (
            "0.870±0.009 0.331±0.018 0.589±0.004 0.027±0.018 0.787±0.020 0.827±0.044 "
            "0.065±0.000 0.628±0.058 0.884±0.016 0.178±0.045 0.596±0.053 11.48±0.002"
        ),
    ),
    (
        "Llama3.1-405B AIDE",
        (1,),
        (
            "- 0.777±0.002 0.619±0.007 - 0.939±0.002 0.771±0.188 "
            "- 0.968±0.005 6.747±5.398 0.166±0.103 0.487±0.020 1.269±0.051"
        ),
    ),
    (
        "Claude3.5-Sonnet AIDE",
        (1,),
        (
            "- 0.794±0.008 0.627±0.004 0.448±0.251 0.743±0.126 0.645±0.315 "
            "0.805±0.006 0.990±0.002 0.436±0.102 0.083±0.020 0.701±0.186 2.211±0.959"
        ),
    ),
    (
        "GPT-4o AIDE, 100 hours",
        (1,),
        (
            "- 0.759±0.002 0.638±0.005 0.283±0.005 0.883±0.002 0.957±0.000 "
            "0.588±0.015 0.970±0.001 0.846±0.029 0.072±0.003 0.546±0.004 1.451±0.035"
        ),
    ),
    (
        "GPT-4o AIDE",
        (2,),
        (
            "- 0.720±0.031 0.645±0.009 0.294±0.032 0.884±0.012 0.957±0.002 "
            "0.756±0.019 0.980±0.002 0.656±0.070 0.144±0.031 0.576±0.071 1.323±0.147"
        ),
    ),
    (
        "GPT-4o OpenHands",
        (2,),
        (
            "0.867±0.017 0.681±0.010 0.591±0.048 0.415±0.008 0.882±0.030 0.957±0.000 "
            "0.366±0.039 0.680±0.113 0.902±0.018 0.183±0.120 0.582±0.020 1.131±0.019"
        ),
    ),
    (
        "GPT-4o MLAB",
        (2,),
        (
            "0.749±0.039 0.533±0.080 0.520±0.013 0.158±0.057 0.711±0.050 0.828±0.118 "
            "- 0.735±0.052 4.383±2.270 0.294±0.126 0.992±0.463 10.324±4.509"
        ),
    ),
    (
        "Qwen2.5-3B RL, from scratch only",
        (4,),
        (
            "0.898±0.003 0.729±0.004 0.643±0.004 0.593±0.000 0.902±0.000 0.950±0.001 "
            "0.517±0.002 0.949±0.017 0.469±0.244 0.060±0.000 0.448±0.000 1.098±0.003"
        ),
    ),
    (
        "Qwen2.5-3B RL",
        (1, 2, 4),
        (
            "0.895±0.001 0.746±0.002 0.663±0.011 0.596±0.002 0.913±0.000 0.951±0.000 "
            "0.527±0.003 0.970±0.004 0.124±0.000 0.059±0.000 0.404±0.011 1.081±0.002"
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Published:
    """What the paper reports of one agent on one task; no mean where nothing was valid."""

    agent: str
    tables: tuple[int, ...]
    mean: float | None
    standard_error: float | None


def published(task_id: str) -> tuple[Published, ...]:
    """Return the paper's figures of a task, none of a task that it does not have."""
    if task_id not in _TASKS:
        return ()
    at = _TASKS.index(task_id)
    return tuple(_figure(agent, tables, text.split()[at]) for agent, tables, text in _COLUMNS)


def _figure(agent: str, tables: tuple[int, ...], text: str) -> Published:
    if text == "-":
        return Published(agent, tables, None, None)
    mean, _, error = text.partition("±")
    return Published(agent, tables, float(mean), float(error))
