"""The audit finds what it is there to find: faults are planted by raw SQL, as a bug of the engine would leave them."""

from __future__ import annotations

import apsw
import asyncpg
import pytest

from ostinato import audit, testing
from tests.engine.test_crash_everywhere import JOB, build

FAULTS = {
    "an attempt that no event tells of": ("I8", "UPDATE task SET attempt = attempt + 1 WHERE task_id = 'flaky'"),
    "a lost timer": ("I2", "DELETE FROM timer WHERE task_id = 'flaky'"),
    "a counter that drifted": ("I8", "UPDATE job SET blocked = blocked + 1"),
    "a gap in the stream": ("I7", "DELETE FROM event_page WHERE first_seq <= 3 AND last_seq >= 3"),
    "a dependency counted off twice": ("I8", "UPDATE task SET open_dependencies = 1 WHERE task_id = 'join'"),
    "a ready task left blocked": ("I8", "UPDATE task SET open_dependencies = 0 WHERE task_id = 'waiter'"),
    "a lost dead letter": ("I8", "DELETE FROM dead_letter"),
    "a lost step": ("I8", "DELETE FROM step"),
    "a job ended behind its own back": ("I8", "UPDATE job SET state = 'completed', finished_at = 1"),
    "a task running without a lease": ("I2", "UPDATE task SET state = 'processing' WHERE task_id = 'waiter'"),
    "more attempts than allowed": ("I12", "UPDATE task SET attempt_base = -50 WHERE task_id = 'flaky'"),
    "a failure detected twice": (
        "I3",
        "INSERT INTO event_page (tenant, job_id, first_seq, last_seq, at, body) SELECT tenant, job_id, last_seq + 1, "
        """last_seq + 1, 1, CAST('[["Job Failure Detected",null,null,{"failedTaskId":"a"}]]' AS {bytes}) FROM job""",
    ),
    "a gate that opens twice": (
        "I3",
        "INSERT INTO event_page (tenant, job_id, first_seq, last_seq, at, body) SELECT tenant, job_id, last_seq + 1, "
        """last_seq + 2, 1, CAST('[["Gate Opened",null,null,{}],["Gate Opened",null,null,{}]]' AS {bytes}) FROM job""",
    ),
    "a completed task that runs again": (
        "I5",
        "INSERT INTO event_page (tenant, job_id, first_seq, last_seq, at, body) SELECT tenant, job_id, last_seq + 1, "
        """last_seq + 1, 1, CAST('[["Task Processing","early",2,{}]]' AS {bytes}) FROM job""",
    ),
    "an output that changed": (
        "I4",
        "UPDATE task SET output = CAST('[]' AS {bytes}) WHERE task_id = 'early'",
    ),
    "a task queued that is not pending": (
        "I2",
        "INSERT INTO ready (tenant, queue, name, rank, ready_at, job_id, task_id) "
        "SELECT tenant, queue, name, 0, 0, job_id, task_id FROM task WHERE task_id = 'early'",
    ),
}


async def run_sql(url: str, sql: str) -> None:
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(sql.replace("{bytes}", "BLOB")).fetchall()
        connection.close()
    else:
        pg = await asyncpg.connect(url)
        await pg.execute(sql.replace("{bytes}", "bytea"))
        await pg.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_audit_finds(url: str, fault: str) -> None:
    invariant, sql = FAULTS[fault]
    early = {"taskId": "early", "name": "leaf", "input": {}}
    async with testing.open(build(url)) as kit:
        await kit.app.submit({**JOB, "tasks": [*JOB["tasks"], early]})
        await kit.run_until_idle()
        await kit.advance(6)
        target = kit.app.engine.store
        assert not (await audit.audit(target)).problems
        await run_sql(url, sql)
        found = [problem.invariant for problem in (await audit.audit(target)).problems]
        assert invariant in found, f"found only {found}"
