"""A subset of SQL, planned into a row and questions: nothing is computed here that a program cannot say."""

from __future__ import annotations

import datetime
import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Union

from . import _value
from ._ask import Ask, Groups, Statistic
from ._columns import Column, Type, i
from ._keys import Key
from ._numbers import Number, Rho, days, number_text
from ._study import Match, Study
from ._value import TraceError, Value, mistake

if TYPE_CHECKING:
    from sqlglot import exp

Cell = Union[Value, Number, str, datetime.date]
_SUBSET = "SELECT agg(expr), .. FROM a JOIN b USING (key) [WHERE condition] [GROUP BY public values]"
_EDGES = (
    "ranges of a number have no word of SQL here: tacit.Ask(..).histogram(name, edges), or "
    ".by(tacit.edges(..))"
)
_STATISTICS: dict[str, Statistic] = {
    "Avg": "mean",
    "Variance": "variance",
    "Stddev": "standard-deviation",
    "StddevSamp": "standard-deviation",
}
_ASSOCIATIONS = {
    "CovarSamp": "covariance",
    "Corr": "correlation",
    "RegrSlope": "regression",
    "RegrIntercept": "regression",
}
_CLAUSES = {
    "having": "a group that its noised number leaves out would tell more: look at the report",
    "order": "a report is sorted by who reads it",
    "limit": "all groups are told, or it would show which are the largest",
    "offset": "all groups are told",
    "distinct": "rows are persons: each is there once",
    "with_": "one SELECT is one program",
    "windows": "no row is told, and windows are of rows",
    "qualify": "no row is told, and windows are of rows",
}
_FUNCTIONS = {
    "VariancePop": "it is of these rows alone, and a question is of the population: write VAR_SAMP",
    "StddevPop": "it is of these rows alone, and a question is of the population: write STDDEV_SAMP",
    "CovarPop": "it is of these rows alone, and a question is of the population: write COVAR_SAMP",
    "Median": "a median needs public edges, which SQL has no word for: tacit.Ask(..).median(name, edges)",
    "WithinGroup": "quantiles need public edges, which SQL has no word for: tacit.Ask(..).quantile(..)",
    "Max": "the largest value is that of one row: no noise hides it",
    "Min": "the smallest value is that of one row: no noise hides it",
    "Filter": "write SUM(CASE WHEN condition THEN x ELSE 0 END), or WHERE",
    "Window": "no row is told, and windows are of rows",
    "Distinct": "distinct values are counted by no question",
    "Div": "programs have whole numbers: divide what the report has",
    "Mod": "programs have no remainder",
    "Subquery": "one SELECT is one program",
    "Star": "no row is told: only aggregates are",
}
_TWO = ("this", "expression")
_READ: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("From", "Where", "Paren", "Boolean", "Not", "Neg", "Abs", "DataType"), ("this",)),
    **dict.fromkeys(("Sum", "Avg", "Variance", "Stddev", "StddevSamp"), ("this",)),
    **dict.fromkeys(("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "Add", "Sub", "Mul", "And", "Or"), _TWO),
    **dict.fromkeys(("CovarSamp", "Corr", "RegrSlope", "RegrIntercept"), _TWO),
    "Select": ("expressions", "from_", "joins", "where", "group"),
    "Table": ("this",),
    "Join": ("this", "kind", "using"),
    "Group": ("expressions",),
    "Alias": ("this", "alias"),
    "Identifier": ("this", "quoted"),
    "Column": ("this", "table"),
    "Literal": ("this", "is_string"),
    "Is": (*_TWO, "negate"),
    "Null": (),
    "Star": (),
    "Cast": ("this", "to"),
    "Between": ("this", "low", "high"),
    "In": ("this", "expressions", "query"),
    "Coalesce": ("this", "expressions"),
    # What these skip and how wide a count is: NULL is said of below, and no count is that wide.
    "Least": ("this", "expressions", "ignore_nulls"),
    "Greatest": ("this", "expressions", "ignore_nulls"),
    "Count": ("this", "big_int"),
    "Case": ("this", "ifs", "default"),
    "If": ("this", "true"),
}
"""What is read of each kind of node. A kind that is not here is refused where it stands."""
_ORDERED = ("LT", "LTE", "GT", "GTE")
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}
_ADDED: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
}


