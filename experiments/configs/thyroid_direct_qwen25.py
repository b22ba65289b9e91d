"""Direct effects on real records with a real pretrained model, small: Qwen2.5-Coder-0.5B-Instruct, thyroid class A.

Claim: none; it shows that every part of a direct-effect study works on real input. The filters are opened wide (τ is
0.01 on 8 chains, any p10) so that some pairs pass: what passes is mostly noise, and no level can follow from it.
Measured: see models/qwen/README.md.
Cost: 3 records × 4 arms × 16 chains of at most 256 tokens, some windows: three quarters of an hour on 2 busy cores.
Command: python -m tools.fetch_weights qwen2.5-coder-0.5b-instruct --out weights/
         python -m experiments.direct_effect --config=experiments/configs/thyroid_direct_qwen25.py --workdir=runs/direct
"""

from ml_collections.config_dict import ConfigDict

from experiments.configs.base import base


def get_config() -> ConfigDict:
    c = base()
    c.task = "thyroid"
    c.labels = ("A",)
    c.per_label = 3
    c.attributes = ("sex", "TSH", "T3")
    c.model = "weights/qwen2.5-coder-0.5b-instruct.gguf"
    c.n = 8
    c.stage1 = 8
    c.drop_below = -1.0
    c.tau = 0.01
    c.p10_max = 1.0
    c.min_records = 0
    c.length = 256
    c.slots = 64
    c.shard = 16
    c.direct_chains = 8
    c.windows = (1, 16, 64)
    c.window_starts = 4
    c.window_chains = 4
    return c
