"""The trainer's side: talks to a reward server over HTTP and imports nothing of it."""

from trainer_client import moved
from trainer_client.client.answers import (
    Answer,
    AnswerFailure,
    AnswerTimings,
    InstrumentationInfo,
    Result,
    SandboxInfo,
)
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
    "AnswerFailure",
    "AnswerTimings",
    "AsyncRewardClient",
    "DeadlineExceededError",
    "Fields",
    "InfrastructureError",
    "InstrumentationInfo",
    "Job",
    "JobCancelledError",
    "Options",
    "OverloadedError",
    "RequestRefusedError",
    "Result",
    "RewardClient",
    "RewardServerError",
    "SampleLostError",
    "SandboxInfo",
    "Submission",
    "TooLargeError",
]
_RENAMED = {
    "Failure": "AnswerFailure",
    "Instrumentation": "InstrumentationInfo",
    "Sandbox": "SandboxInfo",
    "Timings": "AnswerTimings",
}

moved.install()


def __getattr__(name: str) -> object:
    return moved.renamed(__name__, _RENAMED, name)