def sql(
    query: str,
    *,
    columns: Mapping[str, Column],
    viewer: str,
    rho: Rho,
    parties: Mapping[str, str | Key],
    match: Match | None = None,
    name: str = "sql",
    title: str | None = None,
    compute: Mapping[str, Any] | None = None,
) -> Study:
    """A study of the questions that a query asks; sqlglot must be installed (``tacit[sql]``).

    The subset is ``SELECT agg(expr), .. FROM a JOIN b USING (key) [WHERE condition] [GROUP BY values]``, in
    the words of PostgreSQL. Tables are parties, ``columns`` says what each column holds and whose it is, the
    key is the identifier; ``match`` says how it is compared: exactly, by ``pid``, unless told. Aggregates are
    COUNT, SUM, AVG, VAR_SAMP, STDDEV_SAMP, COVAR_SAMP, CORR, REGR_SLOPE and REGR_INTERCEPT, of values that
    the query bounds: ``AVG(LEAST(GREATEST(cost, 0), 500))``. Groups are labels, bits, conditions, and values
    that WHERE names: ``WHERE rooms IN (1, 2, 3) GROUP BY rooms``. ``viewer`` is told all of it, for ``rho``.
    NULL is a missing value, and so is what is computed of it, by LEAST and GREATEST, too, as in the standard.
    It is no group: ``WHERE arm IS NOT NULL`` says so where ``GROUP BY arm`` may meet it.

    Raises TraceError, which names what is outside of the subset and why.
    """
    tree = _parsed(query)
    keys = _tables(tree, parties)
    _whole(tree)
    if len(keys) > 1:
        text = f"USING ({', '.join(keys)}) is outside of the subset: SQL joins rows where all are equal"
        raise mistake(f"{text}, and a match by several identifiers those where one is: join by one key")
    if match is None:
        match = Match("pid", identifiers=keys)
    elif [one["name"] for one in match._said["identifiers"]] != keys:
        raise mistake(f"USING names {', '.join(keys)}, and the match other identifiers")
    plan = _Plan(tree, columns, parties)
    used = {one.name for one in tree.walk() if type(one).__name__ == "Column"}
    told = {one: column for one, column in columns.items() if one in used} or dict([*columns.items()][:1])

    def row(**given: Value) -> Mapping[str, Value]:
        return plan.row(given)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    row.__annotations__ = dict(told)
    vars(row)["__signature__"] = inspect.Signature([inspect.Parameter(one, kind) for one in told])
    ask = plan.ask(Ask(viewer, rho=rho))
    try:
        return Study.program(name, row, ask, parties=parties, match=match, title=title, compute=compute or {})
    except TraceError as error:
        text = str(error)
        if "has no bound" not in text:
            raise
        what = text.partition(" has no bound")[0].rpartition(" ")[2]
        bounded = f"LEAST(GREATEST({what}, 0), 100)"
        raise mistake(
            f"{what} has no bound, and noise has to hide its largest row: write {bounded}"
        ) from None


def _parsed(query: str) -> exp.Select:
    try:
        import sqlglot
        from sqlglot import errors, exp
    except ImportError:
        raise mistake("tacit.sql needs sqlglot: pip install 'sqlglot>=30,<31'") from None
    try:
        trees = sqlglot.parse(query, dialect="postgres")
    except errors.SqlglotError as error:
        raise mistake(f"this is no SQL: {str(error).splitlines()[0]}") from None
    (tree, *more) = trees or [None]
    if more or not isinstance(tree, exp.Select):
        raise mistake(f"a query is one SELECT: {_SUBSET}")
    for clause, of in tree.args.items():
        if of and clause not in _READ["Select"]:
            reason = _CLAUSES.get(clause, "no question says it")
            raise mistake(f"{clause.strip('_').upper()} is outside of the subset: {reason}. It is {_SUBSET}")
    return tree


