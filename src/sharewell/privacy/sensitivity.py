"""What one row of the table can change, computed by the kernel from public weights.

A mechanism hands over a block or a strategy. What that states about itself does not count: the kernel
rebuilds the rows from their weights alone, before any charge, and computes their sensitivity, and later
their answers, from its own copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from sharewell.errors import PrivacyError
from sharewell.privacy.kronecker import ComposedRows, KroneckerProduct, KroneckerRows
from sharewell.query.block import Block, GroupedBlock, Measurable, ParallelBlock
from sharewell.query.diagram import TERMINAL, Node, are_disjoint
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: The kernel's own rows.
Rows = Block | KroneckerRows | ComposedRows


def checked(block: Measurable, domain: Domain) -> Rows:
    """Rebuild the rows of a block, and refuse those that claim to be disjoint and are not.

    The time is that of one pass over the weights.
    """
    rows = rebuilt(block, domain)
    if len(rows) != len(block):
        raise PrivacyError(
            f"The {type(block).__name__} does not have the number of rows that it states."
        )
    if type(rows) is ParallelBlock and not are_disjoint(
        [query.root for query in rows if query.root], len(domain.attributes)
    ):
        raise PrivacyError(
            "Two rows of a parallel block overlap in a cell.", hint="Measure them as a Block."
        )
    return rows


def rebuilt_queries(queries: Iterable[Any], domain: Domain) -> list[LinearQuery]:
    """Copy the public weights of queries over the data's domain, and none of their code.

    A query is mutable to those who insist, and remembers what it computed: only a copy is as it was
    checked. Its diagram must have the shape of the domain, or it would leave cells out unseen.
    """
    rows, domains = list[LinearQuery](), dict[int, Any]()
    for query in queries:
        if type(query) is not LinearQuery:
            raise _cannot_measure(query)
        rows.append(LinearQuery(domain, query.scale, query.root))
        domains[id(query.domain)] = query.domain
    for each in domains.values():
        _require_same(domain, each)
    if not all(type(row.scale) is Fraction for row in rows):
        raise PrivacyError("The scale of a query must be a Fraction.")
    if not _have_shape([row.root for row in rows if row.root is not None], domain.shape):
        raise PrivacyError("The block and the data have different domains.")
    return rows


def rebuilt(block: Any, domain: Domain) -> Rows:
    """Copy the public weights of a block or a strategy over the data's domain, and none of its code."""
    if isinstance(block, GroupedBlock):
        _require_same(domain, block.domain)
        [base] = rebuilt_queries([block.base], domain)
        return GroupedBlock(base, block.groups, block.places)
    if isinstance(block, Block):
        _require_same(domain, block.domain)
        kind = ParallelBlock if isinstance(block, ParallelBlock) else Block
        return kind(domain, rebuilt_queries(block.queries, domain))
    name = str(getattr(block, "name", ""))
    if isinstance(products := getattr(block, "products", None), Sequence):
        _require_same(domain, block.domain)
        return ComposedRows(domain, products, name, getattr(block, "plans", None))
    if isinstance(parts := getattr(block, "parts", None), Sequence):
        _require_same(domain, block.domain)
        return KroneckerRows(domain, tuple(_product(part, domain) for part in parts), name)
    raise _cannot_measure(block)


def _product(part: Any, domain: Domain) -> KroneckerProduct:
    """Copy a part of a strategy: one matrix for each attribute."""
    if type(part) is KroneckerProduct:
        return KroneckerProduct(domain, part.factors)
    pairs = zip(range(len(domain.shape)), part, strict=True)
    return KroneckerProduct(domain, {level: rows.matrix for level, rows in pairs})


def _cannot_measure(given: object) -> PrivacyError:
    return PrivacyError(
        f"Cannot measure a {type(given).__name__}.",
        hint="Pass a query or a block, such as those of compile_sql(...).blocks.",
    )


def _require_same(domain: Domain, stated: object) -> None:
    """Refuse another domain than the data's; a subclass could call itself equal to any."""
    if stated is not domain and not (type(stated) is Domain and stated == domain):
        raise PrivacyError("The block and the data have different domains.")


def _have_shape(level: Sequence[Node], shape: Sequence[int]) -> bool:
    """Whether every path through the diagrams has one node of the right size for each attribute."""
    for size in shape:
        if not all(type(node) is Node and node.size == size and node.children for node in level):
            return False
        level = list({id(child): child for node in level for child in node.children}.values())
    return all(node is TERMINAL for node in level)
