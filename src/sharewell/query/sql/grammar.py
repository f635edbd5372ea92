"""The grammar: an allowlist of words, and of the trees that they may form.

Words are checked before parsing, because tokens know their location, and because the parser then never
has to guess at a word or warn about one. The parser is lenient: it accepts `BETWEEN 1 2`, `ORDER BY n, ,
m` or a keyword as a name without an error. So the tree must also account for every token: exactly as
many ANDs, commas and numbers as its nodes are written with.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from sqlglot import ParseError, Token, TokenType, exp
from sqlglot.dialects import DuckDB

from sharewell.errors import Location, QueryTooComplex, SqlError, SqlSyntaxError
from sharewell.query.sql.text import CLOSING, DIALECT, OPENING, Source, shortened

#: The maximum nesting of parentheses, CASE, NOT and signs. The parser is recursive: twice this depth
#: still leaves enough of Python's stack to the caller.
MAX_NESTING = 100
#: The maximum depth of the tree; a chain of ANDs, or of ORs, counts as one level. Each level takes up to
#: three nested calls: here, and for HAVING again once the answers are paid for.
MAX_DEPTH = 2 * MAX_NESTING + 20


def _types(names: str) -> tuple[TokenType, ...]:
    return tuple(TokenType[name] for name in names.split())


_PREFIXES = {*_types("NOT DASH PLUS")}

#: Tokens that may be names, and all allowed tokens.
NAMES = {*_types("VAR IDENTIFIER DATE FIRST")}
WORDS = NAMES | {
    *_types("NUMBER STRING NULL TRUE FALSE COMMA DOT L_PAREN R_PAREN DCOLON"),
    *_types("SELECT FROM WHERE GROUP_BY HAVING ORDER_BY ASC DESC LIMIT ALIAS FILTER"),
    *_types("AND OR NOT IS ISNULL NOTNULL EQ NEQ LT LTE GT GTE BETWEEN IN LIKE ESCAPE"),
    *_types("PLUS DASH STAR SLASH CASE WHEN THEN ELSE END"),
}
FUNCTIONS = {"COUNT", "SUM", "AVG", "CAST"}

#: A message and a hint.
Refusal = tuple[str, str]

JOIN = ("Joins are not supported.", "Query one table.")
SUBQUERY = ("Subqueries are not supported.", "Move their conditions into WHERE.")
_CAST = ("Only casts to DATE are supported.", "Write the value itself, or a date as DATE '2024-12-31'.")

#: Refusals of SQL keywords outside the vocabulary; `{}` stands for the token.
_REFUSALS: dict[TokenType, Refusal] = dict.fromkeys(DuckDB.parser_class.TYPE_TOKENS - WORDS, _CAST) | {
    token: (message, hint)
    for tokens, message, hint in (
        ("JOIN LEFT RIGHT INNER OUTER FULL CROSS NATURAL SEMI ANTI ASOF POSITIONAL LATERAL ON", *JOIN),
        (
            "UNION EXCEPT INTERSECT",
            "UNION, EXCEPT and INTERSECT are not supported.",
            "Run each SELECT as a separate query.",
        ),
        (
            "OVER WINDOW QUALIFY PARTITION_BY",
            "Window functions are not supported.",
            "Use GROUP BY, and compute on the result.",
        ),
        ("TABLE_SAMPLE USING", "Sampling is not supported.", "Remove the sampling clause."),
        ("OFFSET FETCH", "OFFSET and FETCH are not supported.", "Use ORDER BY and LIMIT."),
        (
            "PLACEHOLDER PARAMETER COLON DOLLAR",
            "Parameters are not supported.",
            "Write the value in the SQL text.",
        ),
        (
            "ILIKE GLOB SIMILAR_TO RLIKE COLLATE DPIPE TILDE",
            'Unsupported operator "{}".',
            "Use =, <>, IN or LIKE.",
        ),
        (
            "MOD DIV CARET DSTAR AMP PIPE HASH",
            'Unsupported operator "{}".',
            "Use +, -, * or / on constants.",
        ),
        (
            "INTERVAL CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP TIMESTAMP TIMESTAMPNTZ TIME",
            "The current time and intervals are not supported.",
            "Write a date as DATE '2024-12-31'.",
        ),
        (
            "ROLLUP CUBE GROUPING_SETS",
            "ROLLUP, CUBE and GROUPING SETS are not supported.",
            "List the columns: GROUP BY age_group, sex.",
        ),
        ("DISTINCT", "DISTINCT is not supported.", "Remove DISTINCT, or GROUP BY the column."),
        ("WITH", "WITH is not supported.", "Move its conditions into WHERE."),
        ("EXISTS", *SUBQUERY),
    )
    for token in _types(tokens)
}

#: The arguments that each kind of node may have, and the tokens that it is written with.
_RULES: dict[type[exp.Expr], tuple[frozenset[str], tuple[TokenType, ...]]] = {
    node: (frozenset(arguments.split()), _types(tokens))
    for arguments, rules in (
        ("expressions from_ where group having order limit", {exp.Select: "SELECT"}),
        ("expressions", {exp.Group: "GROUP_BY", exp.Order: "ORDER_BY"}),
        ("this expressions", {exp.In: "IN"}),
        ("this", {exp.From: "FROM", exp.Where: "WHERE", exp.Having: "HAVING", exp.Paren: ""}),
        ("this", {exp.Sum: "", exp.Avg: "", exp.Not: "NOT", exp.Neg: "DASH"}),
        ("this", {exp.TableAlias: "", exp.DataType: "", exp.Boolean: ""}),
        ("this expression", {exp.And: "AND", exp.Or: "OR", exp.Is: "IS", exp.Escape: "ESCAPE"}),
        ("this expression", {exp.EQ: "EQ", exp.NEQ: "NEQ", exp.LT: "LT", exp.LTE: "LTE"}),
        ("this expression", {exp.GT: "GT", exp.GTE: "GTE", exp.Filter: "FILTER"}),
        ("this expression", {exp.Add: "PLUS", exp.Sub: "DASH", exp.Mul: "STAR", exp.Div: "SLASH"}),
        ("this expression negate", {exp.Like: "LIKE"}),
        ("this low high", {exp.Between: "BETWEEN AND"}),
        ("this alias", {exp.Table: "", exp.Alias: ""}),
        ("this table", {exp.Column: ""}),
        ("this quoted", {exp.Identifier: ""}),
        ("this big_int", {exp.Count: ""}),
        ("this desc nulls_first", {exp.Ordered: ""}),
        ("this to", {exp.Cast: ""}),
        ("this is_string", {exp.Literal: ""}),
        ("this true", {exp.If: "WHEN THEN"}),
        ("ifs default", {exp.Case: "CASE END"}),
        ("expression", {exp.Limit: "LIMIT"}),
        ("", {exp.Star: "STAR", exp.Null: "NULL"}),
    )
    for node, tokens in rules.items()
}

#: Tokens that abbreviate several.
_EXPANSIONS = {
    TokenType.ISNULL: _types("IS NULL"),
    TokenType.NOTNULL: _types("NOT IS NULL"),
}
#: Tokens that are not counted: names are checked one by one, and the others are optional.
_UNCOUNTED = NAMES | {*_types("ALIAS DOT DCOLON L_PAREN R_PAREN")}
#: Tokens that cannot start an item of a list.
_NO_ITEM = {*_types("COMMA FROM R_PAREN HAVING ORDER_BY LIMIT")}
#: Words that the parser may take for names: the first are never names, the second need not be.
_NEVER_NAMES = {"GROUP", "ORDER", "BY"}
_OPTIONAL_NAMES = {*FUNCTIONS, "DATE", "NULLS", "FIRST", "LAST"}


def parse(source: Source) -> exp.Select:
    """Parse a text into a SELECT that is inside the grammar and accounts for every token."""
    _check_words(source)
    try:
        trees = DIALECT.parser().parse(list(source.tokens), source.text)
    except ParseError as error:
        raise _syntax_error(source, error.errors) from None
    match trees:
        case [exp.Expr() as tree]:
            return _check_tree(source, tree)
    raise _syntax_error(source, [])


def _check_words(source: Source) -> None:
    """Refuse anything but the words of one SELECT: in one pass, before the parser sees them.

    The names of the table and its columns, and aliases after AS, are names even if they are keywords
    elsewhere in SQL.
    """
    tokens, example = source.tokens, f"Example: SELECT COUNT(*) FROM {source.table}."  # noqa: S608
    if not tokens:
        raise SqlSyntaxError("The SQL text is empty.", hint=example)
    first = tokens[0].token_type
    if first not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
        raise source.error(tokens[0], "Only SELECT is supported.", example)
    if first is TokenType.L_PAREN:
        raise source.error(tokens[0], *SUBQUERY)
    # The tokenizer skips comments: only white space, and the final semicolon, may be between tokens.
    ends = [0, *(token.end + 1 for token in tokens)]
    starts = [*(token.start for token in tokens), len(source.text)]
    for start, end in zip(ends, starts, strict=True):
        if gap := source.text[start:end].lstrip().removeprefix(";").lstrip():
            where = source.at(end - len(gap), end)
            raise SqlError("Comments are not supported.", hint="Remove the comment.", where=where)
    pairs = itertools.pairwise(tokens)
    aliases = {after.text.casefold() for token, after in pairs if token.token_type is TokenType.ALIAS}
    names = {*source.domain.columns, source.table.casefold(), *aliases}
    opened: list[Token] = []
    prefixes = 0
    for token, following in itertools.zip_longest(tokens, tokens[1:]):
        kind = token.token_type
        if kind is TokenType.SEMICOLON:
            message = "Multiple statements are not supported."
            raise source.error(token, message, "Run each SELECT as a separate query.")
        is_name = kind in NAMES or (kind not in WORDS and token.text.casefold() in names)
        if not is_name and (kind not in WORDS or (kind is TokenType.NOT and token.text == "!")):
            raise unsupported_word(source, token)
        if kind is TokenType.SELECT and token is not tokens[0]:
            raise source.error(token, *SUBQUERY)
        is_call = is_name and following is not None and following.token_type is TokenType.L_PAREN
        if is_call and not (kind is TokenType.VAR and token.text.upper() in FUNCTIONS):
            message = f'Unsupported function "{shortened(token.text)}".'
            raise source.error(token, message, "The functions are COUNT, SUM and AVG.")
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        if kind in OPENING:
            opened.append(token)
        elif kind in CLOSING and opened:
            opened.pop()
        if len(opened) + prefixes > MAX_NESTING:
            raise too_deep(source.locate(token))
    if opened:
        case = opened[-1].token_type is TokenType.CASE
        message = "CASE without END." if case else "Unclosed parenthesis."
        raise source.error(opened[-1], message, "Add END." if case else "Add ).", SqlSyntaxError)


def too_deep(where: Location | None = None) -> QueryTooComplex:
    """Return the error for SQL that is nested too deeply."""
    return QueryTooComplex(
        f"The SQL is nested too deeply; the limit is {MAX_NESTING} levels.",
        hint="Remove redundant parentheses, or split the query.",
        where=where,
    )


def _syntax_error(source: Source, errors: Iterable[dict[str, Any]]) -> SqlSyntaxError:
    where = source.locate(source.tokens[-1])
    for error in errors:
        words = error.get("highlight") or ""
        if error.get("line") and error.get("col"):
            where = Location(error["line"], max(1, error["col"] - len(words) + 1), shortened(words))
    return SqlSyntaxError(
        f'Syntax error at or near "{where.text}".' if where.text else "Syntax error.",
        hint="Check the text just before this position.",
        where=where,
    )


def _check_tree(source: Source, tree: exp.Expr) -> exp.Select:
    """Refuse nodes and arguments outside the grammar, and tokens that no node is written with."""
    expected: Counter[TokenType] = Counter()
    names: set[int] = set()
    depths: dict[int, int] = {}
    for node in tree.walk():
        # How deep Python can recurse depends on the caller. A statement that was accepted once must be
        # accepted again when the ledger is replayed, so the limit is our own.
        in_chain = type(node) in (exp.And, exp.Or) and type(node) is type(node.parent)
        depths[id(node)] = depth = depths.get(id(node.parent), 0) + (not in_chain)
        if depth > MAX_DEPTH:
            raise too_deep(source.locate(node))
        rule = _RULES.get(type(node))
        if rule is None:
            raise _unsupported(source, node)
        for key, value in node.args.items():
            if value and key not in rule[0]:
                part = value[0] if isinstance(value, list) else value
                raise _unsupported(source, part if isinstance(part, exp.Expr) else node)
        expected.update(_tokens(node))
        if type(node) is exp.Identifier:
            names.add(node.meta.get("start", -1))
    if not isinstance(tree, exp.Select):
        raise _unsupported(source, tree)
    _check_census(source, tree, names, expected)
    return tree


def _tokens(node: exp.Expr) -> Iterable[TokenType]:
    """Return the tokens that a node itself is written with, without those of its parts."""
    own = _RULES[type(node)][1]
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


def _check_census(
    source: Source, tree: exp.Expr, names: Collection[int], expected: Counter[TokenType]
) -> None:
    """Check that the tokens of the tree are the tokens of the text, and its names the text's names."""
    written: Counter[TokenType] = Counter()
    for token in source.tokens:
        kind, text = token.token_type, token.text.upper()
        if token.start in names:
            fits = kind in NAMES or kind not in WORDS
            fits = fits and (kind is TokenType.IDENTIFIER or text not in _NEVER_NAMES)
        else:
            fits = kind in WORDS and (kind not in NAMES or text in _OPTIONAL_NAMES)
            written.update(_EXPANSIONS.get(kind, (kind,)))
        if not fits:
            raise _unexpected(source, token) if kind in WORDS else unsupported_word(source, token)
    for kind in expected - written:
        node = next(node for node in tree.walk() if kind in _tokens(node))
        raise source.error(node, f"Missing {kind.name}.", f"Add {kind.name}.", SqlSyntaxError)
    for kind in (kind for kind in written - expected if kind not in _UNCOUNTED):
        # A surplus comma is one that no item follows; of other tokens, blame the first.
        pairs = itertools.pairwise(source.tokens)
        candidates = [*(token for token, after in pairs if after.token_type in _NO_ITEM), *source.tokens]
        surplus = (t for t in candidates if kind in _EXPANSIONS.get(t.token_type, (t.token_type,)))
        raise _unexpected(source, next(surplus))


def _unexpected(source: Source, token: Token) -> SqlSyntaxError:
    hint = "Remove it, or add what is missing next to it."
    return source.error(token, f'Unexpected "{shortened(token.text)}".', hint, SqlSyntaxError)


def _unsupported(source: Source, node: exp.Expr) -> SqlError:
    message, hint = "Unsupported expression.", "Remove it."
    if isinstance(node, exp.Join):
        message, hint = JOIN
    elif isinstance(node, exp.Subquery):
        message, hint = SUBQUERY
    elif isinstance(node.parent, exp.Case):
        message, hint = "CASE with an operand is not supported.", "Write CASE WHEN sex = 'F' THEN 1 END."
    return source.error(node, message, hint)


def unsupported_word(source: Source, token: Token) -> SqlError:
    """Return the error for a word outside the vocabulary."""
    word = shortened(token.text)
    default = (
        'Unsupported keyword "{}".',
        f'To use it as a name, write it in double quotes: "{word}".'
        if word.isidentifier()
        else "Remove it.",
    )
    message, hint = _REFUSALS.get(token.token_type, default)
    return source.error(token, message.format(word), hint)
