"""The grammar: an allowlist of words, and of the trees that they may form.

Words are checked before parsing, because tokens know their location, and because the parser then never
has to guess at a word or warn about one. The parser is lenient: it accepts `BETWEEN 1 2`, `ORDER BY n, ,
m` or a keyword as a name without an error. So the tree must also account for every token: exactly as
many ANDs, commas and numbers as its nodes are written with.

The parser knows 700 functions, and turns many of them into other expressions. It is to leave ours as
they are written, so each gets a name that it does not know: its own with `CALL` behind it.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlglot import ParseError, Token, TokenType, exp
from sqlglot.dialects import DuckDB

from sharewell.errors import Location, QueryTooComplex, SqlError, SqlSyntaxError
from sharewell.query.attribute import Date, Ordered
from sharewell.query.diagram import is_limited
from sharewell.query.domain import Column
from sharewell.query.functions import ALIASES, FUNCTIONS, PARTS
from sharewell.query.sql.text import CLOSING, DIALECT, OPENING, Source, did_you_mean, shortened

#: The maximum nesting of parentheses, CASE, NOT and signs. The parser is recursive: twice this depth
#: still leaves enough of Python's stack to the caller.
MAX_NESTING = 100
#: The maximum depth of the tree; a chain of ANDs, or of ORs, counts as one level. Each level takes up to
#: three nested calls: here, and for HAVING again once the answers are paid for.
MAX_DEPTH = 2 * MAX_NESTING + 20
#: The maximum number of columns that a clause of a new question lists, as in PostgreSQL.
MAX_COLUMNS = 1664
_LISTS_OF_COLUMNS: dict[type[exp.Expr], str] = {
    exp.Select: "SELECT",
    exp.Group: "GROUP BY",
    exp.Order: "ORDER BY",
}


def _types(names: str) -> tuple[TokenType, ...]:
    return tuple(TokenType[name] for name in names.split())


_PREFIXES = {*_types("NOT DASH PLUS")}

#: Tokens that may be names, and all allowed tokens.
NAMES = {*_types("VAR IDENTIFIER DATE FIRST")}
#: The types of CAST.
TYPES = {*_types("INT BIGINT SMALLINT TINYINT DOUBLE FLOAT DECIMAL TEXT VARCHAR BOOLEAN")}
#: Words that are never names, and words that are names too where a column or an alias has them.
KEYWORDS = {
    *_types("NUMBER STRING NULL TRUE FALSE COMMA DOT L_PAREN R_PAREN DCOLON L_BRACKET R_BRACKET"),
    *_types("SELECT FROM WHERE GROUP_BY HAVING ORDER_BY ASC DESC LIMIT ALIAS FILTER"),
    *_types("AND OR NOT IS ISNULL NOTNULL EQ NEQ LT LTE GT GTE BETWEEN IN LIKE ESCAPE"),
    *_types("TILDE PLUS DASH STAR SLASH DIV MOD DSTAR CARET DPIPE CASE WHEN THEN ELSE END"),
}
SOFT_KEYWORDS = TYPES | {
    *_types("OFFSET ILIKE SIMILAR_TO DISTINCT INTERVAL OVER PARTITION_BY ROWS RANGE STRUCT"),
    *_types("ALL ROLLUP CUBE GROUPING_SETS WITH UNION"),
}
WORDS = NAMES | KEYWORDS | SOFT_KEYWORDS
#: Functions that the parser reads in their own ways.
PARSED = {"COUNT", "SUM", "AVG", "CAST", "TRY_CAST", "EXTRACT"}
#: Functions that need not be in the table of scalar functions: aggregates, and those of windows.
AGGREGATE_FUNCTIONS = {
    *("COUNT_IF", "COUNTIF", "MEDIAN", "QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "PERCENTILE_CONT"),
    *("PERCENTILE_DISC", "STDDEV", "STDDEV_SAMP", "STDDEV_POP", "VARIANCE", "VAR_SAMP", "VAR_POP"),
    *("CORR", "COVAR_POP", "COVAR_SAMP"),
    *("REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT"),
}
WINDOW_FUNCTIONS = {"RANK", "DENSE_RANK", "ROW_NUMBER"}
OWN_FUNCTIONS = {"IF", "IIF", "REGEXP_MATCHES", "REGEXP_FULL_MATCH"} | {*PARTS} - {"century", "decade"}
OWN_FUNCTIONS = {name.upper() for name in OWN_FUNCTIONS}
NAMED = {name for name in FUNCTIONS if name.isidentifier() and name.isupper()} | {*ALIASES}
NAMED = (
    (NAMED - {"AND", "OR", "NOT", "IN", "CASE"}) | AGGREGATE_FUNCTIONS | WINDOW_FUNCTIONS | OWN_FUNCTIONS
)
#: What the parser reads behind DECIMAL where nothing is written.
_DECIMAL_PARAMETERS = (
    (TokenType.L_PAREN, "("),
    (TokenType.NUMBER, "18"),
    (TokenType.COMMA, ","),
    (TokenType.NUMBER, "3"),
    (TokenType.R_PAREN, ")"),
)
#: What marks a function's name for the parser.
CALL = "()"

#: A message and a hint.
Refusal = tuple[str, str]

JOIN = ("Joins are not supported.", "Query one table, and compare its groups by FILTER (WHERE ...).")
SUBQUERY = "A subquery is only supported in FROM."
_CAST = ('Values cannot be cast to "{}".', "Cast to INTEGER, DOUBLE, DECIMAL, VARCHAR, BOOLEAN or DATE.")

#: Refusals of SQL keywords outside the vocabulary; `{}` stands for the token.
_REFUSALS: dict[TokenType, Refusal] = dict.fromkeys(DuckDB.parser_class.TYPE_TOKENS - WORDS, _CAST) | {
    token: (message, hint)
    for tokens, message, hint in (
        ("JOIN LEFT RIGHT INNER OUTER FULL CROSS NATURAL SEMI ANTI ASOF POSITIONAL LATERAL ON", *JOIN),
        (
            "EXCEPT INTERSECT",
            "EXCEPT and INTERSECT are not supported.",
            "Combine the conditions with AND NOT, or with AND.",
        ),
        (
            "WINDOW QUALIFY",
            "{} is not supported.",
            "Write the window after OVER, and choose rows afterwards: "
            "SELECT * FROM (SELECT ..., RANK() OVER (ORDER BY COUNT(*) DESC) AS place ...) AS t "
            "WHERE place <= 5.",
        ),
        ("TABLE_SAMPLE USING", "Sampling is not supported.", "Remove the sampling clause."),
        ("FETCH", "FETCH is not supported.", "Use LIMIT."),
        (
            "PIVOT UNPIVOT",
            "{} is not supported.",
            "Write one COUNT(*) FILTER (WHERE ...) for each column of the result.",
        ),
        (
            "PLACEHOLDER PARAMETER COLON DOLLAR",
            "Parameters are not supported.",
            "Write the value in the SQL text.",
        ),
        (
            "GLOB RLIKE COLLATE",
            'Unsupported operator "{}".',
            "Use LIKE, ILIKE, SIMILAR TO or regexp_matches(column, 'pattern').",
        ),
        ("AMP PIPE HASH", 'Unsupported operator "{}".', "Use + - * / // % or **."),
        ("FARROW", 'Unsupported operator "{}".', "Write >=."),
        (
            "CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP TIMESTAMP TIMESTAMPNTZ TIME",
            "The current time is not supported: the same question must mean the same tomorrow.",
            "Write a date as DATE '2024-12-31'.",
        ),
        ("EXISTS", SUBQUERY, "Count the rows that exist: SELECT COUNT(*) FROM ... WHERE ..."),
    )
    for token in _types(tokens)
}

#: The arguments that each kind of node may have, and the tokens that it is written with.
NODES: dict[type[exp.Expr], tuple[frozenset[str], tuple[TokenType, ...]]] = {
    node: (frozenset(arguments.split()), _types(tokens))
    for arguments, rules in (
        (
            "with_ distinct expressions from_ where group having order limit offset",
            {exp.Select: "SELECT"},
        ),
        ("with_ this expression distinct order limit offset", {exp.Union: "UNION ALL"}),
        ("expressions", {exp.With: "WITH", exp.Order: "ORDER_BY"}),
        ("this alias", {exp.CTE: "", exp.Subquery: "", exp.Alias: ""}),
        ("expressions all", {exp.Group: "GROUP_BY"}),
        ("expressions", {exp.Rollup: "ROLLUP", exp.Cube: "CUBE", exp.GroupingSets: "GROUPING_SETS"}),
        ("expressions value_constructor", {exp.Tuple: "", exp.Array: "L_BRACKET R_BRACKET"}),
        ("expressions", {exp.Distinct: "DISTINCT"}),
        ("this expressions", {exp.In: "IN", exp.Anonymous: "", exp.DataTypeParam: ""}),
        ("this", {exp.From: "FROM", exp.Where: "WHERE", exp.Having: "HAVING", exp.Paren: ""}),
        ("this", {exp.Sum: "", exp.Avg: "", exp.Not: "NOT", exp.Neg: "DASH", exp.Var: ""}),
        ("this", {exp.TableAlias: "", exp.Boolean: ""}),
        ("this expressions nested", {exp.DataType: ""}),
        ("this expression", {exp.And: "AND", exp.Or: "OR", exp.Is: "IS", exp.Escape: "ESCAPE"}),
        ("this expression", {exp.EQ: "EQ", exp.NEQ: "NEQ", exp.LT: "LT", exp.LTE: "LTE"}),
        ("this expression", {exp.GT: "GT", exp.GTE: "GTE", exp.Filter: "FILTER"}),
        ("this expression", {exp.Add: "PLUS", exp.Sub: "DASH", exp.Mul: "STAR", exp.Mod: "MOD"}),
        ("this expression typed safe", {exp.Div: "SLASH", exp.IntDiv: "DIV", exp.DPipe: "DPIPE"}),
        ("this expression", {exp.Pow: "", exp.RegexpLike: "TILDE", exp.SimilarTo: "SIMILAR_TO"}),
        ("this expression", {exp.NullSafeEQ: "IS NOT DISTINCT FROM"}),
        ("this expression", {exp.NullSafeNEQ: "IS DISTINCT FROM", exp.WithinGroup: ""}),
        ("this expression", {exp.Extract: "FROM"}),
        ("this expression negate", {exp.Like: "LIKE", exp.ILike: "ILIKE"}),
        ("this low high", {exp.Between: "BETWEEN AND"}),
        ("this alias db", {exp.Table: ""}),
        ("this table", {exp.Column: ""}),
        ("this quoted", {exp.Identifier: ""}),
        ("this big_int", {exp.Count: ""}),
        ("this desc nulls_first", {exp.Ordered: ""}),
        ("this to safe", {exp.Cast: "", exp.TryCast: ""}),
        ("this is_string", {exp.Literal: ""}),
        ("this unit", {exp.Interval: "INTERVAL"}),
        ("this partition_by order spec over", {exp.Window: "OVER"}),
        ("kind start start_side end end_side", {exp.WindowSpec: ""}),
        ("this true", {exp.If: "WHEN THEN"}),
        ("this ifs default", {exp.Case: "CASE END"}),
        ("expression", {exp.Limit: "LIMIT", exp.Offset: "OFFSET"}),
        ("", {exp.Star: "STAR", exp.Null: "NULL"}),
    )
    for node, tokens in rules.items()
}

#: The tokens that an argument is written with, beside those of the node that has it.
_ARGUMENT_TOKENS: dict[str, tuple[TokenType, ...]] = {
    "all": _types("ALL"),
    "default": _types("ELSE"),
    "negate": _types("NOT"),
    "partition_by": _types("PARTITION_BY"),
    "end": _types("BETWEEN AND"),
}
#: The arguments whose members have commas between them.
_COMMA_LISTS = {"expressions", "partition_by"}
#: The nodes whose token depends on a value.
_VALUES = {exp.Literal, exp.Boolean, exp.Ordered}
#: Tokens that abbreviate several.
_EXPANSIONS = {
    TokenType.ISNULL: _types("IS NULL"),
    TokenType.NOTNULL: _types("NOT IS NULL"),
}
#: Tokens that are not counted: names are checked one by one, and the others are optional.
_UNCOUNTED = NAMES | TYPES | {*_types("ALIAS DOT DCOLON L_PAREN R_PAREN STRUCT ROWS RANGE DSTAR CARET")}
#: Tokens that cannot start an item of a list.
_NO_ITEM = {*_types("COMMA FROM R_PAREN HAVING ORDER_BY LIMIT")}
#: Words that the parser may take for names: the first are never names, the second need not be.
_NEVER_NAMES = {"GROUP", "ORDER", "BY"}
_OPTIONAL_NAMES = PARSED | NAMED | {"DATE", "NULLS", "FIRST", "LAST", "WITHIN", "GROUP"}
_OPTIONAL_NAMES |= {"UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT"}
#: Names of units of time, which are no names of columns where they follow a duration.
_UNITS = {name for unit in PARTS for name in (unit.upper(), f"{unit.upper()}S")}
_UNITS |= {"HOUR", "MINUTE", "SECOND", "EPOCH"}  # which no date has, as the translator says


def parse(source: Source) -> exp.Select | exp.Union:
    """Parse a text into a tree that is inside the grammar and accounts for every token."""
    words = _read_words(source)
    try:
        match DIALECT.parser().parse(words, source.text):
            case [exp.Expr() as tree]:
                return _check_tree(source, words, tree)
        wrong: SqlError = _syntax_error(source, [])
    except ParseError as error:
        wrong = _syntax_error(source, error.errors)
    except SqlError as error:
        wrong = error
    # What a function that does not exist is written like is no other mistake.
    raise (source.mistakes.pop() if source.mistakes else wrong) from None


def _read_words(source: Source) -> list[Token]:
    """Refuse anything but the words of one SELECT, in one pass before the parser sees them.

    The names of the table and its columns, and aliases after AS, are names even if they are keywords
    elsewhere in SQL. Returns the words with the names of functions marked: of ours, and of those that do
    not exist.
    """
    tokens, example = source.tokens, f"Example: SELECT COUNT(*) FROM {source.table}."  # noqa: S608
    if not tokens:
        raise SqlSyntaxError("The SQL text is empty.", hint=example)
    first = tokens[0].token_type
    if first not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
        raise source.error(tokens[0], "Only SELECT is supported.", example)
    pairs = itertools.pairwise(tokens)
    aliases = {after.text.casefold() for token, after in pairs if token.token_type is TokenType.ALIAS}
    names = {*source.domain.columns, source.table.casefold(), *aliases}
    names |= {measure.name.casefold() for measure in source.domain.measures}
    words: list[Token] = []
    opened: list[Token] = []
    prefixes, before, readable = 0, tokens[0], True
    for token, following in itertools.zip_longest(tokens, tokens[1:]):
        kind, word = token.token_type, token.text.upper()
        if kind is TokenType.SEMICOLON:
            message = "Multiple statements are not supported."
            raise source.error(token, message, "Run each SELECT as a separate query.")
        opens = following is not None and following.token_type is TokenType.L_PAREN
        is_function = opens and kind is not TokenType.IDENTIFIER and word in NAMED
        is_parsed = kind is not TokenType.IDENTIFIER and word in PARSED
        is_name = kind in NAMES or (kind not in KEYWORDS and token.text.casefold() in names)
        negated = kind is TokenType.NOT and token.text == "!"
        negated = negated and (following is None or following.token_type is not TokenType.TILDE)
        if negated or not (is_function or is_name or kind in WORDS):
            # A keyword of a clause that is not supported is often followed by others of the same.
            if readable or not token.text.isalpha():
                is_call = opens and kind not in _REFUSALS and token.text.isidentifier()
                source.add((unknown_function if is_call else unsupported_word)(source, token))
            readable = False
        elif opens and kind in (TokenType.ISNULL, TokenType.NOTNULL):
            raise unknown_function(source, token)
        elif opens and is_name and not (is_function or is_parsed or _is_called(token, before)):
            unknown = source.unknown_functions.setdefault(word, unknown_function(source, token))
            source.add(unknown)
        if is_function or (opens and word in source.unknown_functions):
            where = (token.line, token.col, token.start, token.end)
            words.append(Token(TokenType.VAR, word + CALL, *where))
        else:
            words.append(token)
        if kind is TokenType.DECIMAL and not opens and _is_type(before, following):
            where = (token.line, token.col, token.start, token.end)
            words += [Token(each, text, *where) for each, text in _DECIMAL_PARAMETERS]
        before = token
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
    if not readable:
        raise source.mistakes.pop()
    return words


def _is_type(before: Token, following: Token | None) -> bool:
    """Whether the word between two others is the type of a CAST."""
    if before.token_type is TokenType.DCOLON:
        return True
    closes = following is not None and following.token_type is TokenType.R_PAREN
    return before.token_type is TokenType.ALIAS and closes


def _is_called(token: Token, before: Token) -> bool:
    """Whether a parenthesis may follow a name that is no function's."""
    if token.token_type in TYPES:
        return True
    if token.token_type is TokenType.IDENTIFIER:
        return before.token_type is TokenType.ALIAS
    word = token.text.upper()
    return word == "WITHIN" or (word == "GROUP" and before.text.upper() == "WITHIN")


