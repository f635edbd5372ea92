"""Random statements of the whole grammar of SQL, each made from a seed.

Expressions are written from the templates below: each `{kind}` in one is replaced by a random expression
of that kind. Statements are put together by the methods of `Writer`. Labels are named k0, k1..., numbers
v0, v1..., so that results can be compared.
"""

from __future__ import annotations

import random
import re

from sharewell import Binned, Boolean, Category, Date, Domain, Integer, Measure

DOMAIN = Domain(
    [
        Integer("age", 0, 5, bins={"age_group": [0, 2, 4]}),
        Integer("kids", 0, 1, nullable=True),
        Category("region", ["North", "South", "New East"]),
        Category("code", ["A-1", "b_2%", "Zoë's x"], nullable=True),
        Boolean("emp", nullable=True),
        Date("d", "2020-01-30", "2020-02-02"),
        Date("gone", "2020-01-31", "2020-02-01", nullable=True),
        Date("m", "2019-11-01", "2020-01-31", by="month", bins={"m_year": "year"}),
        Binned("pay", [0, 2, 6]),
    ],
    [Measure("wage", "wage", 0, 10, 1, nullable=False), Measure("bonus", "bonus", -2, 3, 0.5)],
    [("wage", "wage"), ("wage", "bonus"), ("bonus", "bonus")],
)

#: Pairs of columns with more combinations of values than an expression is evaluated on.
STAYS = Domain(
    [
        Date("admitted", "2023-01-01", "2024-02-04"),
        Date("discharged", "2023-01-01", "2024-02-04", nullable=True),
    ]
)
DOSES = Domain([Integer("dose", 0, 399), Integer("weight", -9, 390, nullable=True)])


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


