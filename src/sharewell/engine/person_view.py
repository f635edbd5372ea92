"""Person views: SELECTs of which every row depends on the rows of one person.

A view is compiled, not passed on: what is not understood here cannot reach an engine. The rule is a
whitelist (`docs/guarantees/person-views.md` has the proof). Rows are kept apart by the unit: every
private table has its unit column, is joined to the others by an equality on it, and every GROUP BY and
window is by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sharewell.engine.base import SourceColumn
from sharewell.engine.cells import is_null, kind_of
from sharewell.engine.view_expressions import Expressions
from sharewell.engine.view_text import ViewText, declared_name
from sharewell.engine.view_values import Relation, Scope, Value, expression_text, is_id

#: The clauses of a SELECT.
CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "with_", "distinct")
UNIT_HINT = "Add it: SELECT {unit}, ..."


#: Clauses that are refused: their words, the reason and the way out.
REFUSED_CLAUSES: dict[str, tuple[str, str, str]] = {
    "limit": ("LIMIT", "which rows it keeps depends on all people", "Remove it."),
    "offset": ("OFFSET", "which rows it skips depends on all people", "Remove it."),
    "order": ("ORDER BY", "the rows of a view have no order", "Remove it."),
    "qualify": ("QUALIFY", "not all engines have it", "Use a subquery in FROM, and WHERE."),
    "sample": ("Sampling", "it has another value each time", "Remove it."),
    "laterals": ("LATERAL", "it is a subquery that sees other tables", "Use a join on the unit."),
    "windows": ("WINDOW", "windows are written where they are used", "Write it after OVER."),
}


@dataclass(frozen=True)
class BaseTable:
    """An open table of a view: its columns by the names that the view uses, and the unit, if private."""

    relation: exp.Expr
    columns: Mapping[str, SourceColumn]
    unit: str | None = None


def compile_view(
    view: ViewText, tables: Mapping[str, BaseTable], privacy_unit: str, dialect: str
) -> Relation:
    """Compile a view for an engine's dialect, or refuse it with the place and the reason."""
    compiled = Compiler(view, tables, dialect).select(view.tree, {})
    names = list(compiled.columns)
    matching = [name for name in names if name.casefold() == privacy_unit.casefold()]
    if not any(compiled.columns[name].is_unit for name in matching):
        raise view.refuse(
            view.tree.expressions[0],
            f"The view does not output the privacy unit {privacy_unit!r} as a bare column.",
            f"Select it: {compiled.units[0]} AS {privacy_unit}.",
        )
    return compiled


