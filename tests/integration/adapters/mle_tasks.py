"""The module by whose name verifiers finds the taskset, as a user writes it."""

from trainer_client.integrations.verifiers import RewardServerTaskset

__all__ = ["RewardServerTaskset"]
