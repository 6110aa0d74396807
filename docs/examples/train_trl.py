#!/usr/bin/env python3
"""Train a policy with TRL on rewards of a reward server; see docs/trl.md.

accelerate launch docs/examples/train_trl.py --model Qwen/Qwen2.5-3B-Instruct \
    --tasks spooky-author-identification --server http://10.0.0.5:8000 --max_steps 200

It also accepts every option of TRL's GRPOConfig.
"""

from dataclasses import dataclass, field

from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, TrlParser

from trainer_client.integrations.trl.reward import make_async_reward
from trainer_client.integrations.trl.rows import TaskPrompts
from trainer_client.integrations.trl.trainer import DurationGRPOTrainer
from trainer_client.settings import RunPromptSettings, RunSettings


@dataclass
class Arguments:
    """The options of the run, besides TRL's own."""

    model: str = field(metadata={"help": "the policy: a folder, or a name on the hub"})
    tasks: list[str] = field(metadata={"help": "tasks of the server, in equal shares"})
    run_id: str = "trl"
    server: str = "http://127.0.0.1:8000"
    tokenizer: str | None = None
    most_prompt_tokens: int = 4096
    improve_fraction: float = 0.5
    wall_seconds: float | None = field(default=None, metadata={"help": "time limit for a program"})


def main() -> None:
    """Train."""
    arguments, config = TrlParser((Arguments, GRPOConfig)).parse_args_and_config()
    settings = RunSettings(
        url=arguments.server,
        tasks=tuple(arguments.tasks),
        run_id=arguments.run_id,
        wall_seconds=arguments.wall_seconds,
        prompts=RunPromptSettings(improve_fraction=arguments.improve_fraction),
    )
    tokenizer = AutoTokenizer.from_pretrained(arguments.tokenizer or arguments.model)
    prompts = TaskPrompts(settings, tokenizer, arguments.most_prompt_tokens)
    trainer = DurationGRPOTrainer(
        AutoModelForCausalLM.from_pretrained(arguments.model, dtype="auto"),
        reward_funcs=make_async_reward(settings.run()),
        args=config,
        train_dataset=prompts.rows(),
        eval_dataset=prompts.validation_rows(),
        processing_class=tokenizer,
        durations=settings.durations,
        prompts=prompts,
    )
    trainer.train(resume_from_checkpoint=config.resume_from_checkpoint)
    trainer.save_model()


if __name__ == "__main__":
    main()