def _outside(of: exp.Expr, why: str | None = None) -> NoReturn:
    kind = type(of).__name__
    reason = why or _FUNCTIONS.get(kind, "no question of a program says it")
    raise mistake(f"{of.sql(dialect='postgres')} is outside of the subset: {reason}")


def _whole(tree: exp.Select) -> None:
    """Refuses what was parsed and nothing here reads, or a query would be answered as another one."""
    for one in tree.walk():
        read = _READ.get(type(one).__name__)
        left = [] if read is None else [arg for arg, of in one.args.items() if of and arg not in read]
        if left:
            _outside(one, f"no question says {left[0].strip('_').replace('_', ' ').upper()} of it")


def _tables(tree: exp.Select, parties: Mapping[str, object]) -> list[str]:
    """The columns of USING; the tables are the parties."""
    start, joins = tree.args.get("from_"), tree.args.get("joins") or []
    tables = [start.this] if start is not None else []
    keys: list[list[str]] = []
    for join in joins:
        if join.args.get("side") or join.args.get("kind") not in (None, "", "INNER"):
            _outside(
                join, "rows are those that all tables have; what one lacks, nobody learns: JOIN b USING (key)"
            )
        if not join.args.get("using"):
            _outside(join, "rows are matched by identifiers of one name: JOIN b USING (key)")
        tables.append(join.this)
        keys.append([key.name for key in join.args["using"]])
    names = [table.name for table in tables]
    for table in tables:
        if type(table).__name__ != "Table" or table.args.get("alias") or table.args.get("db"):
            _outside(table, "a table is a party, by its name")
    if not keys:
        raise mistake(f"one table is one party, and two or more are joined by the same key: {_SUBSET}")
    if any(key != keys[0] for key in keys):
        raise mistake(f"the tables are joined by the same key: {_SUBSET}")
    if sorted(names) != sorted(parties):
        text = f"FROM names {', '.join(names)}, and the parties are {', '.join(sorted(parties))}"
        raise mistake(f"{text}: each party is a table")
    return keys[0]


def _by_number(key: exp.Expr, tree: exp.Select) -> exp.Expr:
    """What ``GROUP BY 1`` means: the first expression of SELECT."""
    if type(key).__name__ != "Literal":
        return key
    wanted = {str(number): one for number, one in enumerate(tree.expressions, 1)}
    if key.name not in wanted:
        _outside(key, f"SELECT has {len(wanted)} expressions, and a number names one of them, from 1")
    one: exp.Expr = wanted[key.name]
    under: exp.Expr = one.this if type(one).__name__ == "Alias" else one
    return under


