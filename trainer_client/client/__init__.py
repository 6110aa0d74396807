"""The HTTP client, blocking and asynchronous."""

from trainer_client.client.asynchronous import AsyncRewardClient
from trainer_client.client.blocking import RewardClient

__all__ = ["AsyncRewardClient", "RewardClient"]
