"""What a user would pick instead, on the same weights and lengths: transformers, and any server of the OpenAI protocol.

Knows: how the others draw n completions of one prompt. Does not know: this project's sampler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Rival(NamedTuple):
    """A call that makes so many tokens, and a short one that gets it ready."""

    tokens: int
    call: Callable[[], Any]
    ready: Callable[[], Any]


def transformers(
    weights: Path, vocabulary: int, prompt: int, new: int, batches: Sequence[int], dtypes: Sequence[str]
) -> dict[str, Rival]:
    """generate(num_return_sequences=b) after a prompt of random tokens, for every batch size and precision."""
    import torch
    from transformers import AutoModelForCausalLM

    where = {"gguf_file": weights.name} if weights.suffix == ".gguf" else {}
    ids = torch.tensor(np.random.default_rng(0).integers(0, vocabulary, (1, prompt)))

    @torch.inference_mode()
    def draw(model: Any, batch: int, steps: int) -> None:
        model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, num_return_sequences=batch,
            min_new_tokens=steps, max_new_tokens=steps, pad_token_id=0,
        )  # fmt: skip

    found = {}
    for dtype in dtypes:
        kind = getattr(torch, dtype)
        model = AutoModelForCausalLM.from_pretrained(weights.parent if where else weights, dtype=kind, **where).eval()
        for batch in batches:
            call = lambda steps, model=model, batch=batch: draw(model, batch, steps)
            name = f"transformers, {dtype}, {batch} sequences of {new}"
            found[name] = Rival(batch * new, partial(call, new), partial(call, 2))
    return found


def server(url: str, name: str, text: str, n: int, new: int, count: Callable[[str], int]) -> dict[str, Rival]:
    """One request for n completions of one prompt, which a server may read once and share.

    Args: count: tokens of a text; a server's own account may cover one completion of the n.

    Raises:
      ValueError: the server gave fewer completions, or shorter ones than it was asked for.
    """
    from openai import OpenAI

    client = OpenAI(base_url=url, api_key="none", timeout=3600, max_retries=0)
    full = {"ignore_eos": True}  # known to llama.cpp and vLLM

    def ask(steps: int) -> None:
        said = client.completions.create(
            model=name, prompt=text, n=n, max_tokens=steps, temperature=1.0, extra_body=full
        )
        made = sum(min(steps, count(choice.text)) for choice in said.choices)
        if made < 0.95 * n * steps:  # a text read back may have a few tokens fewer
            raise ValueError(f"{url}: asked for {n} completions of {steps} tokens, got {made} tokens")

    return {f"server {name}, one request, {n} completions of {new}": Rival(n * new, partial(ask, new), partial(ask, 1))}
