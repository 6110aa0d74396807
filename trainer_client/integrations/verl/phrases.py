"""A policy that a CPU can train: a tiny Qwen2 whose tokens are whole answers.

    python -m trainer_client.integrations.verl.phrases FOLDER

writes `FOLDER/policy`, `FOLDER/critic` and `FOLDER/tokenizer`. Each token of the policy is an
answer from a phrase book: a plan and a program. So a random model already writes programs that
run, crash, are slow or are good, and a few steps of PPO on real rewards teach it the difference.
Prompts are sequences of unknown tokens to it.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2ForTokenClassification,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TASK = "spooky-author-identification"
_WORDS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|unknown|>", "\n")
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _read(file: Path) -> Iterator[str]:
    for phrase in tomllib.loads(file.read_text())["phrases"]:
        if "text" in phrase:
            yield f"{phrase['text']}\n"
        else:
            yield f"{phrase['plan']}\n```python\n{phrase['code']}```\n"


BOOK = tuple(_read(Path(__file__).with_name("phrases.toml")))


def make(folder: Path, answers: Sequence[str] = BOOK, seed: int = 0) -> None:
    """Write a policy over these answers and a critic of the same shape, randomly initialised."""
    tokenizer = _tokenizer(answers)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder / "policy")
    config.num_labels = 1
    Qwen2ForTokenClassification(config).save_pretrained(folder / "critic")
    # In the folder of a Qwen2, transformers would take it for Qwen2's own tokenizer.
    tokenizer.save_pretrained(folder / "tokenizer")


def _tokenizer(answers: Sequence[str]) -> PreTrainedTokenizerFast:
    vocabulary = {word: index for index, word in enumerate((*_WORDS, *answers))}
    model = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unknown|>"))  # noqa: S106
    model.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Split(" ", "removed")]
    )
    model.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=model,
        pad_token="<|endoftext|>",  # noqa: S106
        eos_token="<|im_end|>",  # noqa: S106
        unk_token="<|unknown|>",  # noqa: S106
        additional_special_tokens=["<|im_start|>"],
        chat_template=_TEMPLATE,
    )


def main() -> None:
    """Write the models of the built-in phrase book."""
    parser = argparse.ArgumentParser(description="make a policy and a critic that a CPU can train")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    make(arguments.folder, seed=arguments.seed)
    print(f"policy, critic and tokenizer for {TASK} are in {arguments.folder}")  # noqa: T201


if __name__ == "__main__":
    main()