def unknown_function(source: Source, token: Token) -> SqlError:
    """Return the error for a function outside the grammar, with what comes nearest to it."""
    word = token.text.upper()
    instead = INSTEAD.get(word)
    if instead is not None:
        instead = _about(source, token, instead)
    message = f'Unsupported function "{shortened(token.text)}".'
    if instead is None:
        known = sorted(PARSED | NAMED)
        hint, _ = did_you_mean(word, known, str)
        instead = hint or _KNOWN[_kind(_column(source, token))]
    return source.error(token, message, instead)


def _about(source: Source, token: Token, instead: str) -> str:
    """Write what comes nearest to a function with the column that it was written with."""
    at = source.tokens.index(token) + 2
    named = source.tokens[at].text if at < len(source.tokens) else ""
    column = _column(source, token)
    if column is not None and "ORDER BY {x}" in instead and not isinstance(column.attribute, Ordered):
        instead = _COUNTS
    elif column is None and "ORDER BY {x}" in instead:
        aliases = [
            b.text for a, b in itertools.pairwise(source.tokens) if a.token_type is TokenType.ALIAS
        ]
        order = {"MIN": "", "MAX": " DESC"}.get(token.text.upper())
        instead = "Name a column."
        if order is not None and named in aliases:
            instead = f"Of the rows of a result, write ORDER BY {named}{order} LIMIT 1."
    return instead.format(x=column.name if column else "column", table=source.table)


