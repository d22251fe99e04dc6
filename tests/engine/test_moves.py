"""The database itself refuses illegal moves, whoever writes: its triggers and `core.states` say the same."""

import contextlib
import itertools

import apsw
import asyncpg
import pytest

from ostinato.core import states
from tests.engine import support
from tests.engine.support import job, run, task


async def _allowed(url: str, table: str, names: tuple[str, ...]) -> set[tuple[str, str]]:
    """Try every move on a prepared row, each in a transaction of its own that is undone."""
    allowed: set[tuple[str, str]] = set()
    pairs = list(itertools.product(names, repeat=2))
    if url.startswith("sqlite"):
        link = apsw.Connection(url.removeprefix("sqlite:///"))
        for old, new in pairs:
            link.execute("BEGIN IMMEDIATE")
            _place_sqlite(link, table, old)
            with contextlib.suppress(apsw.ConstraintError):
                link.execute(f"UPDATE {table} SET state = '{new}'")
                allowed.add((old, new))
            if link.in_transaction:  # a move that is refused takes it back itself
                link.execute("ROLLBACK")
        link.close()
        return allowed
    connection = await asyncpg.connect(url)
    for old, new in pairs:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        await connection.execute(f"UPDATE {table} SET state = '{old}'")
        await connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        with contextlib.suppress(asyncpg.CheckViolationError):
            await connection.execute(f"UPDATE {table} SET state = '{new}'")
            allowed.add((old, new))
        await transaction.rollback()
    await connection.close()
    return allowed


def _place_sqlite(link: apsw.Connection, table: str, state: str) -> None:
    """SQLite cannot turn triggers off: write the row anew, for they watch updates."""
    columns = [row[1] for row in link.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(f"'{state}'" if column == "state" else column for column in columns)
    link.execute(f"CREATE TEMP TABLE kept AS SELECT {values} FROM {table}")
    link.execute(f"DELETE FROM {table}")
    link.execute(f"INSERT INTO {table} SELECT * FROM kept")
    link.execute("DROP TABLE kept")


def _table(moves: dict[str, frozenset[str]]) -> set[tuple[str, str]]:
    return {(old, new) for old, targets in moves.items() for new in targets} | {(state, state) for state in moves}


async def test_the_triggers_of_tasks_allow_exactly_the_moves_of_the_table(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
    assert await _allowed(url, "task", states.TASK_STATES) == _table(states.TASK_MOVES)


async def test_the_triggers_of_jobs_allow_exactly_the_moves_of_the_table(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
    assert await _allowed(url, "job", states.JOB_STATES) == _table(states.JOB_MOVES)


@pytest.mark.parametrize("table", ["task", "job"])
async def test_states_that_do_not_exist_are_refused(url: str, table: str) -> None:
    app = support.make(url)
    gate = support.Gate(app)
    async with app:
        made = await app.submit(job(task("a", "gate")))
        await support.soon(gate.started.wait())
        with pytest.raises((apsw.ConstraintError, asyncpg.CheckViolationError)):
            await support.sql(url, f"UPDATE {table} SET state = 'happy'")
        gate.opened.set()
        await made.result(support.PATIENCE)


async def test_a_completed_job_cannot_be_opened_again_even_by_hand(url: str) -> None:
    async with support.opened(url) as app:
        await run(app, task("a"))
    with pytest.raises((apsw.ConstraintError, asyncpg.CheckViolationError), match="not legal"):
        await support.sql(url, "UPDATE job SET state = 'running'")
