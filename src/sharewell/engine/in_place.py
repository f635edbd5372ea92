"""Counts in place: every purchase is one aggregate statement on the engine, and no row is copied.

The requests of a batch tell some cells apart and not others. The statement numbers the groups of cells
that are alike for all of them, and counts the rows of each number in one pass. What comes back is a
small table of cells, one for each group that has rows, on which the requests have the same answers as
on all.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sharewell.engine.base import COMPUTED_ROWS, Columns, Engine, within
from sharewell.engine.cells import Type
from sharewell.engine.data_vector import SparseCells
from sharewell.engine.vectorize import code_names, kept_rows, sums_of_vectors
from sharewell.errors import QueryTooComplex, SharewellError, SourceUnavailable
from sharewell.query.block import Answerable, Marginal
from sharewell.query.diagram import Node
from sharewell.query.domain import MAX_CELLS, Domain
from sharewell.query.linear import LinearQuery

_log = logging.getLogger(__name__)

#: Requests share the groups of one part of a statement while they are so few.
MAX_SHARED_GROUPS = 2**16
#: Up to so many runs of cells are told apart by a CASE; otherwise each cell is a class of its own.
MAX_RUNS = 500

Groups = Mapping[int, NDArray[np.int64]]
#: The class of each cell of an attribute, -1 where no request has a weight; None where all are alike.
Classes = NDArray[np.int64] | None


class InPlaceData:
    """A table that stays on its engine, behind the interface of a data vector.

    Every call runs one statement and returns `deadline` seconds after it began, whatever the engine
    took: neither the time nor a failure says more than whether the engine was done by then.

    Privacy: the rows of a person are limited in every statement, and the same rows are kept each time,
    because the choice is a keyed hash of their content.
    """

    def __init__(
        self,
        domain: Domain,
        open_engine: Callable[[], Engine],
        *,
        privacy_unit: str | None = None,
        max_rows_per_person: int = 1,
        key: str = "",
        deadline: float,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.domain = domain
        self.max_rows_per_person = max_rows_per_person
        #: What the source said last about its version, as a hash; None where it says nothing.
        self.fingerprint: str | None = None
        self._open = open_engine
        self._unit, self._key = privacy_unit, key
        self._deadline, self._wait = deadline, wait
        #: An engine that is slow to open is kept.
        self._kept: Engine | None = None
        engine = open_engine()
        try:
            # Refuses columns of other types now, before anything is charged.
            kept_rows(domain, engine, privacy_unit, most=max_rows_per_person, key=key)
        except SharewellError:
            engine.close()
            raise
        self._put_back(engine)

    def require_answerable(self, rows: Answerable) -> None:
        """Refuse rows that tell too many groups of cells apart; public, reads nothing."""
        for call in _record(rows, self.domain):
            _Part(self.domain).with_call(call)

    def answer(self, query: LinearQuery) -> int:
        """Return the exact answer of a query with integer weights."""
        [found] = self._results([_Call("answer", (query,))])
        return int(found)

    def answers_together(self, blocks: Sequence[Answerable]) -> list[NDArray[np.int64]]:
        """Return the exact answers of every row of several blocks, in one pass over the table."""
        recorded = [_record(rows, self.domain) for rows in blocks]
        results = iter(self._results([call for calls in recorded for call in calls]))
        return [rows.answers(_Replay(results)) for rows in blocks]

    def _results(self, calls: Sequence[_Call]) -> list[Any]:
        """Run the calls as one statement; the result leaves at the deadline, as does a failure."""
        if not calls:
            return []
        until = time.monotonic() + self._deadline
        found: list[Any] | None = None
        opened: list[Engine] = []

        def cancel() -> None:
            for engine in opened:
                engine.cancel()

        try:
            found, self.fingerprint = within(self._deadline, lambda: self._run(calls, opened), cancel)
        except TimeoutError:
            _log.error("A statement took longer than dataset.deadline; it is tried again.")
        except SharewellError as error:
            _log.error("A statement failed, and is tried again. %s", error)
        except Exception as error:
            # Its text may quote a row.
            _log.error("A statement failed, and is tried again: %s.", type(error).__name__)
        if found is None:
            self._kept = None
        self._wait(max(until - time.monotonic(), 0.0))
        if found is None:
            raise SourceUnavailable(
                "The source of the data does not answer.",
                hint="Ask again later with the same key; it is charged at most once.",
            )
        return found

    def _run(self, calls: Sequence[_Call], opened: list[Engine]) -> tuple[list[Any], str | None]:
        parts, part_of = _parts(self.domain, calls)
        engine, self._kept = self._kept or self._open(), None
        opened.append(engine)
        try:
            rows = kept_rows(
                self.domain, engine, self._unit, most=self.max_rows_per_person, key=self._key
            )
            found = engine.fetch(group_counts(self.domain, parts, rows))
            # After the statement: a change that it has seen is not missed.
            version = engine.version()
        except BaseException:
            with suppress(Exception):
                engine.close()
            raise
        self._put_back(engine)
        cells = [part.cells_of(found, at) for at, part in enumerate(parts)]
        results = [call.on(cells[at]) for call, at in zip(calls, part_of, strict=True)]
        return results, None if version is None else sha256(version.encode()).hexdigest()

    def _put_back(self, engine: Engine) -> None:
        if engine.slow_to_open:
            self._kept = engine
        else:
            engine.close()

    def __repr__(self) -> str:
        return f"InPlaceData({', '.join(self.domain.names)}: {self.domain.cells:,} cells)"


# Requests


@dataclass(frozen=True, eq=False)
class _Call:
    """A call of a method of a data vector: recorded, and later made on the cells that were fetched."""

    method: str
    arguments: tuple[Any, ...]

    def on(self, cells: SparseCells) -> Any:
        return getattr(cells, self.method)(*self.arguments)

    def classes(self, domain: Domain) -> Iterator[tuple[int, Classes]]:
        """Return which cells of each attribute the call tells apart."""
        if self.method == "marginals":
            [[wanted]] = self.arguments
            for level in wanted.levels:
                yield level, np.arange(domain.shape[level])
            return
        query, groups = self.arguments[0], self.arguments[1] if len(self.arguments) > 1 else {}
        nodes = [] if query.root is None else [query.root]
        for level, attribute in enumerate(domain.attributes):
            yield level, _classes(nodes, attribute.size, groups.get(level))
            nodes = list({id(child): child for node in nodes for child in node.children}.values())


class _Recorder:
    """Takes calls as a data vector does, and answers with zeros."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.calls: list[_Call] = []

    def answer(self, query: LinearQuery) -> int:
        self.calls.append(_Call("answer", (query,)))
        return 0

    def by_group(self, query: LinearQuery, groups: Groups) -> NDArray[np.int64]:
        self.calls.append(_Call("by_group", (query, groups)))
        return np.zeros([int(of_cell.max()) + 1 for of_cell in groups.values()], dtype=np.int64)

    def marginals(self, wanted: Sequence[Marginal]) -> list[NDArray[np.int64]]:
        self.calls += [_Call("marginals", ([each],)) for each in wanted]
        shapes = [
            (len(vectors), *(self.domain.shape[at] for at in levels)) for levels, vectors in wanted
        ]
        return [np.zeros(shape, dtype=np.int64) for shape in shapes]