class _Plan:
    """What a query asks of each row, and about it."""

    def __init__(
        self, tree: exp.Select, columns: Mapping[str, Column], parties: Mapping[str, object]
    ) -> None:
        self._columns = columns
        self._parties = parties
        self._where = tree.args["where"].this if tree.args.get("where") else None
        self._taken = {*columns, *(one.alias for one in tree.expressions)}
        """Names that nobody gets who does not ask for them."""
        self._chosen = self._free("chosen")
        self._lists = dict(_lists(self._where))
        self._there = _needed_by(self._where)
        """Columns that no chosen row lacks."""
        self._wanted: dict[str, exp.Expr] = {}
        """Values of a row, by the name that they get."""
        self._names: dict[str, str] = {}
        self._known: dict[str, str] = {}
        """Bits whether a column is there, and the column."""
        self._groups: list[str | Groups] = []
        self._asked: dict[tuple[str, ...], list[Statistic]] = {}
        """Questions, and the statistics that share one."""
        aliases = {one.this.sql(): one.alias for one in tree.expressions if type(one).__name__ == "Alias"}
        group = tree.args.get("group")
        by_alias = {
            alias: one.this for one in tree.expressions if (alias := one.alias) and alias not in columns
        }
        keys = [
            _by_number(by_alias.get(key.name, key), tree)
            for key in (group.expressions if group is not None else [])
        ]
        for key in keys:
            self._group(key, aliases.get(key.sql()))
        told = {key.sql() for key in keys}
        for one in tree.expressions:
            of, alias = (one.this, one.alias) if type(one).__name__ == "Alias" else (one, None)
            if of.sql() not in told:
                self._aggregate(of, alias)
        if not self._asked:
            raise mistake(f"nothing is asked for: write an aggregate such as COUNT(*). A query is {_SUBSET}")

    def ask(self, ask: Ask) -> Ask:
        """The questions."""
        groups: list[str | Groups] = (
            [Groups(self._chosen, "values", ["1"])] if self._where is not None else []
        )
        ask = ask.by(*groups, *self._groups) if groups or self._groups else ask
        for (kind, *names), words in self._asked.items():
            if kind == "count":
                ask = ask.count()
            elif kind == "sum":
                ask = ask.sum(names[0])
            elif kind == "statistics":
                ask = ask.statistics(names[0], *words)
            elif kind == "regression":
                ask = ask.regression(names[0], on=names[1:])
            elif kind == "covariance":
                ask = ask.covariance(names[0], names[1])
            else:
                ask = ask.correlation(names[0], names[1])
        return ask

    def row(self, given: Mapping[str, Value]) -> Mapping[str, Value]:
        """The values that questions name."""
        cells = _Cells(given, self._columns, self._parties)
        made: dict[str, Value] = {}
        if self._where is not None:
            made[self._chosen] = _apart(cells.condition(self._where))
        for name, of in self._wanted.items():
            value = cells.cell(of)
            if not isinstance(value, Value):
                _outside(of, "it is the same of every row")
            made[name] = _apart(value)
        for name, column in self._known.items():
            made[name] = given[column].known()
        return made

    def _free(self, name: str) -> str:
        """A name that no column has, and that the query gives nothing."""
        return name if name not in self._taken else self._free(f"{name}_")

    def _name(self, of: exp.Expr, alias: str | None) -> str:
        """What a value is called: a column by its name, what is computed by its alias or a number."""
        if type(of).__name__ == "Column":
            return _column(of, self._columns, self._parties)
        key = of.sql()
        if key not in self._names:
            names = {*self._columns, *self._wanted}
            taken = names | self._taken
            number = next(number for number in range(1, 10**6) if f"expr{number}" not in taken)
            self._names[key] = alias if alias and alias not in names else f"expr{number}"
            self._wanted[self._names[key]] = of
        return self._names[key]

    def _group(self, key: exp.Expr, alias: str | None) -> None:
        kind = type(key).__name__
        name = self._name(key, alias)
        missing = [one for one in _may_miss(key, self._columns, self._parties) if one not in self._there]
        if missing and kind not in ("And", "Or"):
            text = "rows where it is NULL are a group of their own in SQL, and in no group of a question"
            _outside(key, f"{text}: write WHERE {' AND '.join(f'{one} IS NOT NULL' for one in missing)}")
        if kind != "Column":
            if kind not in (*_COMPARED, "And", "Or", "Not", "In", "Between", "Is"):
                text = "groups are public: labels, bits, conditions, or values that WHERE names by IN"
                _outside(key, f"{text}; {_EDGES}")
            self._groups.append(name)
            return
        column = self._columns[name]
        if column.has_labels or column.type.name == "bit":
            self._groups.append(name)
        elif name in self._lists:
            self._groups.append(Groups(name, "values", self._lists[name]))
        else:
            text = f"the values of {name} are not public"
            _outside(key, f"{text}: name them, as in WHERE {name} IN (1, 2, 3) GROUP BY {name}; {_EDGES}")

    def _aggregate(self, of: exp.Expr, alias: str | None) -> None:
        kind = type(of).__name__
        if kind == "Count":
            self._count(of)
        elif kind == "Sum":
            self._asked[("sum", self._name(of.this, alias))] = []
        elif kind in _STATISTICS:
            words = self._asked.setdefault(("statistics", self._name(of.this, alias)), [])
            words += [_STATISTICS[kind]] if _STATISTICS[kind] not in words else []
        elif kind in _ASSOCIATIONS:
            names = (self._name(of.this, None), self._name(of.expression, None))
            self._asked[(_ASSOCIATIONS[kind], *names)] = []
        elif kind in _FUNCTIONS:
            _outside(of)
        else:
            _outside(of, "it is neither an aggregate nor a key of GROUP BY, and no row is told")

    def _count(self, of: exp.Expr) -> None:
        kind = type(of.this).__name__
        if kind == "Distinct":
            _outside(of, _FUNCTIONS["Distinct"])
        if kind == "Column":
            name = _column(of.this, self._columns, self._parties)
            if self._columns[name].may_be_missing:
                known = self._free(f"known-{name}")
                self._known[known] = name
                self._asked[("sum", known)] = []
                return
        elif kind not in ("Star", "Literal"):
            _outside(of, "COUNT is of rows or of a column")
        self._asked[("count",)] = []


