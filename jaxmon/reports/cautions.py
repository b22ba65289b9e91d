"""What a reader must know beside a score's interval: where intervals of M were seen not to hold their level.

The figures are measured, in interval_coverage.csv (page: interval_coverage.md); a test holds the two together.

Knows: rows of the score table, settings. Does not know: how coverage was simulated (tools/interval_coverage.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxmon.counting.counts_schema import ALL
from jaxmon.estimation.cells import Settings
from jaxmon.estimation.table import Row

SMALL_MEAN = 0.15  # between the means 0.05, where skewed studies fell below 0.93, and 0.3, where none did
NEAR_ONE = 0.8  # between the means 0.7, where percentile intervals held their level, and 1, where they did not
SKEWED = {6: 0.75, 20: 0.87, 100: 0.96}  # records -> least coverage of the hull at mean M = 0.05, records unlike


def cautions(rows: Sequence[Row], settings: Settings) -> list[str]:
    """Sentences to stand beside the scores, each naming its attributes by their pooled M0; [] for nothing to say.

    Small mean: where a few records have a large M and most have none, a sample of records mostly lacks the few, and no
    interval made from the sample can know; it holds the mean over the records studied.
    Near one (percentile intervals only): estimate and replicates are clipped, so the interval lies below an M of 1.
    """
    found = []
    values = {r.attribute: r.value for r in rows if r.score == "M0" and r.label == ALL and r.value is not None}
    if small := [name for name, value in values.items() if value < SMALL_MEAN]:
        shares = ", ".join(f"{share:.2f} at {n}" for n, share in SKEWED.items())
        found.append(
            f"Small M ({', '.join(small)}): these intervals speak of the records studied. If a few of all records have "
            f"a much larger M, they hold the mean over all records less often than stated: simulated, {shares} records."
        )
    if settings.interval == "percentile" and (near := [name for name, value in values.items() if value > NEAR_ONE]):
        found.append(
            f"M near 1 ({', '.join(near)}): percentile intervals of a clipped score lie below 1 and hold a true M of 1 "
            "in less than half of all studies; the hull (the default) holds it."
        )
    return found
