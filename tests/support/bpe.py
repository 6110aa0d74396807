"""A small real tokenizer with a chat template, trained on texts of this repository."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "[ODD MARK]")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


PATTERNS = (
    "tests/unit/instrument/**/*.py",
    "docs/*.md",
    "reward_server/tasks/catalog/*/description.md",
)


def train_on_repository(folder: Path) -> Path:
    """Train on the programs, documents and task descriptions of this repository."""
    paths = (path for pattern in PATTERNS for path in sorted(ROOT.glob(pattern)))
    return train(folder, (path.read_text() for path in paths))


def train(folder: Path, texts: Iterable[str], template: str | None = TEMPLATE) -> Path:
    """Train a byte-level BPE, in a folder with the layout of published models."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config: dict[str, object] = {"eos_token": {"content": "<|im_end|>"}, "bos_token": None}
    if template is not None:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