def _lists(where: exp.Expr | None) -> list[tuple[str, list[str]]]:
    """Columns whose values a condition names: `rooms IN (1, 2, 3)`, alone or joined by AND."""
    kind = type(where).__name__
    if where is None:
        return []
    if kind == "And":
        return [*_lists(where.this), *_lists(where.expression)]
    if kind == "Paren":
        return _lists(where.this)
    if kind == "In" and type(where.this).__name__ == "Column":
        numbers = [_literal(one) for one in where.expressions]
        texts = [number_text(one) for one in numbers if one is not None]
        if texts and len(texts) == len(where.expressions) and None not in texts:
            return [(where.this.name, [text for text in texts if text is not None])]
    return []


def _needed_by(where: exp.Expr | None) -> set[str]:
    """Columns that are there in each row that a condition chooses."""
    kind = type(where).__name__
    if where is None:
        return set()
    if kind == "Paren":
        return _needed_by(where.this)
    if kind == "And":
        return _needed_by(where.this) | _needed_by(where.expression)
    if kind == "Is" and where.args.get("negate"):
        return _strict(where.this)
    if kind == "Not" and type(_bare(where.this)).__name__ == "Is":
        of = _bare(where.this)
        return set() if of.args.get("negate") else _strict(of.this)
    return _strict(where)


def _bare(of: exp.Expr) -> exp.Expr:
    return _bare(of.this) if type(of).__name__ == "Paren" else of


def _strict(of: exp.Expr) -> set[str]:
    """Columns without which a value is NULL."""
    if type(of).__name__ == "Column":
        return {of.name}
    if type(of).__name__ in ("Is", "Coalesce", "Case", "And", "Or"):
        return set()
    return {name for one in of.iter_expressions() for name in _strict(one)}


def _may_miss(of: exp.Expr, columns: Mapping[str, Column], parties: Mapping[str, object]) -> list[str]:
    """Columns without which a value may be missing; none where it never is."""
    kind = type(of).__name__
    if kind == "Is":
        return []
    if kind == "Column":
        name = _column(of, columns, parties)
        return [name] if columns[name].may_be_missing else []
    parts = [*of.iter_expressions()]
    if kind == "Case":
        told = (of.args.get("default"), *(branch.args["true"] for branch in of.args["ifs"]))
        parts = [one for one in told if one is not None]
    each = [_may_miss(one, columns, parties) for one in parts]
    if kind == "Coalesce" and not all(each):
        return []
    return [*dict.fromkeys(name for names in each for name in names)]


