"""An empirical audit: how much privacy was observed to be lost, with statistical confidence.

Run a mechanism many times on two neighbouring tables and hand over what it returned. Any event that is
much likelier on one table than on the other bounds its epsilon from below: epsilon >= log(p / q). Half
of the runs choose the event, the other half estimate its probabilities with Clopper-Pearson bounds, so
that the choice does not flatter the estimate. An audit can show that a claim is false, never that it is
true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

#: How many events are tried at the most.
MOST_EVENTS = 200


def observed_loss(
    left: Sequence[Hashable], right: Sequence[Hashable], *, confidence: float = 0.999
) -> float:
    """A lower bound on epsilon from the outputs of many runs on two neighbouring tables.

    Numeric outputs are distinguished by thresholds, all others by value. A private mechanism
    passes its epsilon with probability at most 1 - confidence.

    >>> observed_loss(["no"] * 5000, ["yes"] * 5000) > 5
    True
    """
    if min(len(left), len(right)) < 2:
        return 0.0
    events = _events([*left[: len(left) // 2], *right[: len(right) // 2]])
    chosen = _losses(left[: len(left) // 2], right[: len(right) // 2], events, confidence)
    judged = _losses(left[len(left) // 2 :], right[len(right) // 2 :], events, confidence)
    return max(0.0, float(judged[np.argmax(chosen)]))


def _events(outputs: Sequence[Any]) -> NDArray[Any] | list[Hashable]:
    """Cuts for numbers, single values for everything else."""
    if all(isinstance(output, int | float | np.number) for output in outputs):
        levels = np.linspace(0.0005, 0.9995, MOST_EVENTS)
        return np.unique(np.quantile(np.array(outputs, dtype=float), levels))
    return [outcome for outcome, _ in Counter(outputs).most_common(MOST_EVENTS)]


def _losses(
    left: Sequence[Any], right: Sequence[Any], events: NDArray[Any] | list[Hashable], confidence: float
) -> NDArray[np.float64]:
    """A lower bound on the loss that each event and each complement shows, in both directions."""
    p, q = _tally(left, events), _tally(right, events)
    return np.concatenate(
        [
            _log_ratio(p, len(left), q, len(right), confidence),
            _log_ratio(q, len(right), p, len(left), confidence),
        ]
    )


def _tally(runs: Sequence[Any], events: NDArray[Any] | list[Hashable]) -> NDArray[np.int64]:
    """How often each event happened, then how often each did not."""
    if isinstance(events, np.ndarray):
        happened = np.searchsorted(np.sort(np.array(runs, dtype=float)), events, side="right")
    else:
        counts = Counter(runs)
        happened = np.array([counts[outcome] for outcome in events])
    return np.concatenate([happened, len(runs) - happened])


def _log_ratio(
    likely: NDArray[np.int64],
    likely_runs: int,
    unlikely: NDArray[np.int64],
    runs: int,
    confidence: float,
) -> NDArray[np.float64]:
    """A lower confidence bound on log(p / q), each of p and q given half of the doubt."""
    doubt = (1 - confidence) / 2
    low = np.where(likely > 0, beta.ppf(doubt, np.maximum(likely, 1), likely_runs - likely + 1), 0.0)
    high = np.where(
        unlikely < runs, beta.ppf(1 - doubt, unlikely + 1, np.maximum(runs - unlikely, 1)), 1.0
    )
    return np.log(np.maximum(low, 1e-300) / high)
