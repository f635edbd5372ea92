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
from collections import Counter, deque
from collections.abc import Collection, Sequence

from sqlglot import ParseError, Token, TokenType, exp

from sharewell.errors import Location, QueryTooComplex, SqlError, SqlSyntaxError
from sharewell.query.diagram import is_limited, spend
from sharewell.query.functions import ALIASES, FUNCTIONS, PARTS
from sharewell.query.sql.refusals import (
    REFUSED_WORDS,
    syntax_error,
    unexpected,
    unknown_function,
    unsupported_node,
    unsupported_word,
)
from sharewell.query.sql.text import CLOSING, DIALECT, OPENING, Source, token_types

#: The maximum nesting of parentheses, CASE, NOT and signs. The parser is recursive: twice this depth
#: still leaves enough of Python's stack to the caller.
MAX_NESTING = 100
#: The maximum depth of the tree; a chain of ANDs, or of ORs, counts as one level. Each level takes up to
#: three nested calls: here, and for HAVING again once the answers are paid for.
MAX_DEPTH = 2 * MAX_NESTING + 20
#: How many tokens are parsed in the time of one step of a diagram.
TOKENS_OF_STEP = 2
#: The maximum number of columns that a clause of a new question lists, as in PostgreSQL.
MAX_COLUMNS = 1664
_LISTS_OF_COLUMNS: dict[type[exp.Expr], str] = {
    exp.Select: "SELECT",
    exp.Group: "GROUP BY",
    exp.Order: "ORDER BY",
}


#: Members of an enumeration are looked up slowly: these are compared with every token.
_ALIAS, _COMMA, _DECIMAL, _IDENTIFIER, _INTERVAL = token_types("ALIAS COMMA DECIMAL IDENTIFIER INTERVAL")
_L_PAREN, _NOT, _NUMBER, _SEMICOLON, _STRING = token_types("L_PAREN NOT NUMBER SEMICOLON STRING")
_TILDE, _VAR = token_types("TILDE VAR")
_FIRST = {*token_types("SELECT WITH L_PAREN")}
_PREFIXES = {*token_types("NOT DASH PLUS")}

