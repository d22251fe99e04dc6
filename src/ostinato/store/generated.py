"""The SQL of declared tables, for both dialects; `tests/snapshots` shows it as it comes out.

PostgreSQL takes every column of the rows as an array, so that one statement writes all of them. SQLite binds one row at
a time: the tenant, then what is given, in order.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping

from ostinato.core import tables
from ostinato.core.columns import Column

WIDTH = 112


def blocks(dialect: str) -> dict[str, str]:
    """The text of each statement, by name."""
    write = _on_postgres if dialect == "postgres" else _on_sqlite
    found = {name: f"-- {declared.purpose}\n{write(declared)}" for name, declared in tables.WRITES.items()}
    for table in tables.SEALED:
        found[f"rotate_{table.name}"] = _rotate(table)
        found[f"reseal_{table.name}"] = _reseal(table)
    for table in tables.OF_JOBS:
        found[f"audit_ids_of_{table.name}"] = _job_ids(table)
    return found | {"count_sealed": _count_sealed()}


def selected(table: str, alias: str) -> str:
    """The columns of a row, for a query: `{task t}`."""
    prefix = f"{alias}." if alias else ""
    return _wrapped(f"{prefix}{column.name}" for column in tables.TABLES[table].columns).strip()


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


def _on_postgres(write: tables.Write) -> str:
    match write:
        case tables.Insert():
            targets = ["tenant", *write.names, *write.constants]
            values = [":tenant", *(f"r.{name}" for name in write.names), *write.constants.values()]
            return (
                f"INSERT INTO {write.table.name} (\n{_wrapped(targets)}\n)\nSELECT\n{_wrapped(values)}\n"
                f"FROM {_unnested(write, 'r')}{_on_conflict(write)}"
            )
        case tables.Change():
            changes = _changes(write, lambda name: f"r.{name}", "x.")
            ending = "\nRETURNING 1" if write.guarded else ""
            return (
                f"UPDATE {write.table.name} AS x SET\n{_wrapped(changes)}\nFROM (\n{_rows_with_tenant(write)}\n) r\n"
                f"WHERE {_conditions(write, 'x.', 'r.tenant', lambda name: f'r.{name}')}{ending}"
            )
        case tables.Delete():
            return (
                f"DELETE FROM {write.table.name} AS x\nUSING (\n{_rows_with_tenant(write)}\n) r\n"
                f"WHERE {_conditions(write, 'x.', 'r.tenant', lambda name: f'r.{name}')}"
            )
        case _:
            raise TypeError(write)


def _rows_with_tenant(write: tables.Write) -> str:
    """(OFFSET 0 keeps each lookup a lookup by the whole key, whatever the planner thinks of an empty table.)"""
    rows = textwrap.indent(_unnested(write, "u"), "    ").lstrip()
    return f"    SELECT CAST(:tenant AS text) AS tenant, u.* FROM {rows} OFFSET 0"


def _unnested(write: tables.Write, alias: str) -> str:
    arrays = [f":rows.{n}::{column.type}[]" for n, (_, column) in enumerate(write.given, 1)]
    names = [name for name, _ in write.given]
    return f"unnest(\n{_wrapped(arrays)}\n) AS {alias} (\n{_wrapped(names)}\n)"


# --- SQLite ----------------------------------------------------------------------------------------------------------


def _on_sqlite(write: tables.Write) -> str:
    """A statement that would take its whole transaction back need not keep what it has changed, page by page, to take
    back only itself; and one that fails always takes the transaction with it."""
    table = write.table
    hurried = " OR ROLLBACK" if table.quiet and not (isinstance(write, tables.Insert) and write.conflict) else ""
    match write:
        case tables.Insert():
            targets = ["tenant", *write.names, *write.constants]
            values = ["?1", *(_parameter(write, name) for name in write.names), *write.constants.values()]
            return (
                f"INSERT{hurried} INTO {table.name} (\n{_wrapped(targets)}\n)\nVALUES (\n{_wrapped(values)}\n)"
                f"{_on_conflict(write)}"
            )
        case tables.Change():
            changes = _changes(write, lambda name: _parameter(write, name), "")
            # Changes that triggers write would be counted too; rows that come back are the table's own.
            ending = "\nRETURNING 1" if write.guarded and not (table.quiet and write.key) else ""
            return (
                f"UPDATE{hurried} {table.name} SET\n{_wrapped(changes)}\n"
                f"WHERE {_conditions(write, '', '?1', lambda name: _parameter(write, name))}{ending}"
            )
        case tables.Delete():
            conditions = _conditions(write, "", "?1", lambda name: _parameter(write, name))
            return f"DELETE FROM {table.name}\nWHERE {conditions}"
        case _:
            raise TypeError(write)


def _parameter(write: tables.Write, name: str) -> str:
    return f"?{write.place(name) + 1}"


# --- what belongs to jobs --------------------------------------------------------------------------------------------


def _job_ids(table: tables.Table) -> str:
    return (
        "-- The jobs that have something here, in order, and whether they are there themselves.\n"
        "SELECT d.job_id, EXISTS (SELECT 1 FROM job j WHERE j.tenant = :tenant AND j.job_id = d.job_id)\nFROM (\n"
        f"    SELECT DISTINCT x.job_id FROM {table.name} x\n"
        "    WHERE x.tenant = :tenant AND x.job_id > :after ORDER BY x.job_id LIMIT :most\n"
        ") d\nORDER BY d.job_id"
    )


# --- payloads that are encrypted with another key --------------------------------------------------------------------


def _rotate(table: tables.Table) -> str:
    """What is encrypted starts with a mark and the id of its key, `head`."""
    key, payloads = ", ".join(table.key), table.payloads()
    after = ", ".join(f":after_{name}" for name in table.key)
    others = " OR ".join(f"substr({name}, 1, 17) <> :head" for name in payloads)
    return (
        "-- Rows with a payload that the newest key has not encrypted, from a place on.\n"
        f"SELECT {key}, {', '.join(payloads)} FROM {table.name}\n"
        f"WHERE tenant = :tenant AND ({key}) > ({after})\n    AND ({others})\nORDER BY {key}\nLIMIT :most"
    )


def _reseal(table: tables.Table) -> str:
    payloads = table.payloads()
    conditions = ["tenant = :tenant", *(f"{name} = :{name}" for name in table.key)]
    conditions += [f"{name} {_equal(table.by_name[name])} :old_{name}" for name in payloads]
    return (
        "-- Replace the payloads of a row, if they still are as they were read.\n"
        f"UPDATE {table.name} SET\n{_wrapped(f'{name} = :new_{name}' for name in payloads)}\n"
        f"WHERE {_joined(conditions)}\nRETURNING {table.key[0]}"
    )


def _count_sealed() -> str:
    parts = [
        f"SELECT '{kind}' AS kind, {name} AS payload FROM {table.name} WHERE tenant = :tenant AND {name} IS NOT NULL"
        for table in tables.SEALED
        for name, kind in table.payloads().items()
    ]
    return (
        "-- How many payloads each key has encrypted, by kind; those without a key are not encrypted.\n"
        "SELECT kind, CASE WHEN substr(payload, 1, 1) = :mark THEN substr(payload, 2, 16) END AS key_id, count(*)\n"
        "FROM (\n    " + "\n    UNION ALL ".join(parts) + "\n) AS p\nGROUP BY 1, 2\nORDER BY 1, 2"
    )


# --- both ------------------------------------------------------------------------------------------------------------


def _changes(write: tables.Change, given: Callable[[str], str], own: str) -> list[str]:
    constant = [f"{name} = {value}" for name, value in write.constants.items()]
    kept = {name: f"coalesce({given(name)}, {own}{name})" for name in write.kept}
    changed = [f"{name} = {kept.get(name) or given(name)}" for name in write.names]
    # What is only looked at is written as it is: PostgreSQL locks the row until the commit, and counts it.
    return constant + changed or [f"{name} = {own}{name}" for name in list(write.guards.values())[:1]]


def _conditions(write: tables.Change | tables.Delete, own: str, tenant: str, given: Callable[[str], str]) -> str:
    guards: Mapping[str, str] = write.guards if isinstance(write, tables.Change) else {}
    parts = [f"{own}tenant = {tenant}", *(f"{own}{name} = {given(name)}" for name in write.key)]
    parts += [f"{own}{name} {_equal(write.table.by_name[name])} {given(was)}" for was, name in guards.items()]
    if isinstance(write, tables.Change) and write.where:
        parts.append(write.where.replace("{x}.", own))
    return _joined(parts)


def _joined(conditions: list[str]) -> str:
    lines = _lines([*conditions[:1], *(f"AND {condition}" for condition in conditions[1:])])
    return textwrap.indent("\n".join(lines), "    ").lstrip()


def _equal(column: Column) -> str:
    return "IS NOT DISTINCT FROM" if column.nullable else "="


def _on_conflict(write: tables.Insert) -> str:
    if write.conflict is None:
        return ""
    start = f"\nON CONFLICT ({', '.join(('tenant', *write.table.key))}) DO"
    if write.conflict == "nothing":
        return f"{start} NOTHING"
    table = write.table

    def value(name: str) -> str:
        adds = write.conflict == "add" and table.by_name[name].type == "int8"
        return f"{name} = {table.name}.{name} + excluded.{name}" if adds else f"{name} = excluded.{name}"

    return f"{start} UPDATE SET\n{_wrapped(value(name) for name in write.changes)}"


def _wrapped(parts: Iterable[str]) -> str:
    listed = list(parts)
    separated = [f"{part}," for part in listed[:-1]] + listed[-1:]
    return textwrap.indent("\n".join(_lines(separated)), "    ")


def _lines(parts: Iterable[str]) -> list[str]:
    """As many parts on a line as fit, and none broken."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 1 + len(part) <= WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines
