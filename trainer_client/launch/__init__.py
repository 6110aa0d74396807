"""Starts a training run with veRL: presets, checks, and the command itself.

    python -m trainer_client.launch --task TASK --server URL [--dry-run]

A preset, a YAML file with veRL's own keys, decides what veRL trains with. The launcher does not
patch veRL; it execs `python -m verl.trainer.main_ppo`.
"""
