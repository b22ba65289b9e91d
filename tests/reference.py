"""The second implementation: `transformers` on torch. The one place of the repository that imports torch.

Knows: how to make a model of given weights, and to ask it for hidden states, logits and greedy text. Does not know
ours.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def make(fields: dict[str, Any], weights: dict[str, np.ndarray], dtype: torch.dtype = torch.float32) -> Any:
    """A model of these config.json fields that holds exactly these weights."""
    config = transformers.AutoConfig.for_model(**copy.deepcopy(fields))  # it writes into nested fields
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", experts_implementation="eager"
    )
    given = {name: torch.tensor(value) for name, value in weights.items()}
    absent, unknown = model.load_state_dict(given, strict=False)
    if unknown or set(absent) - ({"lm_head.weight"} if config.tie_word_embeddings else set()):
        raise ValueError(f"the reference model wants other weights: lacks {absent}, has no {unknown}")
    return model.to(dtype).eval()


def run(model: Any, tokens: np.ndarray, positions: np.ndarray | None = None) -> tuple[np.ndarray, list[np.ndarray]]:
    """(logits [B, T, V], hidden states [B, T, D]: the embedding, then after each layer, the last before the norm)."""
    states: list[np.ndarray] = []

    def keep(_: Any, inputs: Any, output: Any) -> None:
        states.append((output[0] if isinstance(output, tuple) else output).float().numpy())

    hooks = [m.register_forward_hook(keep) for m in (model.model.embed_tokens, *model.model.layers)]
    try:
        with torch.no_grad():
            ids = None if positions is None else torch.tensor(positions, dtype=torch.long)
            # with all states wanted, a Gemma 4 that shares keys and values takes no short cut (one fails without PLE)
            out = model(torch.tensor(tokens, dtype=torch.long), position_ids=ids, output_hidden_states=True)
            logits = out.logits.float().numpy()
    finally:
        for hook in hooks:
            hook.remove()
    return logits, states


def from_gguf(file: Path) -> Any:
    """The model in float32 by transformers' own reading of a GGUF file."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(file.parent), gguf_file=file.name, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()


def tokenizer_from_gguf(file: Path) -> Any:
    """The tokenizer, likewise."""
    return transformers.AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)


def greedy(model: Any, prompt: list[int], steps: int, stop: frozenset[int]) -> list[int]:
    """transformers' own generate, without sampling; at most `steps` tokens, a stop token included."""
    with torch.no_grad():
        out = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=steps,
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            repetition_penalty=1.0,
            eos_token_id=sorted(stop),
            pad_token_id=min(stop),
        )
    return out[0, len(prompt) :].tolist()