def _column(source: Source, token: Token) -> Column | None:
    """Return the first column in the parentheses after a function's name."""
    depth = 0
    for each in source.tokens[source.tokens.index(token) + 1 :]:
        depth += (each.token_type in OPENING) - (each.token_type in CLOSING)
        if depth <= 0:
            break
        if each.token_type in NAMES and (found := source.domain.columns.get(each.text.casefold())):
            return found
    return None


def _kind(column: Column | None) -> str:
    if column is None:
        return ""
    if column.is_text:
        return "text"
    return "date" if isinstance(column.attribute, Date) else "number"


#: The functions that there are, by the kind of column that an unknown one was written with.
_KNOWN = {
    "": "The aggregates are COUNT, SUM, AVG, MEDIAN, STDDEV and those in docs/sql.md.",
    "text": "The functions of text are UPPER, LOWER, TRIM, LEFT, RIGHT, SUBSTRING, SPLIT_PART, REPLACE, "
    "LENGTH, STRPOS, CONCAT and those in docs/sql.md.",
    "number": "The functions of numbers are ABS, ROUND, FLOOR, CEIL, MOD, POWER, SQRT, LN, WIDTH_BUCKET "
    "and those in docs/sql.md; the aggregates SUM, AVG, MEDIAN and STDDEV.",
    "date": "The functions of dates are YEAR, QUARTER, MONTH, DATE_TRUNC, DATE_PART, DATE_DIFF and "
    "those in docs/sql.md.",
}

