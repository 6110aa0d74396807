#!/bin/sh
# Trains on eight A100 of this machine:
#   trainer_client/launch/a100x8.sh --task spooky-author-identification --server http://10.0.0.5:8000
# All options are those of `python -m trainer_client.launch`; PYTHON names the trainer's interpreter.
# Set REWARD_CLIENT_API_KEY (the server's key) and, with --loggers …,wandb, WANDB_API_KEY before.
set -eu

export TOKENIZERS_PARALLELISM=true # tokenizers are used before processes are forked
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}"
export VLLM_LOGGING_LEVEL="${VLLM_LOGGING_LEVEL:-WARN}"
export TENSORBOARD_DIR="${TENSORBOARD_DIR:-tensorboard}"

here=$(cd "$(dirname "$0")/../.." && pwd)
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
exec "${PYTHON:-python3}" -m trainer_client.launch --preset a100x8 "$@"
