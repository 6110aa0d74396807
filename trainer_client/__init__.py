"""The trainer's side: talks to a reward server over HTTP and knows nothing else of it."""

from trainer_client.client.answers import Answer, Failure, Instrumentation, Result, Sandbox, Timings
from trainer_client.client.asynchronous import AsyncRewardClient
from trainer_client.client.blocking import RewardClient
from trainer_client.client.errors import (
    DeadlineExceededError,
    InfrastructureError,
    JobCancelledError,
    OverloadedError,
    RequestRefusedError,
    RewardServerError,
    SampleLostError,
    TooLargeError,
)
from trainer_client.client.options import Options
from trainer_client.client.submissions import Fields, Job, Submission

__all__ = [
    "Answer",
    "AsyncRewardClient",
    "DeadlineExceededError",
    "Failure",
    "Fields",
    "InfrastructureError",
    "Instrumentation",
    "Job",
    "JobCancelledError",
    "Options",
    "OverloadedError",
    "RequestRefusedError",
    "Result",
    "RewardClient",
    "RewardServerError",
    "SampleLostError",
    "Sandbox",
    "Submission",
    "Timings",
    "TooLargeError",
]