class _Replay:
    """Takes the same calls in the same order, and answers with their results."""

    def __init__(self, results: Iterator[Any]) -> None:
        self._results = results

    def answer(self, query: LinearQuery) -> int:
        return int(next(self._results))

    def by_group(self, query: LinearQuery, groups: Groups) -> NDArray[np.int64]:
        return np.asarray(next(self._results))

    def marginals(self, wanted: Sequence[Marginal]) -> list[NDArray[np.int64]]:
        return [np.asarray(next(self._results)[0]) for _ in wanted]


def _record(rows: Answerable, domain: Domain) -> list[_Call]:
    """Return the calls that answering rows makes; they depend on the rows alone."""
    recorder = _Recorder(domain)
    rows.answers(recorder)
    return recorder.calls


# Classes of cells


def _classes(nodes: Sequence[Node], size: int, groups: NDArray[np.int64] | None) -> Classes:
    """Return the classes of cells that lead to the same children with the same weights, in all nodes."""
    starts = [node.starts for node in nodes]
    if groups is not None:
        starts.append(np.flatnonzero(np.diff(groups, prepend=-1)))
    first = np.unique(np.concatenate([np.zeros(1, dtype=np.int64), *starts]))
    features: list[NDArray[np.int64]] = [] if groups is None else [groups[first]]
    has_weight = np.zeros(len(first), dtype=bool)
    for node in nodes:
        run = np.searchsorted(node.starts, first, "right") - 1
        features += [node.which[run], node.weights[run]]
        has_weight |= node.weights[run] != 0
    return _number_runs(features, has_weight, first, size)