#: The nearest question for functions that cannot be answered; `{x}` is the column that was written.
_COUNTS = "Count its values: SELECT {x}, COUNT(*) FROM {table} GROUP BY {x}."
_EXTREME = "One row alone decides it. Use PERCENTILE_CONT({}) WITHIN GROUP (ORDER BY {{x}})."
_NEIGHBOUR = "Use SUM(COUNT(*)) OVER (ORDER BY ... ROWS BETWEEN {}): 0 where there is no such row."
_LISTS = "Single values are never returned. " + _COUNTS
_RANKS = "Use RANK() OVER (ORDER BY COUNT(*) DESC)."
_PARTS = "Use date_trunc('month', {x}), YEAR({x}) or MONTH({x})."
_SHIFTS = "Add a duration: {x} + INTERVAL 3 MONTH."
_PIECES = "Use SPLIT_PART({x}, '.', 1), SUBSTRING({x}, 1, 3) or REPLACE({x}, 'a', 'b')."
_SEARCHES = "Use STRPOS({x}, 'text')."
_DECIDES = "One row alone decides it. Use COUNT_IF({x})."
INSTEAD = {
    "MIN": _EXTREME.format("0.01"),
    "MAX": _EXTREME.format("0.99"),
    "FIRST": _LISTS,
    "LAST": _LISTS,
    "ANY_VALUE": _LISTS,
    "ARRAY_AGG": _LISTS,
    "LIST": _LISTS,
    "ARG_MAX": _LISTS,
    "ARG_MIN": _LISTS,
    "MAX_BY": _LISTS,
    "MIN_BY": _LISTS,
    "BOOL_AND": _DECIDES,
    "BOOL_OR": _DECIDES,
    "MEAN": "Use AVG({x}).",
    "GEOMEAN": "Use AVG({x}).",
    "PRODUCT": "Use SUM({x}).",
    "VAR": "Use VARIANCE({x}).",
    "STD": "Use STDDEV({x}).",
    "STDEV": "Use STDDEV({x}).",
    "STRING_AGG": _LISTS,
    "GROUP_CONCAT": _LISTS,
    "MODE": "Use SELECT {x}, COUNT(*) FROM {table} GROUP BY {x} ORDER BY COUNT(*) DESC LIMIT 1.",
    "HISTOGRAM": _COUNTS,
    "SKEWNESS": _COUNTS,
    "KURTOSIS": _COUNTS,
    "ENTROPY": _COUNTS,
    "MAD": "Use quantiles, such as QUANTILE_CONT({x}, [0.25, 0.5, 0.75]).",
    "GROUPING": "In the row of a subtotal the column is NULL: write {x} IS NULL.",
    "FORMAT": "Numbers are returned as numbers: round them, or format them afterwards.",
    "APPROX_COUNT_DISTINCT": "The values are public. " + _COUNTS,
    "APPROX_QUANTILE": "Use PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {x}).",
    "LAG": _NEIGHBOUR.format("1 PRECEDING AND 1 PRECEDING"),
    "LEAD": _NEIGHBOUR.format("1 FOLLOWING AND 1 FOLLOWING"),
    "NTILE": "Use RANK() OVER (ORDER BY COUNT(*) DESC), or the quantiles of a column.",
    "PERCENT_RANK": _RANKS,
    "CUME_DIST": _RANKS,
    "FIRST_VALUE": _RANKS,
    "LAST_VALUE": _RANKS,
    "NTH_VALUE": _RANKS,
    "NOW": "Write a date as DATE '2024-12-31'.",
    "TODAY": "Write a date as DATE '2024-12-31'.",
    "RANDOM": "Questions must mean the same every time: remove it.",
    "STRFTIME": _PARTS,
    "TO_CHAR": _PARTS,
    "DATE_FORMAT": _PARTS,
    "DATE_ADD": _SHIFTS,
    "DATE_SUB": "Subtract a duration: {x} - INTERVAL 3 MONTH.",
    "DATEADD": _SHIFTS,
    "REGEXP_EXTRACT": _PIECES,
    "REGEXP_REPLACE": _PIECES,
    "POSITION": _SEARCHES,
    "CHARINDEX": _SEARCHES,
    "LOCATE": _SEARCHES,
    "ISNULL": "Write {x} IS NULL, or COALESCE in place of ISNULL.",
    "NOTNULL": "Write {x} IS NOT NULL.",
    "NVL": "Write COALESCE in place of NVL.",
    "DECODE": "Write CASE {x} WHEN ... THEN ... ELSE ... END.",
    "LIST_CONTAINS": "Write {x} IN (...).",
    "UNNEST": "Write a SELECT for each value, and UNION ALL between them.",
}


