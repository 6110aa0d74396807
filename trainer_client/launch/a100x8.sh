#!/bin/sh
# Trains on eight A100 of this machine:
#   trainer_client/launch/a100x8.sh --task spooky-author-identification --server http://10.0.0.5:8000
# All options are those of `python -m trainer_client.launch`; PYTHON names the trainer's interpreter.
# Set REWARD_SERVER_API_KEY (the server's key) and, for the logger wandb, WANDB_API_KEY before.
set -eu

ulimit -n 65536 2>/dev/null || : # Ray and vLLM hold many files open
export HYDRA_FULL_ERROR=1 # an error of veRL with the place where it happened

here=$(cd "$(dirname "$0")/../.." && pwd)
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
exec "${PYTHON:-python3}" -m trainer_client.launch --preset a100x8 "$@"
