"""Every way to list goes along an index of its own, in the order of the list, on an empty database and a full one."""

from __future__ import annotations

import apsw
import asyncpg
import pytest

from ostinato.store import connect, postgres, queries, vectors

ROWS = 50_000
INDEXES = {
    "find_jobs": "job_created",
    "find_jobs_by_name": "job_name",
    "find_budget_questions": "job_name",
    "find_jobs_by_state": "job_state",
    "find_jobs_by_request_id": "job_request",
    "find_jobs_by_correlation_id": "job_correlation",
    "find_job_by_its_own_correlation_id": "job_pkey",
    "find_jobs_by_tag": "job_tag_key",
    "find_jobs_by_tag_value": "job_tag_value",
    "find_dead_letters": "dead_letter_failed",
    "find_dead_letters_by_name": "dead_letter_name",
    "find_dead_letters_by_error_type": "dead_letter_error",
    "find_dead_letters_by_job": "dead_letter_pkey",
    "find_jobs_by_name_and_state": "job_name_state",
    "find_results": "result_created",
    "find_results_by_domain": "result_domain",
    "find_results_by_field": "result_field_value",
    "read_result": "result_name",
    "rotate_result": "result_job",
    "find_old_results": "result_created",
    "find_executions": "execution_start",
    "find_executions_by_agent": "execution_agent",
    "find_executions_by_status": "execution_status",
    "find_executions_by_agent_and_status": "execution_agent_status",
    "find_executions_by_correlation_id": "execution_correlation",
    "find_executions_by_tag": "execution_tag_key",
    "find_executions_by_tag_value": "execution_tag_value",
    "tagged_jobs": "job_tag_key",
    "tagged_jobs_value": "job_tag_value",
    "tagged_executions": "execution_tag_key",
    "tagged_executions_value": "execution_tag_value",
    "narrowed_jobs": "job_pkey",
    "narrowed_executions": "execution_pkey",
    "count_jobs_by_state": "job_state",
    "count_jobs_by_name": "job_name",
    "count_jobs_by_tag": "job_tag_key",
    "count_jobs_by_tag_value": "job_tag_value",
    "count_executions_by_status": "execution_status",
    "count_executions_by_agent": "execution_agent_status",
    "count_executions_by_tag": "execution_tag_key",
    "count_executions_by_tag_value": "execution_tag_value",
    "old_executions": "execution_indexed",
    "find_waiting_approvals": "approval_waiting",
    "find_approvals": "approval_requested",
    "find_approvals_of_job": "approval_pkey",
    "load_signals": "signal_untaken",
    "load_sent_signals": "signal_pkey",
    "count_ahead": "ready_pkey",
    "read_dependencies": "edge_down",
    "read_open_dependencies": "edge_down",
    "list_newest_jobs": "job_created",
    "old_jobs": "job_state",
    "load_jobs_by_idempotency_key": "job_idempotency",
    "old_jobs_of_period": "job_keep",
    "next_period": "job_keep",
    "prune_removed_key": "removed_key_at",
    "prune_removed_event": "removed_event_at",
    "prune_outside_event": "outside_event_received",
    "read_tallies": "tally_bucket",
    "sum_tallies_by_key": "tally_bucket",
    "sum_tallies_by_bucket": "tally_bucket",
    "read_tallies_of_keys": "tally_pkey",
    "take_tallies": "tally_writer",
    "prune_tally": "tally_bucket",
    "find_items": "item_entered",
    "find_items_by_status": "item_status",
    "find_items_stuck": "item_stuck",
    "count_items_stuck": "item_stuck",
    "find_items_held": "item_held",
    "find_items_retrying": "item_retry",
    "list_history": "status_history_pkey",
    "feed": "event_page_feed",
}
INDEXES |= {
    name + queries.UPWARDS: index
    for name, index in INDEXES.items()
    if name + queries.UPWARDS in queries.blocks("sqlite")
}
COUNTS = {name for name in INDEXES if name.startswith("count_") or "tall" in name}
"""They gather what they find, in whatever way."""
SORTS = {
    "find_dead_letters_by_job",
    "find_approvals_of_job",
    "read_dependencies",
    "read_open_dependencies",
    "load_signals",
}
"""There are few: of a job, of the dependencies of a task as a rule, and of signals as many as tasks begin to wait."""
NOT_FOR_TENANTS = {
    "take_tallies", "prune_tally", "prune_removed_key", "prune_removed_event", "prune_outside_event", "old_jobs",
    "old_jobs_of_period", "next_period",
}  # fmt: skip