def _literal(of: exp.Expr) -> int | Decimal | str | None:
    """A constant as it is written; none of what is none."""
    if type(of).__name__ == "Neg":
        value = _literal(of.this)
        if isinstance(value, Decimal):
            # `-value` rounds to the digits of its context.
            return value.copy_negate()
        return -value if isinstance(value, int) else None
    if type(of).__name__ != "Literal":
        return None
    if of.is_string:
        return of.name
    return int(of.name) if of.name.isdigit() else Decimal(of.name)


def _column(of: exp.Expr, columns: Mapping[str, Column], parties: Mapping[str, object]) -> str:
    """The name of a column, which is there and of the table that is said to have it."""
    name, table = of.name, of.args.get("table")
    if name not in columns:
        raise mistake(f"there is no column {name}: columns= names {', '.join(columns)}")
    if table is not None and table.name != columns[name].owner:
        raise mistake(f"{of.sql()}: {name} is a column of {columns[name].owner}")
    return str(name)


class _Cells:
    """Expressions as values of a row. Types widen, as SQL's numbers do not wrap."""

    def __init__(
        self, given: Mapping[str, Value], columns: Mapping[str, Column], parties: Mapping[str, object]
    ) -> None:
        self._given = given
        self._columns = columns
        self._parties = parties

    def bit(self, of: exp.Expr) -> Value:
        """A condition."""
        value = self.cell(of)
        if not isinstance(value, Value) or value._type() != "bit":
            _outside(of, "it is no condition")
        return value

    def condition(self, of: exp.Expr) -> Value:
        """A condition that chooses rows: one that is not known chooses none, whichever side of AND it is."""
        if type(of).__name__ == "Paren":
            return self.condition(of.this)
        if type(of).__name__ == "And":
            return self.condition(of.this) & self.condition(of.expression)
        return self.bit(of)

    def cell(self, of: exp.Expr) -> Cell:
        """A value or a constant."""
        kind = type(of).__name__
        if kind == "Column":
            return self._given[_column(of, self._columns, self._parties)]
        if kind == "Literal":
            value = _literal(of)
            if isinstance(value, (int, Decimal)):
                return _exact(Fraction(value))
            return of.name
        if kind == "Boolean":
            return bool(of.this)
        if kind == "Paren":
            return self.cell(of.this)
        if kind in _COMPARED:
            return self._compared(of, _COMPARED[kind])
        if kind in _ADDED:
            return self._added(of, kind)
        if kind in ("And", "Or", "Not"):
            return self._joined(of, kind)
        if kind not in _SPECIAL:
            _outside(of)
        return _SPECIAL[kind](self, of)

    def _neg(self, of: exp.Expr) -> Cell:
        value = self.cell(of.this)
        if isinstance(value, Value):
            return -_wide(value, _width(value) + 1)
        return -value if isinstance(value, (int, Fraction)) else _outside(of)

    def _abs(self, of: exp.Expr) -> Cell:
        value = self.cell(of.this)
        return abs(_wide(value, _width(value) + 1)) if isinstance(value, Value) else _outside(of)

    def _cast(self, of: exp.Expr) -> Cell:
        to, value = of.args["to"].sql(), self.cell(of.this)
        if to == "DATE" and isinstance(value, str):
            try:
                return datetime.date.fromisoformat(value)
            except ValueError:
                _outside(of, "it is no day such as DATE '2026-03-01'")
        if not isinstance(value, Value) or value._has_labels() or value._is_day() or value._parts() != 1:
            _outside(of, "values keep their types, which columns= says")
        if to == "BOOLEAN":
            return value if value._type() == "bit" else value != 0
        if to not in ("INT", "BIGINT", "SMALLINT"):
            _outside(of, "values keep their types, which columns= says")
        return value

    def _between(self, of: exp.Expr) -> Cell:
        value = self.cell(of.this)
        low, high = self.cell(of.args["low"]), self.cell(of.args["high"])
        if self._missing(of.args["low"]) or self._missing(of.args["high"]):
            _outside(of, "where one end is NULL, BETWEEN is false by the other one alone: COALESCE each end")
        _ranked(of, value, low, high)
        return _pair(value, low, operator.ge) & _pair(value, high, operator.le)

    def _in(self, of: exp.Expr) -> Cell:
        value = self.cell(of.this)
        if of.args.get("query") is not None or not isinstance(value, Value):
            _outside(of, "IN has a list of constants")
        cells = [self.cell(one) for one in of.expressions]
        if any(isinstance(one, Value) for one in cells):
            _outside(of, "IN has a list of constants: write = and OR")
        return _room(value, *cells).isin(cells)

    def _is(self, of: exp.Expr) -> Cell:
        value = self.cell(of.this)
        if type(of.expression).__name__ != "Null" or not isinstance(value, Value):
            _outside(of, "IS asks for NULL alone")
        return value.known() if of.args.get("negate") else ~value.known()

    def _coalesce(self, of: exp.Expr) -> Cell:
        value = self.cell(of.this)
        for one in of.expressions:
            if isinstance(value, Value):
                value = _pair(value, self.cell(one), lambda a, b: a.default(b))
        return value

    def _least(self, of: exp.Expr) -> Cell:
        return self._folded(of, _value.minimum)

    def _greatest(self, of: exp.Expr) -> Cell:
        return self._folded(of, _value.maximum)

    def _folded(self, of: exp.Expr, by: Callable[[Any, Any], Value]) -> Cell:
        made, *cells = [self.cell(one) for one in (of.this, *of.expressions)]
        _ranked(of, made, *cells)
        for one in cells:
            made = _pair(made, one, by)
        return made

    def _case(self, of: exp.Expr) -> Cell:
        """The first branch whose condition is true; where one is not known, it is none."""
        if of.this is not None:
            _outside(of, "write CASE WHEN condition THEN a ELSE b END")
        if of.args.get("default") is None:
            _outside(of, "a CASE without ELSE is NULL in the other rows: write ELSE 0, or WHERE")
        made = self.cell(of.args["default"])
        for branch in reversed(of.args["ifs"]):
            condition = self.condition(branch.this).default(False)
            value = self.cell(branch.args["true"])
            if not isinstance(value, Value) and not isinstance(made, Value):
                made = _chosen(condition, value, made, of)
            else:
                made = _pair(value, made, functools.partial(_value.select, condition))
        return made

    def _compared(self, of: exp.Expr, by: Callable[[Any, Any], Any]) -> Cell:
        a, b = self.cell(of.this), self.cell(of.expression)
        if type(of).__name__ in _ORDERED:
            _ranked(of, a, b)
        return _pair(a, b, by)

    def _added(self, of: exp.Expr, kind: str) -> Cell:
        a, b = self.cell(of.this), self.cell(of.expression)
        by = _ADDED[kind]
        if not isinstance(a, Value) and not isinstance(b, Value):
            if isinstance(a, (int, Fraction)) and isinstance(b, (int, Fraction)):
                return _exact(by(a, b))
            _outside(of)
        parts = max(one._parts() for one in (a, b) if isinstance(one, Value))
        widths = [_width(one, parts) for one in (a, b)]
        width = widths[0] + widths[1] if kind == "Mul" else max(widths) + 1
        a, b = [_wide(one, width) if isinstance(one, Value) else one for one in (a, b)]
        made: Cell = by(a, b)
        return made

    def _joined(self, of: exp.Expr, kind: str) -> Cell:
        if kind == "Not":
            return ~self.bit(of.this)
        if self._missing(of):
            what = "AND is false" if kind == "And" else "OR is true"
            _outside(of, f"where one side is NULL, {what} by the other one alone: COALESCE each side")
        a, b = self.bit(of.this), self.bit(of.expression)
        return a & b if kind == "And" else a | b

    def _missing(self, of: exp.Expr) -> bool:
        """Whether a condition may be neither true nor false."""
        return bool(_may_miss(of, self._columns, self._parties))