#: What each kind of expression may be written as. The first group, up to an empty line, are leaves.
_TEMPLATES = {
    "number": """
        {q}age
        {q}age
        {q}kids
        "age"

        {number} + {number}
        {number} - {digit}
        {number} * {few}
        {number} / {even}
        {whole_number} // {few}
        {number} % {few}
        MOD({number}, {few})
        ({number}) ** 2
        ({q}age) ^ 2
        -({number})
        {pow}({number}, 2)
        ABS({number} - {digit})
        {round}({number} / {even})
        {round}({q}age * 1.25)
        ROUND({number} / {even}, {few})
        ROUND({q}age * 12.5, -1)
        FLOOR({number} / 2) * 2
        SIGN({number} - 2)
        ROUND(SQRT(ABS({number})), 3)
        ROUND(LN({q}age + 1), 3)
        ROUND({log}({q}age + {few}), 3)
        ROUND(EXP({q}kids), 3)
        WIDTH_BUCKET({number}, 0, 6, {few})
        GREATEST({number}, {number})
        LEAST({number}, {digit})
        {cast}({number} AS {type})
        CAST({number} / 4 AS {whole})
        ({number})::{type}
        CAST({condition} AS INTEGER)
        COALESCE({number}, {number}, {digit})
        IFNULL({number}, {digit})
        NULLIF({number}, {digit})
        CASE WHEN {condition} THEN {number} ELSE {digit} END
        CASE WHEN {condition} THEN {digit} WHEN {condition} THEN {number} END
        CASE {number} WHEN 1 THEN 10 WHEN {digit} THEN 20 ELSE 0 END
        {if}({condition}, {number}, {digit})
        {length}({text})
        {strpos}({text}, {word})
        {part}({date})
        EXTRACT({unit} FROM {date})
        {date_part}('{unit}', {date})
        EXTRACT({months} FROM {q}m)
        {date_diff}('{months}', {date}, {date})
        {date_diff}('{days}', DATE '2020-01-01', {q}d)
        {q}d - DATE '2020-01-01'
        {q}gone - {q}d
    """,
    #: As text, other numbers have decimals in DuckDB.
    "whole_number": """
        {q}age
        {q}kids

        {whole_number} + {whole_number}
        {whole_number} * {few}
        {whole_number} % {few}
        ABS({whole_number} - {digit})
        CAST({number} AS INTEGER)
        COALESCE({whole_number}, {digit})
        {length}({text})
        {part}({date})
        {q}d - {q}gone
        CASE WHEN {condition} THEN {whole_number} ELSE {digit} END
    """,
    "text": """
        {q}region
        {q}region
        {q}code
        {q}age_group
        {q}m_year

        {upper}({text})
        {trim}({text})
        {side}({text}, {few})
        {side}({text}, -{few})
        {substring}({text}, {digit})
        {substring}({text}, {digit}, {few})
        {substring}({text}, -{few}, 2)
        SPLIT_PART({text}, {word}, {few})
        SPLIT_PART({text}, ' ', -1)
        REPLACE({text}, {word}, {word})
        REVERSE({text})
        {text} || {word}
        {text} || {text}
        {text} || {q}age
        CONCAT({text}, '-', {q}age)
        CONCAT({q}kids, {text}, {q}gone)
        CASE WHEN {condition} THEN {word} ELSE {text} END
        CASE {text} WHEN 'North' THEN 'n' WHEN {word} THEN 's' END
        {if}({condition}, {text}, {word})
        COALESCE({text}, 'none')
        NULLIF({text}, {word})
        {extreme}({text}, {word})
        CAST({q}age AS {string})
        CAST({whole_number} AS {string})
        CAST({q}d AS VARCHAR)
        CAST(LAST_DAY({date}) AS VARCHAR)
        ({condition})::TEXT
        {name}({date})
        {name}({q}m + INTERVAL 1 YEAR)
    """,
    "date": """
        {q}d
        {q}d
        {q}gone

        {date} + INTERVAL {few} {units}
        {date} - INTERVAL '{few}' {units}
        INTERVAL {few} MONTH + {date}
        {q}d + {few}
        {date_trunc}('{days}', {date})
        {date_trunc}('{months}', {q}m)
        LAST_DAY({date})
        LAST_DAY({q}m)
        COALESCE({q}gone, {q}d)
        {extreme}({q}gone, {q}d)
        NULLIF({q}d, {day})
        CASE WHEN {condition} THEN {q}d ELSE {q}gone END
    """,
    "condition": """
        {q}emp
        {q}emp IS {not}{truth}
        {q}emp IS {not}NULL
        {q}emp {nulled}
        {q}emp = {truth}
        {q}age {compare} {digit}
        {digit} {compare} {q}age
        {q}age {compare} {constant}
        {q}kids {compare} {digit}
        {q}age {not}IN ({digit}, {digit})
        {q}kids {not}IN ({digit}, NULL)
        {q}age {not}BETWEEN {digit} AND {digit}
        {q}region {compare} {place}
        {q}region {not}IN ({place}, {place})
        {q}region {not}LIKE {pattern}
        {q}code {not}ILIKE {pattern}
        {q}code LIKE 'b!_2!%' ESCAPE '!'
        {q}code NOT LIKE '%!_%' ESCAPE '!'
        {q}age_group = '0-1'
        {q}m_year <> '2019'
        {q}d {compare} {day}
        {q}gone {compare} {day}
        {q}d {not}BETWEEN {day} AND {day}
        {q}d IN ({day}, '2020-02-01')
        {q}m {edge} DATE '2019-12-01'
        {q}m {edge} '2020-01-01'
        {q}pay {edge} 2

        {number} {compare} {number}
        {number} {compare} {digit}
        {number} {not}IN ({digit}, {number})
        {number} {not}BETWEEN {digit} AND {number}
        {number} IS {not}NULL
        {number} IS {not}DISTINCT FROM {number}
        {text} {compare} {text}
        {text} {compare} {word}
        {text} {not}IN ({word}, {word})
        {text} {not}LIKE {pattern}
        {text} {not}ILIKE {pattern}
        {text} {not}SIMILAR TO {regular}
        {text} ~ {regular}
        {text} !~ {regular}
        {regexp}({text}, {regular})
        {text} IS {not}NULL
        {text} IS {not}DISTINCT FROM {text}
        {test_of_text}({text}, {word})
        {date} {compare} {date}
        {date} {compare} {day}
        {date} {not}BETWEEN {date} AND {day}
        {date} IS {not}DISTINCT FROM {date}
        {q}d - {q}gone {compare} {digit} - 2
        {condition} AND {condition}
        {condition} OR {condition}
        ({condition} OR {condition}) AND {condition}
        NOT ({condition})
        ({condition}) IS {not}{truth}
        ({condition}) IS {not}NULL
        COALESCE({condition}, {truth})
        CASE WHEN {condition} THEN {condition} ELSE {condition} END
        {if}({condition}, {condition}, {truth})
    """,
    #: What a row adds to a sum of measures.
    "polynomial": """
        wage
        bonus

        wage * wage
        wage * bonus
        bonus ** 2
        {pow}(wage, 2)
        wage - {few} * bonus
        (wage - {few}) * (bonus + 1)
        -(bonus - wage) / {even}
        wage * 40
        wage / {even}
        {few} - bonus * bonus
        CASE WHEN {condition} THEN {measure} END
        CASE WHEN {condition} THEN {measure} ELSE NULL END
    """,
    "aggregate": """
        COUNT(*)
        COUNT(*)
        COUNT(DISTINCT person)
        COUNT({measure})

        COUNT(*) FILTER (WHERE {condition})
        {count_if}({condition})
        COUNT({number})
        COUNT({text})
        COUNT({date})
        COUNT({condition})
        COUNT(CASE WHEN {condition} THEN 1 END)
        COUNT(CASE WHEN {condition} THEN {word} ELSE {text} END)
        COUNT(CASE WHEN {condition} THEN {date} END)
        COUNT(CASE WHEN {condition} THEN {measure} END)
        COUNT({measure}) FILTER (WHERE {condition})
        {total}({number})
        {total}({number}) FILTER (WHERE {condition})
        SUM({condition})
        {total}(CASE WHEN {condition} THEN {number} END)
        {total}(CASE WHEN {condition} THEN {number} WHEN {condition} THEN {digit} ELSE 0 END)
        {total}(CASE {q}region WHEN 'North' THEN {number} ELSE {digit} END)
        {total}({if}({condition}, {number}, {digit}))
        SUM(CASE WHEN {condition} THEN wage ELSE 0 END)
        {total}(pay)
        {total}(pay) FILTER (WHERE {condition})
        {total}({polynomial})
        {total}({polynomial}) FILTER (WHERE {condition})
        MEDIAN({ordered})
        {quantile}({ordered}, {fraction})
        {quantile}({ordered}, {fraction}) FILTER (WHERE {condition})
        {percentile}({fraction}) WITHIN GROUP (ORDER BY {ordered})
        {percentile}({fraction}) WITHIN GROUP (ORDER BY {ordered} DESC)
        {spread}({spreadable})
        {spread}({spreadable}) FILTER (WHERE {condition})
        {pairwise}({pairable}, {pairable})
        {pairwise}({pairable}, {pairable}) FILTER (WHERE {condition})
    """,
    #: What is computed from the numbers of a result.
    "result": """
        {aggregate}
        {aggregate}
        COUNT(*)

        {result} + {result}
        {result} - {result}
        {result} * {few}
        {result} / {few}
        ({result}) % 7
        COUNT({number}) // {few}
        SUM(age) // ({few} + 1)
        -({result})
        COUNT(*) * {digit} + SUM({number})
        100.0 * {aggregate} / NULLIF(COUNT(*), 0)
        100.0 * COUNT(*) FILTER (WHERE {condition}) / COUNT(*)
        SUM({number}) / COUNT({number})
        {round}({result})
        ROUND({result}, {few})
        ABS({result} - {tens})
        SIGN({result} - {tens})
        SQRT(ABS({result}))
        LN(ABS({result}) + 1)
        POWER({result}, 2)
        COALESCE({result}, {digit})
        NULLIF({result}, {digit})
        GREATEST({result}, {tens})
        LEAST({result}, {result})
        CAST({result} AS {type})
        CAST(COUNT(*) AS {large})
        CASE WHEN {test} THEN {result} ELSE {digit} END
        CASE WHEN {test} THEN {result} WHEN {test} THEN {tens} END
        {if}({test}, {result}, {result})
    """,
    "test": """
        COUNT(*) {compare} {tens}
        {aggregate} > {digit}

        {result} {compare} {tens}
        {result} {not}BETWEEN {digit} AND {tens}
        {result} IS {not}NULL
        {result} IS {not}DISTINCT FROM {digit}
        {test} AND {test}
        {test} OR {test}
        NOT ({test})
    """,
    #: A comparison of two columns of many values, each side with one of them.
    "stay": """
        discharged - admitted {compare} {tens}
        {tens} {compare} discharged - admitted
        {date_diff}('day', admitted, discharged) {compare} {tens}
        discharged {compare} admitted
        admitted + INTERVAL {few} {units} {compare} discharged
        admitted {compare} discharged - INTERVAL {few} {units}
        discharged {not}BETWEEN admitted AND admitted + INTERVAL {few} MONTH
        YEAR(admitted) {compare} YEAR(discharged)
        DATE_TRUNC('{months}', admitted) {compare} DATE_TRUNC('{months}', discharged)
        MONTH(discharged) {compare} MONTH(admitted) + {digit}
        COALESCE(discharged, DATE '2024-01-01') {compare} admitted + {few}
        DAYNAME(admitted) {compare} DAYNAME(discharged)

        {stay} AND {stay}
        {stay} OR admitted < DATE '2023-06-01'
        NOT ({stay})
        ({stay}) IS {not}{truth}
    """,
    "dose": """
        dose {compare} weight
        weight {compare} dose
        dose * {few} {compare} weight + {digit}
        dose / {even} {compare} weight
        weight // 10 {compare} dose // {few}
        dose % 7 {compare} ABS(weight) % 5
        COALESCE(weight, {tens}) {compare} dose
        weight {not}BETWEEN dose AND dose + {tens}

        {dose} AND {dose}
        {dose} OR weight > {tens}
        NOT ({dose})
        ({dose}) IS {not}{truth}
    """,
}

