"""Real records of each of the four sets and a real pretrained model, small: Qwen2.5-Coder-0.5B-Instruct, 20 records.

Claim: none; it shows what a small model answers with and without a chain of thought, and that every set works on real
input. n is far too small for a score, and the model is far smaller than the paper's and has no thinking channel.
Cost: 10 to 33 minutes of processor time a set, chains included.
Command: python -m tools.fetch_weights qwen2.5-coder-0.5b-instruct --out weights/
         python -m experiments.answer_rates --config=experiments/configs/sets_qwen25.py:NAME --workdir=runs/rates-NAME
         python -m experiments.answer_rates --runs=runs/rates-thyroid,runs/rates-olympic,... --workdir=runs/rates
         python -m experiments.monitorability --config=experiments/configs/sets_qwen25.py:NAME --workdir=runs/rates-NAME
         with NAME one of thyroid, olympic, ddxplus, hinted_mcqa; the third draws the X = 0 arms beside what is there.
Expected: the rates in experiments/results/README.md; the X = 0 arms have not been drawn.
"""

from ml_collections.config_dict import ConfigDict

from experiments.configs.base import base

CHOICE = {  # classes and records of each: 20 records
    "thyroid": {"per_label": 2},
    "olympic": {
        "labels": (
            *("Athletics", "Basketball", "Boxing", "Canoeing", "Football"),
            *("Ice Hockey", "Rowing", "Shooting", "Swimming", "Wrestling"),
        ),
        "per_label": 2,
    },
    "ddxplus": {
        "labels": (
            *("AFN", "ANE", "APH", "BCT", "BRT", "CHG", "CRH", "DYS", "EPG", "GBS"),
            *("HVI", "IGH", "LRG", "LUN", "MYG", "NSM", "PEB", "PNK", "PTX", "TBC"),
        ),
        "per_label": 1,
    },
    "hinted_mcqa": {"per_label": 5},
}


def get_config(name: str = "thyroid") -> ConfigDict:
    if name not in CHOICE:
        raise ValueError(f"no set {name!r} (have {', '.join(CHOICE)})")
    c = base()
    c.task = name
    c.update(CHOICE[name])
    c.model = "weights/qwen2.5-coder-0.5b-instruct.gguf"
    c.n = 8
    c.stage1 = 8
    c.length = 256
    c.slots = 8
    c.shard = 16
    c.bucket = 128
    return c
