"""Signed rows: whether to measure a single count with weights w from 0 to u as the row 2w - u.

Under add-remove both rows cost the same and have the same noise. With T the number of all rows of the
table, the count is half of the signed row plus u T / 2: where T is known well, that has a quarter of the
variance. Where T is known badly it has more. So it is decided before anything is measured, and stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sharewell.errors import PrivacyError
from sharewell.mechanisms.base import Question
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.query.block import ParallelBlock
from sharewell.query.linear import LinearQuery

#: How many counts are compared, at most, and how many of one question.
MOST_COUNTS, MOST_OF_QUESTION = 64, 8


def signing_helps(mechanism: CacheReconstruct, questions: Iterable[Question]) -> bool:
    """Whether the counts among some questions are more precise if each is bought as a signed row.

    `mechanism` is that of the analyst with the smallest share, alone, before any purchase: nowhere is
    the total known worse. It must be determined there.

    Privacy: costs nothing; no row is read.
    """
    curator, known = mechanism.curator, mechanism._reconstruction
    if curator.neighbours != "add-remove" or not mechanism.best_estimates:
        return False
    if not math.isfinite(known.estimate([LinearQuery.all(mechanism.domain)])[1][0]):
        return False
    plain = signed = 0.0
    for block in islice(_counts(questions), MOST_COUNTS):
        if block.signed is None:
            continue
        for rows in (block.primitive, block.signed):
            try:
                noise = curator.variances(rows, mechanism.query_budget)
            except PrivacyError:
                return False  # Too little to measure anything with.
            # In units of the largest weight, so that no sum outweighs all counts.
            unit = float(block.primitive[0].max_abs)
            variance = float(known.variances_after(block.primitive, rows, noise)[0]) / unit**2
            if rows is block.primitive:
                plain += variance
            else:
                signed += variance
    return signed < plain


def _counts(questions: Iterable[Question]) -> Iterator[ParallelBlock]:
    """Queries of all questions, each as if it were asked alone; a few of those with many."""
    for question in questions:
        queries: Sequence[LinearQuery] = (
            [question] if isinstance(question, LinearQuery) else tuple(question)
        )
        step = max(1, len(queries) // MOST_OF_QUESTION)
        for query in queries[step // 2 :: step]:
            if not query.is_zero:
                yield ParallelBlock(query.domain, [query])
