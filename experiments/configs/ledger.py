"""The main job on the embedded organism, whose true scores are known.

Claim: measured M0 and M1 of every attribute agree with the truth computed from the generating process; the silent
attributes score 0 although the chain of thought is necessary; the placebo has no effect.
Cost: about 220,000 chains of 20 tokens, 2 to 3 minutes on 2 cores.
Command: python -m experiments.monitorability --config=experiments/configs/ledger.py --workdir=runs/ledger
Expected: see models/organisms/ledger/README.md.
"""

from ml_collections.config_dict import ConfigDict

from experiments.configs.base import base


def get_config() -> ConfigDict:
    return base()
