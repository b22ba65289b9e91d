"""Real records and a real pretrained model, small: Qwen2.5-Coder-0.5B-Instruct on the Thyroid Disease set.

Claim: none; it shows that every part works on real input. n is far too small for a score, and the model is far smaller
than the paper's and has no thinking channel.
Cost: 3 records × (1 + about 20) arms × 8 or 16 chains of at most 256 tokens: about half an hour on 2 cores.
Command: python -m tools.fetch_weights qwen2.5-coder-0.5b-instruct --out weights/
         python -m experiments.monitorability --config=experiments/configs/thyroid_qwen25.py --workdir=runs/thyroid
"""

from ml_collections.config_dict import ConfigDict

from experiments.configs.base import base


def get_config() -> ConfigDict:
    c = base()
    c.task = "thyroid"
    c.labels = ("G", "I", "R")
    c.per_label = 1
    c.model = "weights/qwen2.5-coder-0.5b-instruct.gguf"
    c.n = 8
    c.stage1 = 8
    c.length = 256
    c.slots = 64
    c.shard = 16
    return c
