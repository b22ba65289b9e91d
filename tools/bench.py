"""Speed, as ratios inside one run on one machine: medians of alternating repeats.

    python -m tools.bench --parts=decode,refill,scaling,early,arms,startup,memory --out=bench.json
    python -m tools.bench --parts=decode --transformers=bfloat16,float32 --batches=32   # wants torch and accelerate
    python -m tools.bench --parts=decode --server=http://127.0.0.1:8080/v1              # a server you started

decode        tokens/s of n chains after one prompt; FLOP/s beside the machine's own matrix product; in turn with them
              generate of transformers in these precisions, and one request for n completions to a server
refill        useful tokens/s and slot occupancy where chains stop at different lengths
scaling       decode over slots, prompt and chain length
early         early answers at 20 positions against one teacher-forced pass and against every prefix anew
arms          a record's prompts read after what they share, its no-CoT answers asked together
startup       seconds to --help and to the first logits; programs compiled
memory        bytes beside the weights, by the compiler's account

The bootstrap has a program of its own, tools/bench_bootstrap.py. Knows: the parts and their settings.
"""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata
from pathlib import Path

from absl import flags

from experiments import cli

PARTS = ("decode", "refill", "scaling", "early", "arms", "startup", "memory")


def main(argv: list[str]) -> None:
    f = flags.FLAGS
    if argv[1:]:
        raise ValueError(f"unexpected argument {argv[1]!r}")
    if strange := sorted(set(f.parts) - set(PARTS)):
        raise ValueError(f"--parts: {', '.join(strange)} unknown (have {', '.join(PARTS)})")
    if (f.transformers or f.server) and "decode" not in f.parts:
        raise ValueError("--transformers and --server are timed beside --parts=decode")
    import jax

    from models.loading import load
    from tools import bench_arms, bench_decode, bench_early, bench_others, bench_programs

    model = load(f.model, f.dtype)
    shape = (f.prompt, f.length, f.slots)

    def rivals() -> dict[str, bench_others.Rival]:
        found: dict[str, bench_others.Rival] = {}
        if f.transformers:
            shape = (model.vocabulary, f.prompt, f.length)
            found |= bench_others.transformers(Path(f.model), *shape, tuple(map(int, f.batches)), f.transformers)
        if f.server:
            text = "The committee met on Tuesday. " * (f.prompt // 6)  # about as many tokens
            count = lambda said: len(model.tokenizer.encode(said).ids)
            found |= bench_others.server(f.server, f.server_model, text, f.server_n, f.length, count)
        return found

    work = {
        "decode": lambda: bench_decode.decode(model, f.chains, *shape, f.repeats, rivals()),
        "refill": lambda: bench_decode.refill(model, f.chains, *shape, f.repeats),
        "scaling": lambda: bench_decode.scaling(model, *shape, f.repeats),
        "early": lambda: bench_early.early(model, f.early_chains, f.prompt, f.early_length, f.slots, f.repeats),
        "arms": lambda: bench_arms.arms_of_a_record(model, f.slots, f.length, 64, f.repeats),
        "startup": lambda: bench_programs.startup(f.repeats) + bench_programs.compilations(model),
        "memory": lambda: bench_programs.memory(model, *shape),
    }
    found = {}
    for part in f.parts:
        found[part] = work[part]()
        print(f"-- {part}", *(figure.line() for figure in found[part]), sep="\n", flush=True)
    if f.out:
        result = {
            "machine": {
                "cpus": os.cpu_count(),
                "platform": platform.platform(),
                "device": jax.devices()[0].device_kind,
            },
            "versions": {name: metadata.version(name) for name in ("jax", "jaxlib", "flax", "numpy")},
            "settings": {name: f[name].value for name in SETTINGS},
            "figures": {part: [vars(x) for x in figures] for part, figures in found.items()},
        }
        Path(f.out).write_text(json.dumps(result, indent=1) + "\n")


SETTINGS = ("model", "dtype", "chains", "prompt", "length", "slots", "repeats", "early_chains", "early_length")

if __name__ == "__main__":
    flags.DEFINE_list(
        "parts", ["decode", "refill", "early", "arms", "startup", "memory"], f"Any of {', '.join(PARTS)}."
    )
    flags.DEFINE_string("model", "weights/qwen2.5-coder-0.5b-instruct.gguf", "A checkpoint.")
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "Of our own parameters and activations.")
    flags.DEFINE_string("out", "", "A JSON file for the figures.")
    flags.DEFINE_integer("chains", 256, "Chains.", 1)
    flags.DEFINE_integer("prompt", 512, "Tokens of the prompt.", 1)
    flags.DEFINE_integer("length", 128, "Tokens of a chain.", 1)
    flags.DEFINE_integer("slots", 128, "Chains in flight.", 1)
    flags.DEFINE_integer("repeats", 3, "Timed calls of each.", 1)
    flags.DEFINE_list("transformers", [], "Precisions in which transformers draws the same beside; none: not at all.")
    flags.DEFINE_list("batches", ["32"], "num_return_sequences of transformers.")
    flags.DEFINE_string("server", "", "Base URL of an OpenAI-compatible server with the same weights.")
    flags.DEFINE_string("server_model", "default", "Its model's name.")
    flags.DEFINE_integer("server_n", 32, "Completions per request.", 1)
    flags.DEFINE_integer("early_chains", 8, "Chains of the part `early`.", 1)
    flags.DEFINE_integer("early_length", 256, "Tokens of a chain of the part `early`.", 1)
    cli.start(main)
