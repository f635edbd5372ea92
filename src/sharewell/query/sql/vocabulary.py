"""The words that may be written: a list of what is allowed, so that all else is refused.

Words are looked at before the parser sees them, because a word knows its place, and because the
parser then meets nothing that it would have to guess at, or that it would warn about.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable

from sqlglot import Token, TokenType
from sqlglot.dialects import DuckDB

from sharewell.errors import SqlError
from sharewell.query.sql.text import SqlText, shortened

#: Words that may be names, and all words.
NAMES = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.DATE, TokenType.FIRST}
WORDS = NAMES | {
    *(TokenType.NUMBER, TokenType.STRING, TokenType.NULL, TokenType.TRUE, TokenType.FALSE),
    *(TokenType.COMMA, TokenType.DOT, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.DCOLON),
    *(TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING),
    *(TokenType.ORDER_BY, TokenType.ASC, TokenType.DESC, TokenType.LIMIT),
    *(TokenType.ALIAS, TokenType.FILTER),
    *(TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IS, TokenType.ISNULL, TokenType.NOTNULL),
    *(TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
    *(TokenType.BETWEEN, TokenType.IN, TokenType.LIKE, TokenType.ESCAPE),
    *(TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH),
    *(TokenType.CASE, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.END),
}
FUNCTIONS = {"COUNT", "SUM", "AVG", "CAST"}

Refusal = tuple[str, str]


def _same(refusal: Refusal, *words: TokenType) -> dict[TokenType, Refusal]:
    return dict.fromkeys(words, refusal)


JOIN = ("Joins are not answered: a question is about one table.", "Name one table after FROM.")
SUBQUERY = ("Subqueries are not answered.", "Write their conditions into WHERE.")

#: What is said of words that SQL has and this language has not. Any other word gets `unknown_word`.
_REFUSED: dict[TokenType, Refusal] = {
    **_same(
        (
            "Values are not cast to other types.",
            "Write them as they are, and days as DATE '2024-12-31'.",
        ),
        *(DuckDB.parser_class.TYPE_TOKENS - WORDS),
    ),
    **_same(
        JOIN,
        *(TokenType.JOIN, TokenType.LEFT, TokenType.RIGHT, TokenType.INNER, TokenType.OUTER),
        *(TokenType.FULL, TokenType.CROSS, TokenType.NATURAL, TokenType.SEMI, TokenType.ANTI),
        *(TokenType.ASOF, TokenType.POSITIONAL, TokenType.LATERAL, TokenType.ON),
    ),
    **_same(
        ("UNION, EXCEPT and INTERSECT are not answered.", "Ask each SELECT as a question of its own."),
        *(TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT),
    ),
    **_same(
        ("Window functions are not answered.", "Use GROUP BY, and compute on the result."),
        *(TokenType.OVER, TokenType.WINDOW, TokenType.QUALIFY, TokenType.PARTITION_BY),
    ),
    **_same(
        ("Samples are not answered: every row is counted.", "Leave the sample out."),
        *(TokenType.TABLE_SAMPLE, TokenType.USING),
    ),
    **_same(
        ("OFFSET and FETCH are not answered.", "Use ORDER BY and LIMIT."),
        *(TokenType.OFFSET, TokenType.FETCH),
    ),
    **_same(
        ("Parameters are not filled in.", "Write the value itself."),
        *(TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.COLON, TokenType.DOLLAR),
    ),
    **_same(
        ("Of the text comparisons only =, <>, IN and LIKE are answered.", "Use LIKE with % and _."),
        *(TokenType.ILIKE, TokenType.GLOB, TokenType.SIMILAR_TO, TokenType.RLIKE, TokenType.COLLATE),
        *(TokenType.DPIPE, TokenType.TILDE),
    ),
    **_same(
        ("Constants are computed with + - * and / only.", "Write the number itself."),
        *(TokenType.MOD, TokenType.DIV, TokenType.CARET, TokenType.DSTAR, TokenType.AMP),
        *(TokenType.PIPE, TokenType.HASH),
    ),
    **_same(
        ("The present time and spans of time are not answered.", "Write days as DATE '2024-12-31'."),
        *(TokenType.INTERVAL, TokenType.CURRENT_DATE, TokenType.CURRENT_TIME),
        *(TokenType.CURRENT_TIMESTAMP, TokenType.TIMESTAMP, TokenType.TIMESTAMPNTZ, TokenType.TIME),
    ),
    **_same(
        ("GROUP BY takes plain columns and declared bins.", "List them: GROUP BY age_group, sex."),
        *(TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS),
    ),
    TokenType.DISTINCT: (
        "DISTINCT is not answered: rows are counted, not different values.",
        "Leave DISTINCT out, or GROUP BY the column.",
    ),
    TokenType.WITH: ("WITH is not answered.", "Write its conditions into WHERE."),
    TokenType.EXISTS: SUBQUERY,
}


def check_words(source: SqlText, names: Collection[str]) -> None:
    """Refuse a text that uses a word outside the vocabulary.

    `names` are the columns' and the table's, in lower case: what is named there, or after AS, is a
    name, whatever else it means in SQL.
    """
    tokens = source.tokens
    if tokens[0].token_type is TokenType.L_PAREN:
        raise _refused(source, tokens[0], SUBQUERY)
    names = {*names, *_aliases(tokens)}
    for token, following in itertools.zip_longest(tokens, tokens[1:]):
        kind = token.token_type
        named = kind in NAMES or (kind not in WORDS and token.text.casefold() in names)
        if not named and (kind not in WORDS or (kind is TokenType.NOT and token.text == "!")):
            raise unknown_word(source, token)
        if kind is TokenType.SELECT and token is not tokens[0]:
            raise _refused(source, token, SUBQUERY)
        if named and following is not None and following.token_type is TokenType.L_PAREN:
            _check_function(source, token)


def _aliases(tokens: Iterable[Token]) -> set[str]:
    after_as, names = False, set()
    for token in tokens:
        if after_as:
            names.add(token.text.casefold())
        after_as = token.token_type is TokenType.ALIAS
    return names


def _check_function(source: SqlText, token: Token) -> None:
    if token.token_type is TokenType.VAR and token.text.upper() in FUNCTIONS:
        return
    raise _refused(
        source,
        token,
        (
            f"The function {shortened(token.text)} is not answered.",
            "Use COUNT, SUM or AVG; write days as DATE '2024-12-31'.",
        ),
    )


def unknown_word(source: SqlText, token: Token) -> SqlError:
    """What is said of a word that is not in the vocabulary."""
    word = shortened(token.text)
    hint = (
        f'If it is a name, write it in double quotes: "{word}".'
        if word.isidentifier()
        else "Leave it out."
    )
    other = (f"{word} is not part of the SQL that is answered.", hint)
    return _refused(source, token, _REFUSED.get(token.token_type, other))


def _refused(source: SqlText, token: Token, refusal: Refusal) -> SqlError:
    return SqlError(refusal[0], hint=refusal[1], where=source.at_token(token))