#: Tokens that may be names, and all allowed tokens.
NAMES = {*token_types("VAR IDENTIFIER DATE FIRST")}
#: The types of CAST.
TYPES = {*token_types("INT BIGINT SMALLINT TINYINT DOUBLE FLOAT DECIMAL TEXT VARCHAR BOOLEAN")}
#: Words that are never names, and words that are names too where a column or an alias has them.
KEYWORDS = {
    *token_types("NUMBER STRING NULL TRUE FALSE COMMA DOT L_PAREN R_PAREN DCOLON L_BRACKET R_BRACKET"),
    *token_types("SELECT FROM WHERE GROUP_BY HAVING ORDER_BY ASC DESC LIMIT ALIAS FILTER"),
    *token_types("AND OR NOT IS ISNULL NOTNULL EQ NEQ LT LTE GT GTE BETWEEN IN LIKE ESCAPE"),
    *token_types("TILDE PLUS DASH STAR SLASH DIV MOD DSTAR CARET DPIPE CASE WHEN THEN ELSE END"),
}
SOFT_KEYWORDS = TYPES | {
    *token_types("OFFSET ILIKE SIMILAR_TO DISTINCT INTERVAL OVER PARTITION_BY ROWS RANGE STRUCT"),
    *token_types("ALL ROLLUP CUBE GROUPING_SETS WITH UNION"),
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

#: The tokens that an argument is written with, beside those of the node that has it.
_ARGUMENT_TOKENS: dict[str, tuple[TokenType, ...]] = {
    "all": token_types("ALL"),
    "default": token_types("ELSE"),
    "negate": token_types("NOT"),
    "partition_by": token_types("PARTITION_BY"),
    "end": token_types("BETWEEN AND"),
}
#: The arguments that each kind of node may have, with their tokens, and the tokens of the node itself.
NODES: dict[type[exp.Expr], tuple[dict[str, tuple[TokenType, ...]], tuple[TokenType, ...]]] = {
    node: (
        {argument: _ARGUMENT_TOKENS.get(argument, ()) for argument in arguments.split()},
        token_types(tokens),
    )
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

#: The arguments whose members have commas between them.
_COMMA_LISTS = {"expressions", "partition_by"}
#: The nodes of which a chain counts as one level.
_CHAINS = {exp.And, exp.Or}
#: Tokens that abbreviate several.
_EXPANSIONS = {
    TokenType.ISNULL: token_types("IS NULL"),
    TokenType.NOTNULL: token_types("NOT IS NULL"),
}
#: Tokens that are not counted: names are checked one by one, and the others are optional.
_UNCOUNTED = (
    NAMES | TYPES | {*token_types("ALIAS DOT DCOLON L_PAREN R_PAREN STRUCT ROWS RANGE DSTAR CARET")}
)
#: Tokens that cannot start an item of a list.
_NO_ITEM = {*token_types("COMMA FROM R_PAREN HAVING ORDER_BY LIMIT")}
#: Words that the parser may take for names: the first are never names, the second need not be.
_NEVER_NAMES = {"GROUP", "ORDER", "BY"}
_OPTIONAL_NAMES = PARSED | NAMED | {"DATE", "NULLS", "FIRST", "LAST", "WITHIN", "GROUP"}
_OPTIONAL_NAMES |= {"UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT"}
#: Names of units of time, which are no names of columns where they follow a duration.
_UNITS = {name for unit in PARTS for name in (unit.upper(), f"{unit.upper()}S")}
_UNITS |= {"HOUR", "MINUTE", "SECOND", "EPOCH"}  # which no date has, as the translator says


def parse(source: Source) -> exp.Select | exp.Union:
    """Parse a text into a tree that is inside the grammar and accounts for every token."""
    spend(len(source.tokens) // TOKENS_OF_STEP)
    words = _read_words(source)
    try:
        match DIALECT.parser().parse(words, source.text):
            case [exp.Expr() as tree]:
                return _check_tree(source, words, tree)
        wrong: SqlError = syntax_error(source, [])
    except ParseError as error:
        wrong = syntax_error(source, error.errors)
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
    if tokens[0].token_type not in _FIRST:
        raise source.error(tokens[0], "Only SELECT is supported.", example)
    pairs = itertools.pairwise(tokens)
    aliases = {after.text.casefold() for token, after in pairs if token.token_type is _ALIAS}
    names = {*source.domain.columns, source.table.casefold(), *aliases}
    names |= {measure.name.casefold() for measure in source.domain.measures}
    words: list[Token] = []
    opened: list[Token] = []
    prefixes, before, readable = 0, tokens[0], True
    for token, following in itertools.zip_longest(tokens, tokens[1:]):
        kind = token.token_type
        opens = following is not None and following.token_type is _L_PAREN
        marked = token
        if opens or kind is _NOT or kind not in WORDS:
            word = token.text.upper()
            if kind is _SEMICOLON:
                message = "Multiple statements are not supported."
                raise source.error(token, message, "Run each SELECT as a separate query.")
            is_function = opens and kind is not _IDENTIFIER and word in NAMED
            is_parsed = kind is not _IDENTIFIER and word in PARSED
            is_name = kind in NAMES or (kind not in KEYWORDS and token.text.casefold() in names)
            negated = kind is _NOT and token.text == "!"
            negated = negated and (following is None or following.token_type is not _TILDE)
            if negated or not (is_function or is_name or kind in WORDS):
                # A keyword of a clause that is not supported is often followed by others of the same.
                if readable or not token.text.isalpha():
                    is_call = opens and kind not in REFUSED_WORDS and token.text.isidentifier()
                    source.add(_unknown(source, token) if is_call else unsupported_word(source, token))
                readable = False
            elif opens and kind in _EXPANSIONS:
                raise _unknown(source, token)
            elif opens and is_name and not (is_function or is_parsed or _may_open(token, before)):
                source.add(source.unknown_functions.setdefault(word, _unknown(source, token)))
            if is_function or (opens and word in source.unknown_functions):
                marked = Token(_VAR, word + CALL, token.line, token.col, token.start, token.end)
        words.append(marked)
        if kind is _DECIMAL and not opens and _is_type(before, following):
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


def _may_open(token: Token, before: Token) -> bool:
    """Whether a parenthesis may follow a name that is not in the table of functions."""
    if token.token_type in TYPES:
        return True
    if token.token_type is TokenType.IDENTIFIER:
        return before.token_type is TokenType.ALIAS
    word = token.text.upper()
    return word == "WITHIN" or (word == "GROUP" and before.text.upper() == "WITHIN")


def _unknown(source: Source, token: Token) -> SqlError:
    return unknown_function(source, token, PARSED | NAMED)


def _check_tree(source: Source, words: Sequence[Token], tree: exp.Expr) -> exp.Select | exp.Union:
    """Refuse nodes and arguments outside the grammar, and tokens that no node is written with."""
    written: list[tuple[exp.Expr, tuple[TokenType, ...]]] = []
    names: set[int] = set()
    pending = deque([(tree, 1)])
    while pending:
        node, depth = pending.popleft()
        # How deep Python can recurse depends on the caller. A statement that was accepted once must be
        # accepted again when the ledger is replayed, so the limit is our own.
        if depth > MAX_DEPTH:
            raise too_deep(source.locate(node))
        kind = type(node)
        if kind is exp.Union and node.args.get("distinct"):
            pairs = itertools.pairwise([*words, words[-1]])
            unions = [(a, b) for a, b in pairs if a.token_type is TokenType.UNION]
            union = next(a for a, b in unions if b.token_type is not TokenType.ALL)
            message = "UNION without ALL is not supported: noisy rows are never the same."
            raise source.error(union, message, "Write UNION ALL.")
        rule = NODES.get(kind)
        if rule is None:
            raise unsupported_node(source, node)
        # Of what was accepted once, the columns are not limited again.
        if kind in _LISTS_OF_COLUMNS and len(node.expressions) > MAX_COLUMNS and is_limited():
            clause = _LISTS_OF_COLUMNS[kind]
            message = f"{clause} lists {len(node.expressions):,} columns; the limit is {MAX_COLUMNS:,}."
            hint = "Split the question, or use GROUP BY in place of many conditions."
            raise source.error(node.expressions[MAX_COLUMNS], message, hint, QueryTooComplex)
        arguments, tokens = rule
        if kind is exp.Identifier:
            names.add(node.meta.get("start", -1))
        elif kind is exp.Literal:
            in_duration = isinstance(node.parent, exp.Interval)
            tokens = () if in_duration else (_STRING if node.is_string else _NUMBER,)
        elif kind is exp.Boolean:
            tokens = (TokenType.TRUE if node.this else TokenType.FALSE,)
        elif kind is exp.Ordered and node.args.get("desc") is not None:
            tokens = (TokenType.DESC if node.args["desc"] else TokenType.ASC,)
        for key, value in node.args.items():
            if not value:
                continue
            if key not in arguments:
                part = value[0] if isinstance(value, list) else value
                raise unsupported_node(source, part if isinstance(part, exp.Expr) else node)
            tokens += arguments[key]
            if isinstance(value, list):
                if key in _COMMA_LISTS:
                    tokens += (_COMMA,) * (len(value) - 1)
                pending.extend([(each, depth + 1) for each in value])
            elif isinstance(value, exp.Expr):
                in_chain = kind in _CHAINS and type(value) is kind
                pending.append((value, depth + (not in_chain)))
        if tokens:
            written.append((node, tokens))
    if not isinstance(tree, exp.Select | exp.Union):
        raise unsupported_node(source, tree)
    if not source.mistakes:  # otherwise it is refused in any case
        _check_census(source, words, names, written)
    return tree


def _check_census(
    source: Source,
    words: Sequence[Token],
    names: Collection[int],
    written: Sequence[tuple[exp.Expr, tuple[TokenType, ...]]],
) -> None:
    """Check that the tokens of the tree are the tokens of the text, and its names the text's names."""
    tokens: list[TokenType] = []
    before = words[0]
    for token in words:
        kind, text = token.token_type, token.text
        after, before = before, token
        if token.start in names:
            fits = kind is _IDENTIFIER or (kind not in KEYWORDS and text.upper() not in _NEVER_NAMES)
            fits = fits or (text.upper() == "GROUP" and after.text.upper() == "WITHIN")
        elif kind is _VAR:
            # A function, the unit of a duration or a part of a date, or a word of the grammar.
            fits = text.endswith(CALL) or text.upper() in _UNITS or text.upper() in _OPTIONAL_NAMES
        elif after.token_type is _INTERVAL and kind in (_NUMBER, _STRING):
            continue
        else:
            fits = kind in WORDS and (kind not in NAMES or text.upper() in _OPTIONAL_NAMES)
            if kind not in _UNCOUNTED:
                tokens += _EXPANSIONS.get(kind, (kind,))
        if not fits:
            raise unexpected(source, token) if kind in WORDS else unsupported_word(source, token)
    expected = [kind for _, own in written for kind in own]
    if sorted(tokens) == sorted(expected):
        return
    for kind in Counter(expected) - Counter(tokens):
        node = next(node for node, own in written if kind in own)
        raise source.error(node, f"Missing {kind.name}.", f"Add {kind.name}.", SqlSyntaxError)
    for kind in Counter(tokens) - Counter(expected):
        # A surplus comma is one that no item follows; of other tokens, blame the first.
        pairs = itertools.pairwise(source.tokens)
        candidates = [*(token for token, after in pairs if after.token_type in _NO_ITEM), *source.tokens]
        surplus = (t for t in candidates if kind in _EXPANSIONS.get(t.token_type, (t.token_type,)))
        raise unexpected(source, next(surplus))


def too_deep(where: Location | None = None) -> QueryTooComplex:
    """Return the error for SQL that is nested too deeply."""
    return QueryTooComplex(
        f"The SQL is nested too deeply; the limit is {MAX_NESTING} levels.",
        hint="Remove redundant parentheses, or split the query.",
        where=where,
    )
