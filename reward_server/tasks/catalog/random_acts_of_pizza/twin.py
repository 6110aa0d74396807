"""Made-up pizza requests with Kaggle's fields and a planted, partly non-linear signal.

Generosity depends on what a request mentions (which a linear model sees) and on how the
requester's age, activity and hour of posting combine (which takes interactions to see).
Every trace of the outcome stands in the train-only fields alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reward_server.tasks.sdk.words import WordLists

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WORDS = WordLists(__file__)
_FIRST_SECOND, _LAST_SECOND = 1_300_000_000, 1_380_000_000
_SUCCESS_SHARE = 0.3

Fields = dict[str, Any]


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.json with `rows` requests and test.json with two fifths as many."""
    rng = np.random.default_rng(seed)
    total = rows + 2 * rows // 5
    people, mentions = (
        _people(rng, total),
        rng.random((total, len(WORDS.reasons))) < 2 / len(WORDS.reasons),
    )
    received = _outcomes(rng, people, mentions)
    requests = [
        _request(rng, person, mentioned, received=bool(outcome))
        for person, mentioned, outcome in zip(_rows(people), mentions, received, strict=True)
    ]
    hidden = set(WORDS.at_retrieval)
    test = [{k: v for k, v in request.items() if k not in hidden} for request in requests[rows:]]
    (raw / "train.json").write_text(json.dumps(requests[:rows], indent=1), encoding="utf-8")
    (raw / "test.json").write_text(json.dumps(test, indent=1), encoding="utf-8")


def _people(rng: np.random.Generator, total: int) -> pd.DataFrame:
    activity = rng.normal(size=total)
    comments = np.exp(3.5 + 1.2 * activity + 0.6 * rng.normal(size=total)).astype(int)
    votes = (comments * np.exp(rng.normal(1.0, 0.5, total))).astype(int) + 1
    return pd.DataFrame(
        {
            "age": np.exp(rng.normal(5.0, 1.2, total)).clip(0, 2500),
            "comments": comments,
            "posts": rng.poisson(np.exp(1.5 + 0.8 * activity)),
            "raop_comments": rng.poisson(0.6, total) * (rng.random(total) < 0.4),
            "raop_posts": (rng.random(total) < 0.1).astype(int),
            "raop_days": rng.exponential(60, total) * (rng.random(total) < 0.2),
            "subreddits": rng.integers(0, len(WORDS.subreddits), total),
            "balance": (votes * rng.uniform(0.1, 0.9, total)).astype(int),
            "votes": votes,
            "second": rng.integers(_FIRST_SECOND, _LAST_SECOND, total),
            "fillers": rng.integers(0, 9, total),
        }
    )


def _rows(people: pd.DataFrame) -> list[Fields]:
    return [{str(name): value for name, value in row.items()} for row in people.to_dict("records")]


def _outcomes(
    rng: np.random.Generator, people: pd.DataFrame, mentions: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Draw who receives a pizza, at a fixed share of successes."""
    old, active = _above_median(people["age"]), _above_median(people["comments"])
    varied = _above_median(people["subreddits"])
    evening = np.cos(2 * np.pi * ((people["second"] % 86_400) / 86_400 - rng.random()))
    combined = 1.1 * old * active + 0.8 * varied * np.sign(evening)
    plain = 0.6 * active + 0.3 * (people["fillers"] - 4) + 0.6 * (people["raop_comments"] > 0)
    words = mentions @ rng.permutation(np.linspace(-0.8, 0.8, len(WORDS.reasons)))
    logit = 1.5 * (combined + plain + words)
    chance = logit + rng.logistic(size=len(people))
    return np.asarray(chance > np.quantile(chance, 1 - _SUCCESS_SHARE))


def _above_median(values: pd.Series) -> NDArray[np.float64]:
    return np.where(values > values.median(), 1.0, -1.0)


def _request(
    rng: np.random.Generator, person: Fields, mentioned: NDArray[np.bool_], *, received: bool
) -> Fields:
    text = _text(rng, np.flatnonzero(mentioned), person["fillers"])
    request = _at_request(rng, person) | _at_retrieval(rng, person)
    request["request_text"] = request["request_text_edit_aware"] = text
    request["requester_received_pizza"] = received
    request["requester_user_flair"] = "shroom" if received else None
    return dict(sorted(request.items()))


def _at_request(rng: np.random.Generator, person: Fields) -> Fields:
    subreddits = rng.choice(WORDS.subreddits, person["subreddits"], replace=False)
    return {
        "giver_username_if_known": "N/A",
        "request_id": "t3_" + _letters(rng, 8),
        "request_title": "[REQUEST] " + _fill_in(rng, rng.choice(WORDS.titles)),
        "requester_account_age_in_days_at_request": person["age"],
        "requester_days_since_first_post_on_raop_at_request": person["raop_days"],
        "requester_number_of_comments_at_request": person["comments"],
        "requester_number_of_comments_in_raop_at_request": person["raop_comments"],
        "requester_number_of_posts_at_request": person["posts"],
        "requester_number_of_posts_on_raop_at_request": person["raop_posts"],
        "requester_number_of_subreddits_at_request": person["subreddits"],
        "requester_subreddits_at_request": subreddits.tolist(),
        "requester_upvotes_minus_downvotes_at_request": person["balance"],
        "requester_upvotes_plus_downvotes_at_request": person["votes"],
        "requester_username": _letters(rng, 9),
        "unix_timestamp_of_request": float(person["second"]),
        "unix_timestamp_of_request_utc": float(person["second"] - 3600 * rng.integers(0, 2)),
    }


def _at_retrieval(rng: np.random.Generator, person: Fields) -> Fields:
    days, more = rng.uniform(1, 900), int(rng.poisson(40))
    return {
        "number_of_downvotes_of_request_at_retrieval": int(rng.poisson(2)),
        "number_of_upvotes_of_request_at_retrieval": int(rng.poisson(5)),
        "post_was_edited": bool(rng.random() < 0.1),
        "request_number_of_comments_at_retrieval": int(rng.poisson(3)),
        "requester_account_age_in_days_at_retrieval": person["age"] + days,
        "requester_days_since_first_post_on_raop_at_retrieval": person["raop_days"] + days,
        "requester_number_of_comments_at_retrieval": person["comments"] + more,
        "requester_number_of_comments_in_raop_at_retrieval": person["raop_comments"] + 1,
        "requester_number_of_posts_at_retrieval": person["posts"] + 1,
        "requester_number_of_posts_on_raop_at_retrieval": person["raop_posts"] + 1,
        "requester_upvotes_minus_downvotes_at_retrieval": person["balance"] + more,
        "requester_upvotes_plus_downvotes_at_retrieval": person["votes"] + 2 * more,
    }


def _text(rng: np.random.Generator, mentioned: NDArray[np.intp], fillers: int) -> str:
    sentences = [_fill_in(rng, rng.choice(WORDS.openings))]
    sentences += [f"The thing is, {WORDS.reasons[reason]}" for reason in mentioned]
    sentences += list(rng.choice(WORDS.fillers, fillers, replace=False))
    return ". ".join([*sentences, str(rng.choice(WORDS.closings))]) + "."


def _fill_in(rng: np.random.Generator, pattern: str) -> str:
    return str(pattern).format(town=rng.choice(WORDS.towns))


def _letters(rng: np.random.Generator, count: int) -> str:
    return "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz0123456789"), count))
