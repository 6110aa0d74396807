"""Kaggle's requests, split as MLE-bench splits them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.model_selection import train_test_split

from reward_server.errors import SetupError
from reward_server.tasks.sdk.raw import read_raw, write_zip

if TYPE_CHECKING:
    from pathlib import Path

Request = dict[str, Any]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split Kaggle's train.json; the new test keeps the fields of Kaggle's test.json."""
    labelled, unlabelled = _requests(raw, "train"), _requests(raw, "test")
    share = len(unlabelled) / (len(labelled) + len(unlabelled))
    train, test = train_test_split(labelled, test_size=share, random_state=0)
    fields = list(unlabelled[0])
    _write(public, "train", train)
    _write(public, "test", [{field: request[field] for field in fields} for request in test])
    answers = pd.DataFrame(
        {
            "request_id": [request["request_id"] for request in test],
            "requester_received_pizza": [
                int(request["requester_received_pizza"]) for request in test
            ],
        }
    )
    answers.to_csv(private / "test.csv", index=False)
    answers.assign(requester_received_pizza=0).to_csv(public / "sampleSubmission.csv", index=False)


def _requests(raw: Path, side: str) -> list[Request]:
    requests: list[Request] = json.loads(read_raw(raw, f"{side}.json", [f"{side}.zip"]))
    if not requests or any(request.keys() != requests[0].keys() for request in requests):
        message = f"the raw file {side}.json is empty or its requests differ in their fields"
        raise SetupError(message)
    return requests


def _write(public: Path, side: str, requests: list[Request]) -> None:
    text = json.dumps(requests, indent=4).encode()
    (public / f"{side}.json").write_bytes(text)
    write_zip(public / f"{side}.zip", [(f"{side}.json", text)])
