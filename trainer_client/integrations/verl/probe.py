"""Reports the environment of a trainer process as one line of JSON.

Run as `python -m trainer_client.integrations.verl.probe MODE` with the environment of a run:
importing veRL loads what `VERL_USE_EXTERNAL_MODULES` names, and veRL hides errors raised there.
"""

from __future__ import annotations

import importlib.util
import json
import sys

import torch
import verl

from trainer_client.integrations.verl.registration import check_registered

_WANTED = ("transfer_queue", "vllm", "flash_attn")


def probe(mode: str) -> dict[str, object]:
    """Return versions and GPUs, and the plug-in's error for this mode ("" if it is active)."""
    return {
        "verl": verl.__version__,
        "torch": torch.__version__,
        "gpus": torch.cuda.device_count(),
        "plugin": _check_plugin(mode),
        "missing": [name for name in _WANTED if importlib.util.find_spec(name) is None],
    }


def _check_plugin(mode: str) -> str:
    try:
        check_registered(mode)
    except RuntimeError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.stdout.write(f"\n{json.dumps(probe(sys.argv[1]))}\n")