def _number_runs(
    features: Sequence[NDArray[np.int64]],
    has_weight: NDArray[np.bool_],
    first: NDArray[np.int64],
    size: int,
) -> Classes:
    """Number the runs by all that tells them apart, from 0 on; those without a weight are -1."""
    numbers = np.zeros(len(first), dtype=np.int64)
    for each in features:
        pairs = numbers * (int(each.max()) - int(each.min()) + 1) + (each - each.min())
        numbers = np.unique(pairs, return_inverse=True)[1]
    classes = np.full(len(first), -1, dtype=np.int64)
    classes[has_weight] = np.unique(numbers[has_weight], return_inverse=True)[1]
    if not classes.any():
        return None
    if np.count_nonzero(np.diff(classes)) >= MAX_RUNS:
        return np.arange(size)
    return np.repeat(classes, np.diff(first, append=size))


def _merge(left: Classes, right: Classes) -> Classes:
    """Return classes that are as fine as both; a cell is dropped where both have no weight for it."""
    if left is None or right is None:
        other = right if left is None else left
        if other is None:
            return None
        # All cells have a weight in the one.
        return _number_runs([other], np.ones(len(other), dtype=bool), np.arange(len(other)), len(other))
    has_weight = (left >= 0) | (right >= 0)
    return _number_runs([left, right], has_weight, np.arange(len(left)), len(left))


class _Part:
    """The groups of cells that some calls tell apart: a combination of classes of each attribute."""

    def __init__(self, domain: Domain, classes: Mapping[int, NDArray[np.int64]] | None = None) -> None:
        self.domain = domain
        #: By level; attributes whose cells are all alike are left out.
        self.classes = classes
        self.shape = [max(int(of_cell.max()) + 1, 1) for of_cell in (classes or {}).values()]
        if self.groups > MAX_CELLS:
            raise QueryTooComplex(
                f"The question distinguishes more than {MAX_CELLS:,} groups of rows, too many for a "
                "table that is measured in place.",
                hint="Use conditions on fewer columns.",
            )

    @property
    def groups(self) -> int:
        return prod(self.shape)

    def with_call(self, call: _Call) -> _Part:
        own = dict(call.classes(self.domain))
        merged = {
            level: own.get(level)
            if self.classes is None
            else _merge(self.classes.get(level), own.get(level))
            for level in range(len(self.domain.attributes))
        }
        return _Part(self.domain, {at: each for at, each in merged.items() if each is not None})

    def number(self) -> exp.Expression:
        """Return the number of a row's group, which is NULL for a row that no call has a weight for."""
        total: exp.Expression = exp.cast(exp.Literal.number(0), Type.BIGINT)
        names, stride = code_names(self.domain), self.groups
        for (level, of_cell), size in zip((self.classes or {}).items(), self.shape, strict=True):
            stride //= size
            own = exp.cast(_class_of(exp.column(names[level]), of_cell), Type.BIGINT)
            total = exp.Add(this=total, expression=exp.Mul(this=own, expression=_number(stride)))
        return total

    def cells_of(self, found: Columns, part: int) -> SparseCells:
        """Return the groups that have rows, each as one of its cells."""
        mine = np.full(len(found["place"]), True) if "part" not in found else found["part"] == part
        places = np.unravel_index(found["place"][mine].astype(np.int64), self.shape or [1])
        codes = [np.zeros(len(places[0]), dtype=np.int64) for _ in self.domain.attributes]
        for (level, of_cell), place in zip((self.classes or {}).items(), places, strict=False):
            known, first = np.unique(of_cell, return_index=True)
            codes[level] = first[known >= 0][place]
        sums = np.stack([found[name][mine].astype(np.int64) for name in sums_of_vectors(self.domain)])
        return SparseCells(self.domain, codes, sums)


