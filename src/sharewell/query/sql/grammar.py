"""The trees that the words may form: a list of what is allowed, so that all else is refused.

The parser is forgiving. It reads `BETWEEN 1 2`, `ORDER BY n, , m` or a keyword as a name without
complaint. So a tree must also account for every word: as many ANDs, commas and numbers as its nodes
are written with, no more and no fewer.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from sqlglot import Token, TokenType, exp

from sharewell.errors import SqlError, SqlSyntaxError
from sharewell.query.sql.text import MAX_DEPTH, SqlText, shortened, too_deep
from sharewell.query.sql.vocabulary import FUNCTIONS, JOIN, NAMES, SUBQUERY, WORDS, unknown_word


class _Shape(NamedTuple):
    """What a kind of node may have, and which words it is written with."""

    arguments: frozenset[str]
    words: tuple[TokenType, ...] = ()


def _shape(arguments: str, *words: TokenType) -> _Shape:
    return _Shape(frozenset(arguments.split()), words)


_SHAPES: dict[type[exp.Expr], _Shape] = {
    exp.Select: _shape("expressions from_ where group having order limit", TokenType.SELECT),
    exp.From: _shape("this", TokenType.FROM),
    exp.Table: _shape("this alias"),
    exp.TableAlias: _shape("this"),
    exp.Column: _shape("this table"),
    exp.Identifier: _shape("this quoted"),
    exp.Alias: _shape("this alias"),
    exp.Count: _shape("this big_int"),
    exp.Sum: _shape("this"),
    exp.Avg: _shape("this"),
    exp.Star: _shape("", TokenType.STAR),
    exp.Filter: _shape("this expression", TokenType.FILTER),
    exp.Where: _shape("this", TokenType.WHERE),
    exp.Case: _shape("ifs default", TokenType.CASE, TokenType.END),
    exp.If: _shape("this true", TokenType.WHEN, TokenType.THEN),
    exp.Group: _shape("expressions", TokenType.GROUP_BY),
    exp.Having: _shape("this", TokenType.HAVING),
    exp.Order: _shape("expressions", TokenType.ORDER_BY),
    exp.Ordered: _shape("this desc nulls_first"),
    exp.Limit: _shape("expression", TokenType.LIMIT),
    exp.Paren: _shape("this"),
    exp.And: _shape("this expression", TokenType.AND),
    exp.Or: _shape("this expression", TokenType.OR),
    exp.Not: _shape("this", TokenType.NOT),
    exp.Is: _shape("this expression", TokenType.IS),
    exp.In: _shape("this expressions", TokenType.IN),
    exp.Between: _shape("this low high", TokenType.BETWEEN, TokenType.AND),
    exp.Like: _shape("this expression negate", TokenType.LIKE),
    exp.Escape: _shape("this expression", TokenType.ESCAPE),
    exp.EQ: _shape("this expression", TokenType.EQ),
    exp.NEQ: _shape("this expression", TokenType.NEQ),
    exp.LT: _shape("this expression", TokenType.LT),
    exp.LTE: _shape("this expression", TokenType.LTE),
    exp.GT: _shape("this expression", TokenType.GT),
    exp.GTE: _shape("this expression", TokenType.GTE),
    exp.Neg: _shape("this", TokenType.DASH),
    exp.Add: _shape("this expression", TokenType.PLUS),
    exp.Sub: _shape("this expression", TokenType.DASH),
    exp.Mul: _shape("this expression", TokenType.STAR),
    exp.Div: _shape("this expression", TokenType.SLASH),
    exp.Cast: _shape("this to"),
    exp.DataType: _shape("this"),
    exp.Literal: _shape("this is_string"),
    exp.Boolean: _shape("this"),
    exp.Null: _shape("", TokenType.NULL),
}

#: Words that stand for several.
_LONGHAND = {
    TokenType.ISNULL: (TokenType.IS, TokenType.NULL),
    TokenType.NOTNULL: (TokenType.NOT, TokenType.IS, TokenType.NULL),
}
#: Words that are not counted: names are looked at one by one, and the others may be left out.
_UNCOUNTED = NAMES | {
    *(TokenType.ALIAS, TokenType.DOT, TokenType.DCOLON, TokenType.L_PAREN, TokenType.R_PAREN),
}
#: Words that no item of a list begins with.
_NO_ITEM = {
    TokenType.COMMA,
    TokenType.FROM,
    TokenType.R_PAREN,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
}
#: Words that look like names to the parser: these are never names, and those need not be.
_NEVER_NAMES = {"GROUP", "ORDER", "BY"}
_NO_NAMES = {*FUNCTIONS, "DATE", "NULLS", "FIRST", "LAST"}


def check_tree(source: SqlText, tree: exp.Expr) -> exp.Select:
    """Refuse a tree that is outside the grammar, or that some word is no part of."""
    words: list[TokenType] = []
    names: set[int] = set()
    depths: dict[int, int] = {}
    for node in tree.walk():
        _check_depth(source, node, depths)
        _check_arguments(source, node)
        words.extend(_words(node))
        if type(node) is exp.Identifier:
            names.add(node.meta.get("start", -1))
    if not isinstance(tree, exp.Select):
        raise _unknown_part(source, tree)
    _check_names(source, names)
    _check_census(source, tree, names, Counter(words))
    return tree


def _check_depth(source: SqlText, node: exp.Expr, depths: dict[int, int]) -> None:
    """Refuse a tree that is too deep for those who go down it; `depths` has those of nodes seen before.

    How deep Python itself can go depends on who calls. What was taken once must be taken again when the
    ledger is read, so the limit is one of ours.
    """
    in_chain = type(node) in (exp.And, exp.Or) and type(node) is type(node.parent)
    depth = depths.get(id(node.parent), 0) + (not in_chain)
    if depth > MAX_DEPTH:
        raise too_deep(source.at_node(node))
    depths[id(node)] = depth


def _check_arguments(source: SqlText, node: exp.Expr) -> None:
    shape = _SHAPES.get(type(node))
    if shape is None:
        raise _unknown_part(source, node)
    for key, value in node.args.items():
        if value and key not in shape.arguments:
            part = value[0] if isinstance(value, list) else value
            raise _unknown_part(source, part if isinstance(part, exp.Expr) else node)


def _words(node: exp.Expr) -> Iterable[TokenType]:
    """The words that a node itself is written with, without those of its parts."""
    own = _SHAPES[type(node)].words
    match node:
        case exp.Literal():
            return (TokenType.STRING if node.is_string else TokenType.NUMBER,)
        case exp.Boolean():
            return (TokenType.TRUE if node.this else TokenType.FALSE,)
        case exp.Like() if node.args.get("negate"):
            return (*own, TokenType.NOT)
        case exp.Case() if node.args.get("default"):
            return (*own, TokenType.ELSE)
        case exp.Ordered() if node.args.get("desc") is not None:
            return (TokenType.DESC if node.args["desc"] else TokenType.ASC,)
        case exp.Select() | exp.In() | exp.Group() | exp.Order():
            return (*own, *[TokenType.COMMA] * (len(node.expressions) - 1))
    return own


def _longhand(token: Token) -> tuple[TokenType, ...]:
    return _LONGHAND.get(token.token_type, (token.token_type,))


def _check_names(source: SqlText, names: Collection[int]) -> None:
    """Every word that could be a name is one, and no other word was taken for one."""
    for token in source.tokens:
        kind, text = token.token_type, token.text.upper()
        if token.start in names:
            fits = kind in NAMES or kind not in WORDS
            fits = fits and (kind is TokenType.IDENTIFIER or text not in _NEVER_NAMES)
        else:
            fits = kind in WORDS and (kind not in NAMES or text in _NO_NAMES)
        if not fits:
            raise _out_of_place(source, token) if kind in WORDS else unknown_word(source, token)


def _check_census(
    source: SqlText, tree: exp.Expr, names: Collection[int], words: Counter[TokenType]
) -> None:
    """The words of the tree are the words of the text."""
    written = Counter(
        word
        for token in source.tokens
        if token.start not in names
        for word in _longhand(token)
        if word not in _UNCOUNTED
    )
    for word in words - written:
        node = next(node for node in tree.walk() if word in _words(node))
        raise SqlSyntaxError(
            f"{word.name} is missing.", hint="Add it where it belongs.", where=source.at_node(node)
        )
    for word in written - words:
        raise _out_of_place(source, _stray(source, word))


def _stray(source: SqlText, word: TokenType) -> Token:
    """A word of which there are too many: a comma that nothing follows, or else the first."""
    pairs = itertools.pairwise(source.tokens)
    after_commas = (t for t, following in pairs if following.token_type in _NO_ITEM)
    candidates = [*after_commas, *source.tokens]
    return next(token for token in candidates if word in _longhand(token))


def _out_of_place(source: SqlText, token: Token) -> SqlSyntaxError:
    return SqlSyntaxError(
        f"{shortened(token.text)} is out of place, or a word next to it is missing.",
        hint="Look at the words around it.",
        where=source.at_token(token),
    )


def _unknown_part(source: SqlText, node: exp.Expr) -> SqlError:
    message, hint = "This part of the SQL is not answered.", "Leave it out."
    if isinstance(node, exp.Join):
        message, hint = JOIN
    elif isinstance(node, exp.Subquery):
        message, hint = SUBQUERY
    elif isinstance(node.parent, exp.Case):
        message, hint = "CASE takes conditions.", "Write CASE WHEN sex = 'F' THEN 1 END."
    return SqlError(message, hint=hint, where=source.at_node(node))