def too_deep(where: Location | None = None) -> QueryTooComplex:
    """Return the error for SQL that is nested too deeply."""
    return QueryTooComplex(
        f"The SQL is nested too deeply; the limit is {MAX_NESTING} levels.",
        hint="Remove redundant parentheses, or split the query.",
        where=where,
    )


def _syntax_error(source: Source, errors: Iterable[dict[str, Any]]) -> SqlSyntaxError:
    where = source.locate(source.tokens[-1])
    if len(source.tokens) > 2 and source.tokens[1].text.upper() == "TOP":
        number = shortened(source.tokens[2].text)
        hint = f"Write LIMIT {number} at the end."
        return source.error(source.tokens[1], "TOP is not supported.", hint, SqlSyntaxError)
    for error in errors:
        words = error.get("highlight") or ""
        if error.get("line") and error.get("col"):
            where = Location(error["line"], max(1, error["col"] - len(words) + 1), shortened(words))
    return SqlSyntaxError(
        f'Syntax error at or near "{where.text}".' if where.text else "Syntax error.",
        hint="Check the text just before this position.",
        where=where,
    )


def _check_tree(source: Source, words: Sequence[Token], tree: exp.Expr) -> exp.Select | exp.Union:
    """Refuse nodes and arguments outside the grammar, and tokens that no node is written with."""
    written_by = defaultdict[TokenType, list[exp.Expr]](list)
    names: set[int] = set()
    depths: dict[int, int] = {}
    for node in tree.walk():
        # How deep Python can recurse depends on the caller. A statement that was accepted once must be
        # accepted again when the ledger is replayed, so the limit is our own.
        in_chain = type(node) in (exp.And, exp.Or) and type(node) is type(node.parent)
        depths[id(node)] = depth = depths.get(id(node.parent), 0) + (not in_chain)
        if depth > MAX_DEPTH:
            raise too_deep(source.locate(node))
        if isinstance(node, exp.Union) and node.args.get("distinct"):
            pairs = itertools.pairwise([*words, words[-1]])
            unions = [(a, b) for a, b in pairs if a.token_type is TokenType.UNION]
            union = next(a for a, b in unions if b.token_type is not TokenType.ALL)
            message = "UNION without ALL is not supported: noisy rows are never the same."
            raise source.error(union, message, "Write UNION ALL.")
        rule = NODES.get(type(node))
        if rule is None:
            raise _unsupported(source, node)
        # Of what was accepted once, the columns are not limited again.
        if type(node) in _LISTS_OF_COLUMNS and len(node.expressions) > MAX_COLUMNS and is_limited():
            clause = _LISTS_OF_COLUMNS[type(node)]
            message = f"{clause} lists {len(node.expressions):,} columns; the limit is {MAX_COLUMNS:,}."
            hint = "Split the question, or use GROUP BY in place of many conditions."
            raise source.error(node.expressions[MAX_COLUMNS], message, hint, QueryTooComplex)
        arguments, own = rule
        tokens = [*own, *(_value_tokens(node) if type(node) in _VALUES else ())]
        for key, value in node.args.items():
            if value and key not in arguments:
                part = value[0] if isinstance(value, list) else value
                raise _unsupported(source, part if isinstance(part, exp.Expr) else node)
            if value and key in _ARGUMENT_TOKENS:
                tokens += _ARGUMENT_TOKENS[key]
            if value and key in _COMMA_LISTS:
                tokens += [TokenType.COMMA] * (len(value) - 1)
        for kind in tokens:
            written_by[kind].append(node)
        if type(node) is exp.Identifier:
            names.add(node.meta.get("start", -1))
    if not isinstance(tree, exp.Select | exp.Union):
        raise _unsupported(source, tree)
    if not source.mistakes:  # otherwise it is refused in any case
        _check_census(source, words, names, written_by)
    return tree