#: Words that each stand for themselves, separated by spaces.
_WORDS = {
    "digit": "0 1 2 3 4 5",
    "constant": "2.5 -0.5 .5 1e0 -1",
    "few": "1 2 3",
    "even": "2 4",
    "tens": "0 10 25 60 200",
    "compare": "< <= > >= = <> !=",
    "edge": "< >=",
    "truth": "TRUE FALSE",
    "nulled": "ISNULL NOTNULL",
    "fraction": "0.1 0.25 0.5 0.6 0.75 0.9",
    "round": "ROUND FLOOR CEIL CEILING TRUNC TRUNCATE",
    "pow": "POWER POW",
    "log": "LOG LOG10 LOG2",
    "if": "IF IIF",
    "cast": "CAST TRY_CAST",
    "type": "INTEGER BIGINT DOUBLE FLOAT DECIMAL DECIMAL(9,1)",
    "whole": "INT INTEGER BIGINT SMALLINT TINYINT",
    "large": "INT BIGINT SMALLINT",
    "string": "VARCHAR TEXT",
    "length": "LENGTH LEN CHAR_LENGTH",
    "strpos": "STRPOS INSTR",
    "upper": "UPPER LOWER UCASE LCASE",
    "trim": "TRIM LTRIM RTRIM",
    "side": "LEFT RIGHT",
    "substring": "SUBSTRING SUBSTR",
    "test_of_text": "STARTS_WITH ENDS_WITH CONTAINS PREFIX SUFFIX",
    "regexp": "REGEXP_MATCHES REGEXP_FULL_MATCH",
    "extreme": "GREATEST LEAST",
    "name": "MONTHNAME DAYNAME",
    "part": "YEAR QUARTER MONTH WEEK DAY DOW DOY ISODOW ISOYEAR "
    "DAYOFWEEK DAYOFYEAR DAYOFMONTH WEEKOFYEAR WEEKDAY",
    "unit": "year quarter month week day dow doy isodow isoyear decade century",
    "date_part": "DATE_PART DATEPART",
    "date_diff": "DATE_DIFF DATEDIFF",
    "date_trunc": "DATE_TRUNC DATETRUNC",
    "days": "day week month quarter year decade",
    "months": "month quarter year",
    "units": "DAY DAYS WEEK MONTH MONTHS QUARTER YEAR YEARS",
    "total": "SUM AVG",
    "measure": "wage bonus",
    "count_if": "COUNT_IF COUNTIF",
    "ordered": "age kids",
    "quantile": "QUANTILE QUANTILE_CONT QUANTILE_DISC",
    "percentile": "PERCENTILE_CONT PERCENTILE_DISC",
    "spread": "STDDEV STDDEV_SAMP STDDEV_POP VARIANCE VAR_SAMP VAR_POP",
    "spreadable": "age kids age*2+1 wage bonus",
    "pairwise": "COVAR_POP COVAR_SAMP CORR REGR_SLOPE REGR_INTERCEPT REGR_R2 REGR_COUNT",
    "pairable": "wage bonus age kids age*kids",
    "rank": "RANK DENSE_RANK",
}
_TEMPLATES |= {kind: "\n".join(words.split()) for kind, words in _WORDS.items()}
#: Constants that have spaces.
_CHOICES = {
    "not": ["", "NOT "],
    "word": ["'n'", "'North'", "'o'", "' '", "'a'", "'1'", "''", "'O''B'", "'th'"],
    "place": ["'North'", "'South'", "'New East'"],
    "pattern": ["'N%'", "'%o%'", "'S_uth'", "'%'", "'n%'", "'%T'", "'_ew %'", "'A-1'", "'%ë%'"],
    "regular": [
        *("'N.*'", "'.*th'", "'^N'", "'th$'", "'[ae]'", "'o.*t|E'", "'N?e*w '", "'(?i)n.*'"),
        *(r"'\w+'", r"'[^a-z]{2,3}'", "'(North|New [A-Z].+)'", r"'\d'", r"'.*\s.*'", "'[N-S]o(r|u)th?'"),
    ],
    "day": ["DATE '2020-01-31'", "'2020-02-01'", "CAST('2020-02-02' AS DATE)", "'2020-01-30'::DATE"],
}

#: The templates without parts that nest, and all.
LEAVES: dict[str, list[str]] = {}
ALL: dict[str, list[str]] = {}
for _kind, _text in _TEMPLATES.items():
    _leaves, _, _rest = _text.partition("\n\n")
    LEAVES[_kind] = _lines(_leaves)
    ALL[_kind] = [*LEAVES[_kind], *(_lines(_rest) if _rest else ())]
LEAVES |= _CHOICES
ALL |= _CHOICES


class Writer:
    """Writes a random statement."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        #: What the names of columns are written with.
        self.qualifier = ""

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def one(self, *options):
        chosen = self.random.choice(options)
        return chosen() if callable(chosen) else chosen

    def write(self, kind: str, depth: int = 1) -> str:
        """Write an expression; depth limits how far it nests."""
        if kind == "q":
            return self.qualifier
        template = self.random.choice((ALL if depth > 0 else LEAVES)[kind])
        return re.sub(r"\{(\w+)\}", lambda found: self.write(found[1], depth - 1), template)

    def written(self, kind: str, depth: int) -> str:
        """Write an expression of this depth, not of a leaf."""
        template = self.random.choice(ALL[kind][len(LEAVES[kind]) :] or ALL[kind])
        return re.sub(r"\{(\w+)\}", lambda found: self.write(found[1], depth - 1), template)

    # Statements

    def statement(self) -> str:
        """One statement."""
        kinds = {
            self.aggregated: 40,
            self.subtotals: 14,
            self.windowed: 10,
            self.ordered: 10,
            self.union: 8,
            self.of_result: 8,
            self.computed: 4,
            self.quantiles: 4,
            self.distinct: 3,
            self.lines: 3,
        }
        [kind] = self.random.choices(list(kinds), list(kinds.values()))
        sql = kind()
        if self.chance(0.05):
            sql = self.one(f"-- by hand\n{sql};", f"{sql} ;", sql.replace(" FROM ", " /* x */ FROM ", 1))
        return sql

    def comparison(self, kind: str) -> str:
        """A statement that compares two columns of many values."""
        first, second = (self.write(kind, 2) for _ in range(2))
        return self.one(
            f"SELECT COUNT(*) AS v0 FROM people WHERE {first}",
            f"SELECT COUNT_IF({first}) AS v0, COUNT(*) FILTER (WHERE {second}) AS v1 FROM people",
            f"SELECT {first} AS k0, COUNT(*) AS v0 FROM people WHERE {second} GROUP BY k0",
            f"SELECT SUM(CASE WHEN {first} THEN 1 WHEN {second} THEN 2 END) AS v0 FROM people",
            f"SELECT CASE WHEN {first} THEN 'yes' ELSE 'no' END AS k0, COUNT(*) AS v0 FROM people "
            "GROUP BY ALL",
        )

    def source(self) -> str:
        """The table, by one of its names; columns are qualified by it now and then."""
        source, names = self.one(
            ("people", ["people."]),
            ("people", [""]),
            ("main.people", ["people."]),
            ("people p", ["p."]),
            ("people AS p", ["p.", "P."]),
            ('"people"', [""]),
        )
        self.qualifier = self.one("", "", *names)
        return source

    def key(self) -> str:
        """A grouped expression."""
        if self.chance(0.3):
            return self.write(self.one("number", "text", "condition", "date"), 0)
        return self.written(self.one("number", "text", "condition", "date"), self.one(1, 1, 2))

    def columns(self, count: int) -> list[str]:
        """Columns that stand for themselves."""
        names = ["region", "age", "age_group", "emp", "kids", "code", "m_year"]
        return self.random.sample(names, count)

    def aggregated(self) -> str:
        """Aggregates, and what is computed from them, by groups of expressions."""
        source = self.source()
        keys = [self.key() for _ in range(self.one(0, 1, 1, 1, 2))]
        names = [f"k{at}" for at in range(len(keys))]
        window = bool(keys) and self.chance(0.1)
        values = [self.write("result", self.one(1, 2, 2)) for _ in range(self.one(1, 1, 2))]
        if window:
            values.append(self.one("COUNT(*) / SUM(COUNT(*)) OVER ()", "SUM(COUNT(*)) OVER ()"))
        if self.chance(0.1):
            values.append(
                self.one(self.write("test", 1), "CASE WHEN COUNT(*) > 60 THEN 'many' ELSE 'few' END")
            )
        items = [f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]
        items += [f"{value} AS v{at}" for at, value in enumerate(values)]
        where = f" WHERE {self.write('condition', 2)}" if self.chance(0.4) else ""
        source, where = self.nested(source, where)
        by = ""
        if keys:
            by = " GROUP BY " + self.one(
                ", ".join(names),
                ", ".join(str(at + 1) for at in range(len(keys))),
                "ALL",
                f"({', '.join(names)})",
                ", ".join(keys) if not any(key.isdigit() for key in keys) else "ALL",
            )
        having = f" HAVING {self.write('test', 1)}" if keys and not window and self.chance(0.15) else ""
        return f"SELECT {', '.join(items)} FROM {source}{where}{by}{having}"

    def nested(self, source: str, where: str) -> tuple[str, str]:
        """The source, or a subquery that filters it."""
        if self.qualifier or not self.chance(0.15):
            return source, where
        more = self.write("condition", 1)
        return self.one(
            (f"(SELECT * FROM {source}{where}) AS t", ""),
            (f"(SELECT * FROM {source} WHERE {more}) t", where),
            (f"(SELECT * FROM (SELECT * FROM {source} WHERE {more}) AS t{where}) AS u", ""),
        )

    def subtotals(self) -> str:
        """ROLLUP and its relatives, with the columns of subtotals named."""
        columns = self.columns(self.one(1, 2, 2, 3))
        if self.chance(0.2):
            columns[0] = self.one("UPPER(region)", "age // 2", "(age > 2)", "YEAR(d)", "LEFT(code, 1)")
        listed = ", ".join(columns)
        by = self.one(
            f"ROLLUP ({listed})",
            f"CUBE ({listed})",
            f"GROUPING SETS (({listed}), ({columns[0]}), ())",
            f"GROUPING SETS ({', '.join(f'({each})' for each in columns)})",
            f"{columns[0]}, {self.one('ROLLUP', 'CUBE')} ({', '.join(columns[1:] or ['d'])})",
            f"ROLLUP (({listed}), d)",
        )
        keys = [f"{self.named(column)} AS k{at}" for at, column in enumerate(columns)]
        value = self.one("COUNT(*)", lambda: self.write("result", 1), "SUM(wage)", "AVG(age)")
        where = f" WHERE {self.write('condition', 1)}" if self.chance(0.3) else ""
        having = ""
        if self.chance(0.2):
            having = f" HAVING {self.one('COUNT(*) > 60', f'{columns[0]} IS NOT NULL')}"
        elif self.chance(0.1):
            value, where = "100.0 * COUNT(*) / SUM(COUNT(*)) OVER ()", ""
            if len(columns) < 3:  # The ranks of groups without rows are in our result only.
                value = self.one(value, "RANK() OVER (ORDER BY COUNT(*))")
        return f"SELECT {', '.join(keys)}, {value} AS v0 FROM people{where} GROUP BY {by}{having}"

    def named(self, column: str) -> str:
        """A column of a subtotal, or a name in the place of its NULL."""
        return self.one(
            column,
            column,
            f"COALESCE(CAST({column} AS VARCHAR), 'all')",
            f"{column} IS NULL" if "(" not in column else column,
            f"CASE WHEN {column} IS NULL THEN 'all' ELSE 'some' END",
        )

    def ordered(self) -> str:
        """A result whose rows have an order, and some of them."""
        columns = self.columns(self.one(1, 2))
        keys = [f"{column} AS k{at}" for at, column in enumerate(columns)]
        names = [f"k{at}" for at in range(len(columns))]
        value = self.one(
            *("COUNT(*)", "SUM(age)", "AVG(age)", "SUM(wage)", "COUNT(*) - SUM(kids)", "MEDIAN(age)"),
            *("COUNT(*) FILTER (WHERE age > 2)", "ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 2)"),
        )
        by = self.one("v0", "v0", str(len(columns) + 1), value if "OVER" not in value else "v0")
        order = [by + self.one("", " DESC", " ASC")]
        order += [self.one("COUNT(*) DESC", "AVG(age)")] if self.chance(0.2) else []
        nulls = self.one("", "", " NULLS FIRST", " NULLS LAST")
        order += [self.one(name, name, f"{name} DESC") + nulls for name in names]
        having = "" if "OVER" in value or self.chance(0.7) else " HAVING COUNT(*) > 100"
        where = ""
        if self.chance(0.2):  # The groups without rows are in our result only.
            where, having = f" WHERE {self.write('condition')}", " HAVING COUNT(*) > 0"
            value = value if "OVER" not in value else "COUNT(*)"
        sql = f"SELECT {', '.join(keys)}, {value} AS v0 FROM people{where} GROUP BY {', '.join(names)}"
        return f"{sql}{having} ORDER BY {', '.join(order)}{self.cut()}"

    def cut(self) -> str:
        """LIMIT and OFFSET, or neither."""
        r = self.random
        limit = f" LIMIT {r.randint(0, 8)}" if self.chance(0.7) else ""
        return limit + (f" OFFSET {r.randint(0, 4)}" if self.chance(0.4) else "")

    def windowed(self) -> str:
        """Ranks, running totals and shares of totals."""
        columns = self.columns(self.one(1, 2, 2))
        by = self.one("COUNT(*)", "SUM(age)", "COUNT(*) - SUM(age)", "SUM(wage)", "COUNT(kids) * 2")
        order = f"ORDER BY {by}{self.one('', ' DESC')}"
        part = "PARTITION BY k0 " if len(columns) == 2 and self.chance(0.5) else ""
        keys = [f"k{at}{self.one('', ' DESC')}" for at in range(len(columns))]
        within = f"{part}ORDER BY {', '.join(keys[1:] if part else keys)}"
        to_here = " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        rows = self.one("", f" ROWS {self.frame()}", f" ROWS {self.frame()}", to_here)
        total = self.write("total")
        items = [
            self.one(
                f"{self.write('rank')}() OVER ({part}{order})",
                f"{self.write('rank')}() OVER ({part}ORDER BY AVG(age) DESC)",
                f"ROW_NUMBER() OVER ({within})",
                f"{total}({by}) OVER ({within}{rows})",
                f"{total}({by}) OVER ({part}ORDER BY k0{rows})"
                if len(keys) == 1
                else f"{total}({by}) OVER ({within})",
                f"100.0 * {by} / SUM({by}) OVER ({part.strip()})",
                f"ROUND(100.0 * {by} / NULLIF(SUM({by}) OVER ({part.strip()}), 0), {self.write('few')})",
                f"{by} - AVG({by}) OVER ({part.strip()})",
                f"SUM({by}) OVER ({within}) / SUM({by}) OVER ({part.strip()})",
            )
            for _ in range(self.one(1, 2))
        ]
        items += ["COUNT(*)"]
        listed = [f"{column} AS k{at}" for at, column in enumerate(columns)]
        listed += [f"{item} AS v{at}" for at, item in enumerate(items)]
        names = ", ".join(f"k{at}" for at in range(len(columns)))
        return f"SELECT {', '.join(listed)} FROM people GROUP BY {names}"

    def frame(self) -> str:
        """Rows around the current one."""
        r = self.random
        if self.chance(0.2):
            return self.one("UNBOUNDED PRECEDING", f"{r.randint(0, 3)} PRECEDING")
        before = self.one("UNBOUNDED PRECEDING", f"{r.randint(0, 3)} PRECEDING", "CURRENT ROW")
        after = self.one("UNBOUNDED FOLLOWING", f"{r.randint(0, 3)} FOLLOWING", "CURRENT ROW")
        return f"BETWEEN {before} AND {after}"

    def union(self) -> str:
        """Two or three SELECTs, one below the other."""
        condition = self.write("condition", 1)
        value = self.one(
            *("COUNT(*)", "SUM(age)", "SUM(wage)", "AVG(wage)", "AVG(age)", "COUNT(*) - 3 * SUM(age)"),
            *("STDDEV(age)", "CORR(wage, bonus)", "SUM(wage * bonus)", "COUNT(DISTINCT person)"),
            f"ROUND(100.0 * COUNT(*) FILTER (WHERE {condition}) / COUNT(*), 1)",
            f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)",
        )
        parts = []
        for _ in range(self.one(2, 2, 3)):
            key = self.one(
                "region", "age_group", "'all'", "UPPER(region)", "'total'", "LEFT(code, 1)", "NULL"
            )
            where = f" WHERE {self.write('condition', 1)}" if self.chance(0.3) else ""
            group = (
                ""
                if key[0] == "'" or key == "NULL"
                else self.one(" GROUP BY k0", " GROUP BY 1", " GROUP BY ALL")
            )
            part = f"SELECT {key} AS k0, {value} AS v0 FROM people{where}{group}"
            parts.append(f"({part})" if self.chance(0.1) else part)
        sql = " UNION ALL ".join(parts)
        if self.chance(0.15):
            kept = f"SELECT * FROM people WHERE {self.write('condition', 1)}"
            sql = f"WITH kept AS ({kept}) {sql.replace('FROM people', 'FROM kept')}"
        if "WHERE" not in sql and self.chance(0.4):
            sql += f" ORDER BY {self.one('k0, v0', 'v0 DESC, k0', '1, 2 DESC')}{self.cut()}"
        return sql

    def of_result(self) -> str:
        """A subquery that aggregates, and what is done with its rows."""
        column = self.one(*self.columns(1), "age // 2", "LEFT(code, 1)")
        source = self.one("people", "people", "(SELECT * FROM people WHERE age < 5) AS kept")
        where = f" WHERE {self.write('condition', 1)}" if self.chance(0.3) else ""
        by = self.one("label", "label", "1", "ALL", column)
        value = self.write("aggregate", 1)
        inner = f"SELECT {column} AS label, {value} AS n, COUNT(*) AS size FROM {source}{where}"
        inner += f" GROUP BY {by}"
        if not where and self.chance(0.3):
            inner += (
                f" ORDER BY {self.one('size', '3', 'COUNT(*)')} DESC, {self.one('label', '1')} LIMIT 3"
            )
            after = ""
        else:
            after = self.one("", "", " WHERE size > 60", " WHERE n IS NOT NULL AND label IS NOT NULL")
        label = self.one("label AS k0", "label AS k0", "COALESCE(CAST(label AS VARCHAR), 'none') AS k0")
        number = self.one("n", "n * 2", "ROUND(n, 1)", "n - size", "COALESCE(n, 0)", "100.0 * n / size")
        # Without its label, a group is known by its size.
        listed = self.one(
            f"{label}, {number} AS v0", f"{label}, {number} AS v0, size AS v1", "size AS k0"
        )
        return self.one(
            f"SELECT {listed} FROM ({inner}) AS t{after}",
            f"WITH q AS ({inner}) SELECT {listed} FROM q{after}",
            f"WITH q AS ({inner}), r AS (SELECT * FROM q{after}) SELECT {listed} FROM r",
        )

    def computed(self) -> str:
        """A subquery that renames and computes, and aggregates of what it gives."""
        where = f" WHERE {self.write('condition', 1)}" if self.chance(0.3) else ""
        number, text = self.write("number", 1), self.write("text", 1)
        outside = self.one("number > 1", "word <> 'n' OR word IS NULL", "number + 1 IN (2, 3)")
        return self.one(
            f"SELECT word AS k0, SUM(number) AS v0, COUNT(*) AS v1 FROM (SELECT {number} AS number, "
            f"{text} AS word FROM people{where}) AS t WHERE {outside} GROUP BY word",
            f"SELECT number AS k0, COUNT(*) AS v0, AVG(age) AS v1 FROM (SELECT *, {number} AS number, "
            f"{text} AS word FROM people{where}) AS t GROUP BY number",
            f"WITH t AS (SELECT {number} AS number, {text} AS word FROM people{where}) "
            f"SELECT COUNT_IF({outside}) AS v0, COUNT(word) AS v1 FROM t",
        )

    def quantiles(self) -> str:
        """Lists of quantiles, which are several columns here and one list in DuckDB; those of dates."""
        [column] = self.columns(1)
        fractions = ", ".join(sorted(self.random.sample(LEAVES["fraction"], self.one(2, 3))))
        item = self.one(
            f"{self.write('quantile')}({self.write('ordered')}, [{fractions}])",
            f"{self.write('percentile')}([{fractions}]) WITHIN GROUP (ORDER BY age)",
            f"QUANTILE_DISC({self.one('d', 'gone')}, {self.write('fraction')})",
        )
        if self.chance(0.4):
            return f"SELECT {item} AS v0 FROM people WHERE {self.write('condition', 1)}"
        return f"SELECT {column} AS k0, {item} AS v0 FROM people GROUP BY k0"

    def distinct(self) -> str:
        """The public values of columns, which cost nothing."""
        keys = [*self.columns(self.one(1, 2)), *([self.key()] if self.chance(0.3) else [])]
        listed = ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))
        return f"SELECT DISTINCT {listed} FROM people"

    def lines(self) -> str:
        """Correlations and lines by groups."""
        names = [
            f"{self.write('pairwise')}({self.write('pairable')}, {self.write('pairable')})"
            for _ in range(2)
        ]
        listed = ", ".join(f"{name} AS v{at}" for at, name in enumerate(names))
        where = f" WHERE {self.write('condition', 1)}" if self.chance(0.4) else ""
        if self.chance(0.4):
            return f"SELECT {listed} FROM people{where}"
        return f"SELECT {self.columns(1)[0]} AS k0, {listed} FROM people{where} GROUP BY k0"
