"""What a user would pick instead, on the same weights and lengths: transformers, and any server of the OpenAI protocol.

Knows: how the others draw n completions of one prompt. Does not know: this project's sampler.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tools.bench_timing import Figure


def transformers(weights: Path, vocabulary: int, prompt: int, new: int, batches: tuple[int, ...]) -> list[Figure]:
    """tokens/s of generate(num_return_sequences=b), float32 and bfloat16; each timed once after a short call."""
    import torch
    from transformers import AutoModelForCausalLM

    where = {"gguf_file": weights.name} if weights.suffix == ".gguf" else {}
    ids = torch.tensor(np.random.default_rng(0).integers(0, vocabulary, (1, prompt)))
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        model = AutoModelForCausalLM.from_pretrained(weights.parent if where else weights, dtype=dtype, **where).eval()
        for batch in batches:
            draw = lambda steps, batch=batch, model=model: model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, num_return_sequences=batch,
                min_new_tokens=steps, max_new_tokens=steps, pad_token_id=0,
            )  # fmt: skip
            with torch.inference_mode():
                draw(2)
                began = time.perf_counter()
                draw(new)
            name = f"transformers, {str(dtype).split('.')[1]}, {batch} sequences of {new}"
            found.append(Figure(name, batch * new / (time.perf_counter() - began), "tokens/s"))
        del model
    return found


def server(url: str, name: str, text: str, n: int, new: int, count: Callable[[str], int]) -> list[Figure]:
    """tokens/s of one request for n completions of one prompt, which a server may read once and share.

    Args: count: tokens of a text; a server's own account may cover one completion of the n.
    """
    from openai import OpenAI

    client = OpenAI(base_url=url, api_key="none", timeout=3600, max_retries=0)
    full = {"ignore_eos": True}  # known to llama.cpp and vLLM
    ask = lambda steps: client.completions.create(
        model=name, prompt=text, n=n, max_tokens=steps, temperature=1.0, extra_body=full
    )
    ask(1)
    began = time.perf_counter()
    choices = ask(new).choices
    seconds = time.perf_counter() - began
    if len(choices) != n:
        raise ValueError(f"{url}: asked for {n} completions, got {len(choices)}")
    made = sum(min(new, count(choice.text)) for choice in choices)
    return [Figure(f"server {name}, one request, {n} completions of {made / n:.0f} tokens", made / seconds, "tokens/s")]