def _value_tokens(node: exp.Expr) -> tuple[TokenType, ...]:
    """Return the token of a constant, or of the direction of an order."""
    match node:
        case exp.Literal() if not isinstance(node.parent, exp.Interval):
            return (TokenType.STRING if node.is_string else TokenType.NUMBER,)
        case exp.Boolean():
            return (TokenType.TRUE if node.this else TokenType.FALSE,)
        case exp.Ordered() if node.args.get("desc") is not None:
            return (TokenType.DESC if node.args["desc"] else TokenType.ASC,)
    return ()


def _check_census(
    source: Source,
    words: Sequence[Token],
    names: Collection[int],
    written_by: Mapping[TokenType, list[exp.Expr]],
) -> None:
    """Check that the tokens of the tree are the tokens of the text, and its names the text's names."""
    tokens: list[TokenType] = []
    before = words[0]
    for token in words:
        kind, text = token.token_type, token.text.upper()
        in_duration = before.token_type is TokenType.INTERVAL
        named, before = before.text.upper(), token
        if in_duration and kind in (TokenType.NUMBER, TokenType.STRING):
            continue
        if kind is TokenType.VAR and text in _UNITS and token.start not in names:
            continue  # the unit of a duration, or a part of a date
        if kind is TokenType.VAR and text.endswith(CALL):
            continue  # a function
        if token.start in names:
            fits = kind in NAMES or kind not in KEYWORDS
            fits = fits and (kind is TokenType.IDENTIFIER or text not in _NEVER_NAMES)
        else:
            fits = kind in WORDS and (kind not in NAMES or text in _OPTIONAL_NAMES)
            tokens += _EXPANSIONS.get(kind, (kind,))
        if not fits and not (text == "GROUP" and named == "WITHIN"):
            raise _unexpected(source, token) if kind in WORDS else unsupported_word(source, token)
    written = Counter(tokens)
    expected = Counter({kind: len(nodes) for kind, nodes in written_by.items()})
    for kind in expected - written:
        node = written_by[kind][0]
        raise source.error(node, f"Missing {kind.name}.", f"Add {kind.name}.", SqlSyntaxError)
    for kind in (kind for kind in written - expected if kind not in _UNCOUNTED):
        # A surplus comma is one that no item follows; of other tokens, blame the first.
        pairs = itertools.pairwise(source.tokens)
        candidates = [*(token for token, after in pairs if after.token_type in _NO_ITEM), *source.tokens]
        surplus = (t for t in candidates if kind in _EXPANSIONS.get(t.token_type, (t.token_type,)))
        raise _unexpected(source, next(surplus))