FILL = """
INSERT INTO job (
    tenant, job_id, name, state, priority, request_id, correlation_id, tags, cascades, created_at, finished_at,
    last_seq, total, blocked, active, completed, failed, tolerated, skipped, cancelled
)
SELECT 'default', 'job-' || n, 'name-' || (n % 20), CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END, 0,
    CASE WHEN n % 2 = 0 THEN 'request-' || n END, CASE WHEN n % 2 = 0 THEN 'order-' || (n / 10) ELSE 'job-' || n END,
    CAST('{}' AS {bytes}), {false}, n, n + 1, 1, 1, 0, 0, 1, 0, 0, 0, 0
FROM numbers;
INSERT INTO job_tag (tenant, job_id, key, value, created_at)
SELECT 'default', 'job-' || n, 'key-' || (n % 3), 'value-' || (n % 100), n FROM numbers WHERE n % 5 = 0;
INSERT INTO dead_letter (tenant, job_id, task_id, name, failed_at, error_type)
SELECT 'default', 'job-' || n, 'task', 'name-' || (n % 20), n, 'Error' || (n % 7) FROM numbers;
INSERT INTO approval (
    tenant, job_id, task_id, key, state, document, asked, not_submitter, version, requested_at
)
SELECT 'default', 'job-' || n, 'task', '', CASE WHEN n % 50 = 0 THEN 'waiting' ELSE 'approve' END,
    CAST('{}' AS {bytes}), NULL, {false}, 1, n
FROM numbers;
INSERT INTO execution (
    tenant, execution_arn, state_machine_arn, agent_name, execution_name, status, start_at, stop_at, correlation_id,
    indexed_at
)
SELECT 'default', 'arn-' || n, 'machine-' || (n % 20), 'agent-' || (n % 20), 'name-' || n,
    CASE WHEN n % 50 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, n, n + 1,
    CASE WHEN n % 2 = 0 THEN 'order-' || (n / 10) END, n
FROM numbers;
INSERT INTO execution_tag (tenant, execution_arn, key, value, start_at)
SELECT 'default', 'arn-' || n, 'key-' || (n % 3), 'value-' || (n % 100), n FROM numbers;
INSERT INTO tally (tenant, topic, key, bucket, writer, count, amount)
SELECT 'default', 'topic-' || (n % 5), 'key-' || (n % 20), n, CASE WHEN n % 50 = 0 THEN 'writer-' || n ELSE '' END, 1, n
FROM numbers;
INSERT INTO state_transition (tenant, pipeline, version, from_code, to_code)
SELECT 'default', 'pipeline', 1, 0, n FROM numbers WHERE n <= 20;
INSERT INTO item (
    tenant, item_id, pipeline, version, status, open, run, steps, attempt, retry_at, failures, entered_at, status_at,
    digest, payload
)
SELECT 'default', 'item-' || n, 'pipeline', 1, 1 + (n / 5) % 20, n % 50 = 0, 1, CAST('{}' AS {bytes}), 1,
    CASE WHEN n % 100 = 0 THEN n END, 0, n, n, CAST('' AS {bytes}), CAST('null' AS {bytes})
FROM numbers WHERE n % 5 = 0;
INSERT INTO signal (tenant, job_id, name, signal_id, payload, taken)
SELECT 'default', 'job-' || (n % 5), 'name-' || (n % 20), 'signal-' || n, CAST('{}' AS {bytes}), n % 50 <> 0
FROM numbers;
INSERT INTO ready (tenant, queue, name, rank, ready_at, job_id, task_id)
SELECT 'default', 'default', 'name-' || (n % 20), 0, n, 'job-' || n, 'task' FROM numbers;
"""


async def migrated(url: str) -> None:
    database = connect.connect(url)
    await database.open(migrate=True)
    await database.close()


@pytest.mark.parametrize("rows", [0, ROWS])
async def test_lists_go_along_indexes_on_sqlite(sqlite_url: str, rows: int) -> None:
    await migrated(sqlite_url)
    connection = apsw.Connection(sqlite_url.removeprefix("sqlite:///"))
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute(
        f"CREATE TEMP TABLE numbers AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {rows}) "
        f"SELECT n FROM c LIMIT {rows}"
    )
    connection.execute(FILL.replace("{bytes}", "BLOB").replace("{false}", "0"))
    plans: dict[str, str] = {}
    for name in INDEXES:
        block = queries.blocks("sqlite")[name]
        explained = connection.execute("EXPLAIN QUERY PLAN " + block.sql, [None] * len(block.parameters)).fetchall()
        plans[name] = "\n".join(str(row[3]) for row in explained)
    connection.close()
    for name, index in INDEXES.items():
        plan = plans[name]
        wanted = "PRIMARY KEY" if index.endswith("_pkey") else f"INDEX {index} "
        assert wanted in plan, f"{name}: {plan}"
        of_tables = plan.replace("SCAN counted", "").replace("SCAN (subquery", "").replace("SCAN e\n", "")
        of_tables = of_tables.replace("SCAN k VIRTUAL TABLE", "")  # what is asked for, as JSON
        assert "SCAN" not in of_tables, f"{name}: {plan}"
        assert name in COUNTS or ("TEMP B-TREE" in plan) == (name in SORTS), f"{name}: {plan}"


