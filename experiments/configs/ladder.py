"""Direct effects and exposure windows on the embedded organism whose levels are known.

Claim: stamp is on level 1 (DE/TE near 1), levy on level 2 (DE/TE near 0, one step of exposure is enough), toll on level
3.2 and tariff on 3.4 (no shorter window brings an effect); memo, the placebo, has none.
Cost: about 19,000 chains for the arms, 46,000 in windows, three times 20 early answers of 1,500 chains.
Command: python -m experiments.direct_effect --config=experiments/configs/ladder.py --workdir=runs/ladder
Expected: see models/organisms/ladder/README.md.
"""

from ml_collections.config_dict import ConfigDict

from experiments.configs.base import base


def get_config() -> ConfigDict:
    c = base()
    c.task = "ladder"
    c.model = "models/organisms/ladder"
    c.per_label = 8
    c.n = 200
    c.stage1 = 200
    c.drop_below = -1.0
    c.direct_chains = 48
    c.window_chains = 12
    return c