def _parts(domain: Domain, calls: Sequence[_Call]) -> tuple[list[_Part], list[int]]:
    """Return the parts of a statement, and the part of each call: calls share one where it is small."""
    parts: list[_Part] = []
    part_of: list[int] = []
    for call in calls:
        for at, part in enumerate(parts):
            with suppress(QueryTooComplex):
                shared = part.with_call(call)
                if shared.groups <= max(MAX_SHARED_GROUPS, part.groups):
                    parts[at] = shared
                    part_of.append(at)
                    break
        else:
            parts.append(_Part(domain).with_call(call))
            part_of.append(len(parts) - 1)
    return parts, part_of


# The statement


def group_counts(domain: Domain, parts: Sequence[_Part], rows: exp.Select) -> exp.Select:
    """Return the statement that counts the rows of each group of each part, and sums their measures.

    Several parts are one pass too: each row is counted once in every part, by its group there.
    """
    people = exp.select().from_(rows.subquery(COMPUTED_ROWS))
    keys = ["place"]
    if len(parts) == 1:
        place = parts[0].number()
    else:
        keys = ["part", "place"]
        part = exp.column("part", table="parts")
        numbered = [exp.select(_number(at).as_("part")) for at in range(len(parts))]
        listed: Any = numbered[0]
        for each in numbered[1:]:
            listed = exp.union(listed, each, distinct=False, copy=False)
        people = people.select(part).join(listed.subquery("parts"), join_type="cross")
        place = exp.Case(
            this=part.copy(),
            ifs=[exp.If(this=_number(at), true=each.number()) for at, each in enumerate(parts)],
        )
    values = [f"value_{i}" for i in range(len(domain.measures))]
    people = people.select(place.as_("place"), *values)
    sums = [sum_.as_(name) for name, sum_ in sums_of_vectors(domain).items()]
    grouped = exp.select(*keys, *sums).from_(people.subquery("placed"))
    return grouped.where(exp.column("place").is_(exp.null()).not_()).group_by(*keys)


def _class_of(code: exp.Column, of_cell: NDArray[np.int64]) -> exp.Expression:
    """Return the class of a code by binary search among the runs of cells of one class."""
    if np.array_equal(of_cell, np.arange(len(of_cell))):
        return code
    starts = np.flatnonzero(np.diff(of_cell, prepend=-2))

    def halve(first: int, last: int) -> exp.Expression:
        if last - first == 1:
            number = int(of_cell[starts[first]])
            return exp.null() if number < 0 else _number(number)
        middle = (first + last) // 2
        below = code.copy() < _number(int(starts[middle]))
        return exp.Case(ifs=[exp.If(this=below, true=halve(first, middle))], default=halve(middle, last))

    return halve(0, len(starts))


def _number(value: int) -> exp.Expression:
    return exp.Literal.number(value)