class Compiler(Expressions):
    """Compiles the SELECTs of a view to trees with names of their own: t0, t1, ... and c0, c1, ..."""

    def __init__(self, view: ViewText, tables: Mapping[str, BaseTable], dialect: str) -> None:
        super().__init__(view, dialect)
        self.tables = tables
        self._aliases = 0

    def select(self, select: exp.Expr, ctes: Mapping[str, Relation]) -> Relation:
        """Compile a SELECT whose rows each depend on one person."""
        if not isinstance(select, exp.Select):
            raise self.refuse(
                select,
                "Set operations are not supported in a view.",
                "Write one SELECT; join its parts on the unit.",
            )
        self._check_clauses(select)
        ctes = self._ctes(select, ctes)
        scope, tree = self._from(select, ctes)
        if (where := select.args.get("where")) is not None:
            tree = tree.where(self._condition(where.this, scope), copy=False)
        scope.aliases = {
            item.alias.casefold(): item.this
            for item in select.expressions
            if isinstance(item, exp.Alias)
        }
        grouped = select.args.get("group")
        if grouped is not None:
            scope.keys = self._keys(grouped, scope)
            tree = tree.group_by(*(key.sql.copy() for key in scope.keys.values()), copy=False)
        elif select.args.get("having") is not None:
            raise self.refuse(select.args["having"], "HAVING requires GROUP BY.", "Use WHERE.")
        scope.allowed = "window" if grouped is None else "aggregate"
        if (having := select.args.get("having")) is not None:
            tree = tree.having(self._condition(having.this, scope), copy=False)
        outputs = self._outputs(select, scope)
        named = [value.sql.as_(f"c{i}", copy=True) for i, value in enumerate(outputs.values())]
        tree = tree.select(*named, copy=False)
        if select.args.get("distinct") is not None:
            tree = tree.distinct(copy=False)
        return self._aliased(tree, outputs)

    def _check_clauses(self, select: exp.Select) -> None:
        for key, value in select.args.items():
            if not value or key in CLAUSES:
                continue
            node = value[0] if isinstance(value, list) else value
            node = node if isinstance(node, exp.Expr) else select
            word, reason, hint = REFUSED_CLAUSES.get(
                key,
                (key.strip("_").upper(), "it is not on the list of what a view may use", "Remove it."),
            )
            raise self.refuse(node, f"{word} is not supported in a view: {reason}.", hint)
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise self.refuse(
                distinct,
                "DISTINCT ON is not supported in a view: which row it keeps depends on an order.",
                "Use ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY ...) in a subquery, and WHERE.",
            )
        if select.args.get("from_") is None:
            raise self.refuse(select, "A SELECT of a view needs FROM.", "Select from a private table.")

    def _ctes(self, select: exp.Select, ctes: Mapping[str, Relation]) -> Mapping[str, Relation]:
        with_ = select.args.get("with_")
        if with_ is None:
            return ctes
        if with_.args.get("recursive"):
            raise self.refuse(with_, "Recursive CTEs are not supported in a view.", "Remove RECURSIVE.")
        known = dict(ctes)
        for cte in with_.expressions:
            self._only(cte, "this", "alias")
            self._only_alias(cte)
            known[cte.alias.casefold()] = self.select(cte.this, known)
        return known

    def _only_alias(self, node: exp.Expr) -> None:
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
            raise self.refuse(
                node, "A list of column names is not supported in a view.", "Use AS inside."
            )

    def _from(self, select: exp.Select, ctes: Mapping[str, Relation]) -> tuple[Scope, exp.Select]:
        first = select.args["from_"].this
        name, relation = self._source(first, ctes)
        if not relation.units:
            raise self.refuse(
                first,
                f"FROM begins with {name!r}, which has no unit.",
                "Begin with a private table, and join the public ones to it.",
            )
        scope = Scope({name: relation})
        tree = exp.select().from_(relation.tree, copy=False)
        for join in select.args.get("joins") or ():
            self._join(join, scope, tree, ctes)
        return scope, tree

    def _source(self, node: exp.Expr, ctes: Mapping[str, Relation]) -> tuple[str, Relation]:
        """Return the alias of a source and what it is."""
        alias = node.alias_or_name.casefold()
        self._only_alias(node)
        if isinstance(node, exp.Subquery):
            self._only(node, "this", "alias")
            return alias or f"#{self._aliases}", self.select(node.this, ctes)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.refuse(
                node,
                "A view selects from tables, CTEs and subqueries, not from functions or values.",
                "Declare the table in the configuration: [tables.NAME].",
            )
        self._only(node, "this", "alias")
        if (cte := ctes.get(node.name.casefold())) is not None:
            # A CTE that is used twice is computed twice: each time with an alias of its own.
            inner = cte.tree.this if isinstance(cte.tree, exp.Subquery) else cte.tree
            return alias, self._aliased(inner.copy(), cte.columns)
        name = declared_name(node, self.tables, set())
        if name is None:
            raise self.view.unknown_table(node, self.tables)
        return alias, self._scan(self.tables[name])

    def _scan(self, table: BaseTable) -> Relation:
        """Select the used columns of a base table, without rows that have no unit."""
        tree, columns = exp.select().from_(table.relation.copy()), dict[str, Value]()
        for name, column in table.columns.items():
            # Of ids that are decimals, some may be too large for a double.
            kind = None if is_id(column.type) else kind_of(column)
            columns[name] = Value(column.value, kind, column.type, is_unit=name == table.unit)
            tree = tree.select(column.value.as_(f"c{len(columns) - 1}"), copy=False)
        if not columns:
            tree = tree.select(exp.Literal.number(1).as_("c0"), copy=False)
        if table.unit is not None:
            tree = tree.where(is_null(table.columns[table.unit].value.copy()).not_(), copy=False)
        return self._aliased(tree, columns)

    def _aliased(self, tree: exp.Expr, columns: Mapping[str, Value]) -> Relation:
        """Give a SELECT a name of its own; its columns are c0, c1, ..."""
        alias = f"t{self._aliases}"
        self._aliases += 1
        own = {
            name: replace(value, sql=exp.column(f"c{i}", table=alias), largest=None)
            for i, (name, value) in enumerate(columns.items())
        }
        return Relation(
            exp.Subquery(this=tree, alias=exp.TableAlias(this=exp.to_identifier(alias))), own
        )

    def _join(
        self, join: exp.Join, scope: Scope, tree: exp.Select, ctes: Mapping[str, Relation]
    ) -> None:
        side, kind = join.side.upper(), join.kind.upper()
        kinds = {"": ("", "INNER"), "LEFT": ("", "OUTER")}
        if kind not in kinds.get(side, ()) or join.method:
            words = " ".join(filter(None, (join.method, side, kind)))
            raise self.refuse(
                join,
                f"{words} JOIN is not supported in a view.",
                "Use JOIN or LEFT JOIN, with ON or USING.",
            )
        self._only(join, "this", "side", "kind", "on", "using")
        if join.args.get("on") is None and not join.args.get("using"):
            raise self.refuse(
                join,
                "A join of a view needs ON or USING.",
                "Join private tables on the unit, and public ones on a key.",
            )
        name, relation = self._source(join.this, ctes)
        if name in scope.sources:
            raise self.refuse(join.this, f"Two sources are called {name!r}.", "Give each an alias.")
        left = list(scope.sources.values())
        scope.sources[name] = relation
        conditions = self._using(join, scope, relation)
        on = join.args.get("on")
        conditions += [self._condition(each, scope) for each in _conjuncts(on)]
        if relation.units and not self._joins_units(join, scope, relation):
            mine, first = relation.units[0], left[0].units[0]
            raise self.refuse(
                join,
                f"{name!r} is private, and is not joined on the unit: one person could change the rows "
                "of others.",
                f"Add {next(iter(scope.sources))}.{first} = {name}.{mine} to ON, joined with AND.",
            )
        if side == "LEFT":
            # Its unit may be NULL, so it is no unit of the rows.
            kept = {key: replace(value, is_unit=False) for key, value in relation.columns.items()}
            scope.sources[name] = Relation(relation.tree, kept)
        node = exp.Join(this=relation.tree, on=exp.and_(*conditions), side="LEFT" if side else None)
        tree.append("joins", node)

    def _using(self, join: exp.Join, scope: Scope, relation: Relation) -> list[exp.Condition]:
        """Return the equalities of USING, each with the column of the first source."""
        found: list[exp.Condition] = []
        first = next(iter(scope.sources.values()))
        for identifier in join.args.get("using") or ():
            pair = [self._named(each, identifier) for each in (first, relation)]
            found.append(self._compare(exp.EQ, pair[0], pair[1], join))
            scope.merged.add(identifier.name.casefold())
        return found

    def _joins_units(self, join: exp.Join, scope: Scope, relation: Relation) -> bool:
        """Return whether units that are never NULL are equal, at the top level."""
        first = next(iter(scope.sources.values()))
        pairs: list[tuple[Value, Value]] = [
            (self._named(first, each), self._named(relation, each))
            for each in join.args.get("using") or ()
        ]
        for each in _conjuncts(join.args.get("on")):
            if isinstance(each, exp.EQ) and all(
                isinstance(side, exp.Column) for side in (each.this, each.expression)
            ):
                one, other = (self._column(side, scope) for side in (each.this, each.expression))
                pairs += [(one, other), (other, one)]
        own = {id(value) for value in relation.columns.values()}
        for left, right in pairs:
            if left.is_unit and right.is_unit and id(right) in own and id(left) not in own:
                if left.type != right.type:
                    raise self.refuse(
                        join,
                        f"The units have different types, {left.type.sql()} and {right.type.sql()}.",
                        "Give both columns the same type in the database.",
                    )
                return True
        return False

    def _keys(self, group: exp.Group, scope: Scope) -> dict[str, Value]:
        """Compile GROUP BY, which must contain a unit."""
        for key, value in group.args.items():
            if value and key != "expressions":
                node = value[0] if isinstance(value, list) else value
                raise self.refuse(
                    node if isinstance(node, exp.Expr) else group,
                    f"GROUP BY {key.replace('_', ' ').upper()} is not supported in a view: a person "
                    "would be in several groups.",
                    "List the columns.",
                )
        keys: dict[str, Value] = {}
        for each in group.expressions:
            written = self._unaliased(each, scope)
            if isinstance(written, exp.Literal):
                raise self.refuse(group, "GROUP BY a position is not supported.", "Write the column.")
            keys[expression_text(written)] = self._value(written, scope)
        if not any(value.is_unit for value in keys.values()):
            raise self.refuse(
                group,
                "GROUP BY does not contain the unit: a group would have rows of several people.",
                f"Add {self._unit_name(scope)}.",
            )
        return keys

    def _outputs(self, select: exp.Select, scope: Scope) -> dict[str, Value]:
        outputs: dict[str, Value] = {}
        for item in select.expressions:
            if item.is_star:
                raise self.refuse(item, "* is not supported in a view.", "List the columns.")
            name = item.alias or (item.name if isinstance(item, exp.Column) else "")
            if not name:
                raise self.refuse(item, "A computed column of a view needs a name.", "Add AS name.")
            if any(name.casefold() == other.casefold() for other in outputs):
                raise self.refuse(item, f"Two columns are called {name!r}.", "Rename one with AS.")
            value = self._value(item.this if isinstance(item, exp.Alias) else item, scope)
            if value.kind is None and not value.is_unit:
                raise self.refuse(item, "A column of a view cannot be NULL alone.", "Remove it.")
            outputs[name] = value
        if not any(value.is_unit for value in outputs.values()):
            unit = self._unit_name(scope)
            raise self.refuse(
                select.expressions[0] if select.expressions else select,
                "The unit is not selected as a bare column: its rows could not be told apart by person.",
                UNIT_HINT.format(unit=unit),
            )
        return outputs


def _conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """Return the conditions that AND joins at the top level."""
    if node is None:
        return []
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    return [node]
