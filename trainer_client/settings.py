"""The settings of a training run: the node `reward_server` of a trainer's configuration.

    reward_server:
      url: http://10.0.0.5:8000
      tasks: [spooky-author-identification]
      run_id: spooky-1
      durations: {enabled: true}
      prompts: {improve_fraction: 0.5}

The API key comes from the environment (`REWARD_SERVER_API_KEY`), because trainers write their
configuration to logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from trainer_client.client.options import check_url
from trainer_client.moved import renamed
from trainer_client.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_client.client.asynchronous import AsyncRewardClient
    from trainer_client.client.blocking import RewardClient

NODE = "reward_server"

Seconds = Annotated[float, Field(gt=0, le=7 * 86_400, allow_inf_nan=False)]


class _Node(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DurationSettings(_Node):
    """The weight of a sample's advantage: Δt / mean Δt by default.

    `exponent` p makes it Δt^p / mean Δt^p, `clip` limits the weight, `mean: task` takes the mean
    over programs of the same task, `clock: cpu` measures CPU seconds instead of wall time.
    A program that never ran has the duration 0 and hence no gradient; `minimum_seconds` is a
    lower bound for all durations.
    """

    enabled: bool = True
    exponent: Annotated[float, Field(gt=0, le=4)] = 1.0
    clip: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    mean: Literal["batch", "task"] = "batch"
    clock: Literal["wall", "cpu"] = "wall"
    minimum_seconds: Annotated[float, Field(ge=0, le=3600)] = 0.0


class RunPromptSettings(_Node):
    """Which prompts the model gets; the fields are those of `POST /v1/prompts`.

    `tokenizer` is the server's name for the run's tokenizer. If it is set, the server counts
    tokens. Otherwise the data set requests a number of characters and counts the tokens itself.
    `epoch_rows` is the number of rows of an epoch, of all tasks together.
    """

    improve_fraction: Annotated[float, Field(ge=0, le=1)] = 0.5
    strategy: Literal["previous_step", "best", "softmax", "diverse"] = "previous_step"
    scope: Literal["run", "task"] = "run"
    parents: Literal["valid", "any"] = "valid"
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    tokenizer: str | None = None
    epoch_rows: Annotated[int, Field(ge=1, le=1 << 24)] = 128
    validation_rows: Annotated[int, Field(ge=1, le=4096)] = 16


class RunSettings(_Node):
    """A training run and its reward server.

    `deadline_seconds` limits the whole wait for one sample, `outage_seconds` how long the server
    may be unreachable meanwhile. `wall_seconds` is a time limit for programs below their task's.
    """

    url: str
    tasks: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    run_id: Annotated[str, Field(min_length=1, max_length=180)]
    deadline_seconds: Seconds = 6 * 3600.0
    outage_seconds: Annotated[float, Field(ge=0, le=86_400)] = 300.0
    wall_seconds: Seconds | None = None
    durations: DurationSettings = DurationSettings()
    prompts: RunPromptSettings = RunPromptSettings()

    _url = field_validator("url")(check_url)

    @classmethod
    def read(cls, node: Mapping[str, object] | None) -> Self:
        """Parse the node of a configuration.

        Raises:
            ValueError: the node is missing or not valid.
        """
        if not node:
            message = f"the configuration has no node {NODE!r}: where is the reward server?"
            raise ValueError(message)
        try:
            return cls.model_validate(_plain(node))
        except ValidationError as error:
            lines = [
                f"{NODE}.{'.'.join(str(part) for part in one['loc'])}: {one['msg']}"
                for one in error.errors()
            ]
            raise ValueError("; ".join(lines)) from None

    def without_steps(self) -> Self:
        """Return settings for a trainer without steps: `best` replaces `previous_step`."""
        if self.prompts.strategy != "previous_step":
            return self
        prompts = self.prompts.model_copy(update={"strategy": "best"})
        return self.model_copy(update={"prompts": prompts})

    def run(self) -> Run:
        """Return the run."""
        return Run(
            self.url, self.run_id, self.wall_seconds, self.deadline_seconds, self.outage_seconds
        )

    def async_client(self) -> AsyncRewardClient:
        """Return a client for one event loop. It cancels the jobs of abandoned samples."""
        return self.run().async_client()

    def client(self) -> RewardClient:
        """Return a client for any thread."""
        return self.run().client()


def _plain(node: object) -> object:
    """Return a node of a configuration as plain values, also of OmegaConf."""
    if hasattr(node, "items"):
        return {str(name): _plain(value) for name, value in node.items()}
    if isinstance(node, (str, bytes)) or not hasattr(node, "__iter__"):
        return node
    return [_plain(value) for value in node]


def __getattr__(name: str) -> object:
    return renamed(__name__, {"PromptSettings": "RunPromptSettings"}, name)
