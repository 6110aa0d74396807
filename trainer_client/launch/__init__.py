"""Starts a training run with veRL: presets, checks, and the command itself.

    python -m trainer_client.launch --task TASK --server URL [--dry-run]

What veRL trains with is decided by a preset, a readable file in veRL's own words; nothing of veRL
is changed, and the process becomes `python -m verl.trainer.main_ppo`.
"""