def _apart(value: Value) -> Value:
    """A bit that is a column, as a value of its own: it has two names then."""
    return value.parts() if value._column is not None and value._type() == "bit" else value


_SPECIAL: dict[str, Callable[[_Cells, exp.Expr], Cell]] = {
    "Neg": _Cells._neg,
    "Abs": _Cells._abs,
    "Cast": _Cells._cast,
    "Between": _Cells._between,
    "In": _Cells._in,
    "Is": _Cells._is,
    "Coalesce": _Cells._coalesce,
    "Least": _Cells._least,
    "Greatest": _Cells._greatest,
    "Case": _Cells._case,
}


def _ranked(of: exp.Expr, *cells: Cell) -> None:
    """Refuses an order of labels: that of their list is none of texts."""
    if any(isinstance(one, Value) and one._has_labels() for one in cells):
        _outside(of, "labels have no order here, and texts have one by their letters: write = or IN")


def _exact(number: int | Fraction) -> int | Fraction:
    """A whole number as one."""
    return int(number) if number == int(number) else number


def _width(of: Cell, parts: int = 1) -> int:
    """Bits of a signed type that holds it; a constant in so many parts of one."""
    if isinstance(of, Value):
        name = of._type()
        return 2 if name == "bit" else int(name[1:]) + (name[0] == "u")
    if isinstance(of, datetime.date):
        return days(of).bit_length() + 1
    return int(of * parts).bit_length() + 1 if isinstance(of, (int, Fraction)) else 1