@pytest.mark.parametrize("walled", [False, True])
@pytest.mark.parametrize("rows", [0, ROWS])
async def test_lists_go_along_indexes_on_postgres(postgres_url: str, rows: int, walled: bool) -> None:
    """Behind the wall too: there a condition that might tell of hidden rows cannot be looked up in an index."""
    await migrated(postgres_url)
    connection = await asyncpg.connect(postgres_url, server_settings=postgres.SETTINGS)
    await connection.execute(f"CREATE TEMP TABLE numbers AS SELECT n FROM generate_series(1, {rows}) n")
    await connection.execute(FILL.replace("{bytes}", "bytea").replace("{false}", "false"))
    if rows:
        await connection.execute(
            "ANALYZE job; ANALYZE job_tag; ANALYZE dead_letter; ANALYZE ready; ANALYZE approval; ANALYZE execution; "
            "ANALYZE execution_tag; ANALYZE tally; ANALYZE item; ANALYZE status_history"
        )
    if walled:
        await connection.execute(f"SET ROLE {postgres.VISITOR}; SET ostinato.tenant = 'default'")
    plans: dict[str, str] = {}
    for name in INDEXES:
        if walled and name in NOT_FOR_TENANTS:
            continue
        block = queries.blocks("postgres")[name]
        await connection.execute(f"PREPARE {name} AS {block.sql}")
        nothing = ", ".join(["NULL"] * len(block.parameters))
        explained = await connection.fetch(f"EXPLAIN EXECUTE {name}({nothing})")
        plans[name] = "\n".join(row[0] for row in explained)
    await connection.close()
    for name, plan in plans.items():
        index = INDEXES[name]
        assert f" {index} on " in plan, f"{name}: {plan}"
        assert "Seq Scan" not in plan, f"{name}: {plan}"
        assert walled == ("ostinato.tenant" in plan), f"{name}: {plan}"
        if rows:
            assert name in COUNTS or ("Sort" in plan) == (name in SORTS), f"{name}: {plan}"


@pytest.mark.parametrize("analyzed", [False, True])
async def test_vectors_are_read_in_the_order_of_an_index(url: str, analyzed: bool) -> None:
    """Thousands are compared, the newest ones: to sort them all for that would write them to disk first, vectors and
    all. Nor does it when nothing is known of the table yet, or most tenants have few of them."""
    block = queries.blocks("sqlite" if url.startswith("sqlite") else "postgres")["search_result_vectors"]
    if url.startswith("sqlite"):
        database = apsw.Connection(url.removeprefix("sqlite:///"))
        vectors.equip(database)
        explained = database.execute("EXPLAIN QUERY PLAN " + block.sql, [None] * len(block.parameters)).fetchall()
        database.close()
        plan = "\n".join(str(row[3]) for row in explained)
        assert "INDEX result_vector_model " in plan, plan
        assert plan.count("TEMP B-TREE FOR ORDER BY") == 1, plan  # of the scores
        return
    connection = await asyncpg.connect(url, server_settings=postgres.SETTINGS)
    await connection.execute(
        "INSERT INTO result_vector (number, tenant, domain, created_at, model, embedding) "
        "SELECT n, CASE WHEN n % 2 = 0 THEN 'large' ELSE 'tenant-' || n % 100 END, 'd', n, 'm', "
        "ostinato_vector('[' || repeat('1,', 255) || '1]') FROM generate_series(1, 5000) n"
    )
    if analyzed:
        await connection.execute("ANALYZE result_vector")
    await connection.execute(f"PREPARE search AS {block.sql}")
    nothing = ", ".join(["NULL"] * len(block.parameters))
    plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE search({nothing})"))
    await connection.close()
    assert "Sort Key: x.number" not in plan, plan
    assert "Index Scan Backward using result_vector_" in plan, plan


async def test_a_page_of_events_that_is_encrypted_anew_is_found_by_its_key(url: str) -> None:
    """A job may have thousands, and none is to be looked for among all others."""
    block = queries.blocks("sqlite" if url.startswith("sqlite") else "postgres")["reseal_event_page"]
    if url.startswith("sqlite"):
        database = apsw.Connection(url.removeprefix("sqlite:///"))
        explained = database.execute("EXPLAIN QUERY PLAN " + block.sql, [None] * len(block.parameters)).fetchall()
        database.close()
        found = str(explained[0][3])
    else:
        connection = await asyncpg.connect(url, server_settings=postgres.SETTINGS)
        await connection.execute(f"PREPARE reseal AS {block.sql}")
        nothing = ", ".join(["NULL"] * len(block.parameters))
        lines = [row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE reseal({nothing})")]
        await connection.close()
        found = next(line for line in reversed(lines) if "Index Cond" in line)
    assert "last_seq" in found, found