def _unexpected(source: Source, token: Token) -> SqlSyntaxError:
    hint = "Remove it, or add what is missing next to it."
    if token.token_type is TokenType.STRING:
        hint = f'Strings are values. Write names in double quotes: "{shortened(token.text)}".'
    return source.error(token, f'Unexpected "{shortened(token.text)}".', hint, SqlSyntaxError)


def _unsupported(source: Source, node: exp.Expr) -> SqlError:
    message, hint = "Unsupported expression.", "Remove it."
    if isinstance(node, exp.Join):
        message, hint = JOIN
    elif isinstance(node, exp.Subquery):
        return subquery(source, node)
    elif isinstance(node, exp.Rollup | exp.Cube):
        name = type(node).__name__.upper()
        message, hint = f"WITH {name} is not supported.", f"Write GROUP BY {name} (...)."
    elif isinstance(node, exp.Between):
        message, hint = "BETWEEN SYMMETRIC is not supported.", "Write the smaller end first."
    return source.error(node, message, hint)


def subquery(source: Source, node: exp.Expr) -> SqlError:
    """Return the error for a subquery outside of FROM, with what serves in its place."""
    if node.find_ancestor(exp.In):
        hint = "Write its conditions in WHERE, in place of IN."
    elif node.find_ancestor(exp.Where, exp.Having, exp.Filter):
        hint = "Ask it on its own, and write its answer here as a number."
    elif (outer := node.find_ancestor(exp.Select)) and outer.args.get("group"):
        hint = "For shares of the total, write COUNT(*) / SUM(COUNT(*)) OVER ()."
    else:
        hint = "For a share, write COUNT(*) FILTER (WHERE ...) / COUNT(*)."
    return source.error(node, SUBQUERY, hint)


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