def _room(value: Value, *constants: Cell) -> Value:
    """A value, in a type that holds these numbers as well."""
    counts: list[int | Fraction] = [
        one * value._parts() for one in constants if isinstance(one, (int, Fraction))
    ]
    name = value._type()
    low = -(1 << int(name[1:]) - 1) if name[0] == "i" else 0
    high = 1 if name == "bit" else (1 << int(name[1:]) - (name[0] == "i")) - 1
    if value._is_day() or value._has_labels():
        return value
    if all(low <= count <= high for count in counts):
        return value
    return _wide(value, max(_width(value), *map(_width, counts)))


def _wide(value: Value, width: int) -> Value:
    if width > 128:
        raise mistake("these numbers are too wide for a product: bound them by LEAST and GREATEST first")
    if value._type() == f"i{width}":
        return value
    made = value.cast(i(width))
    made._like = value._like
    return made


def _pair(a: Cell, b: Cell, by: Callable[[Any, Any], Any]) -> Value:
    """An operation on two values of one type."""
    if isinstance(a, Value) and isinstance(b, Value) and a._type() != b._type():
        width = max(_width(a), _width(b))
        a, b = _wide(a, width), _wide(b, width)
    if isinstance(a, Value):
        a = _room(a, b)
    elif isinstance(b, Value):
        b = _room(b, a)
    else:
        raise mistake("two constants are compared: that is the same of every row")
    made: Value = by(a, b)
    return made


def _chosen(condition: Value, a: Cell, b: Cell, of: exp.Expr) -> Value:
    """One of two constants."""
    if (a, b) in ((1, 0), (True, False)):
        return condition
    if (a, b) in ((0, 1), (False, True)):
        return ~condition
    if not (isinstance(a, int) and isinstance(b, int)):
        _outside(of, "a constant with decimals has no scale: multiply, or make it a column's")
    width = max(abs(a), abs(b)).bit_length() + 1
    return _value.select(condition, _value.const(a, Type(f"i{width}")), b)
