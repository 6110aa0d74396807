"""Runs a training script whose trainer writes down, in each process, what it trains on."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

from tests.integration.trl.training import Recorded
from trainer_client.integrations.trl import trainer

FILE = Path(os.environ["RECORDING_FOLDER"]) / f"rank-{os.environ['RANK']}.jsonl"


class WrittenRow(Recorded):
    """The trainer of the script."""

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        batch = self.batches[-1]
        line = {
            "solutions": [answer and answer.solution_id for answer in batch.answers],
            "stock": batch.stock.tolist(),
            "advantages": batch.advantages.tolist(),
        }
        with FILE.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return output


trainer.DurationGRPOTrainer = WrittenRow  # type: ignore[misc]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
