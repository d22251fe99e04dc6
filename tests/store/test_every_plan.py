"""Every statement, on databases of two tenants, one with a long history: none reads all of what grows, or sorts it.

What may do so is listed here with the reason. A new block is looked at without being named, and one that has become
better has to leave the list.
"""

from __future__ import annotations

import re
from typing import Any

import apsw
import asyncpg

from ostinato.store import postgres, queries, vectors
from tests.store import test_plans

ROWS = 5_000
OF_ONE_JOB = "sorts what one job or one task has, or as much of it as was asked for by name"
NAMED = "sorts or groups as much as the call names, which is bounded"
COUNTS = "counts in proportion to what is counted; charts and metrics ask, and readers of the expensive kind answer"
FEW = "reads a table that has few rows: tenants, keys, workers, functions, definitions, budgets"
BESIDE = "belongs to the audit (all that is called so), to key rotation, or to an operator's command: no request waits"
FIRST = "reads no more than the first row that there is"
RANKED = "sorts the best of a bounded number of candidates"

ALLOWED = {
    OF_ONE_JOB: {
        "find_approvals_of_job", "find_dead_letters_by_job", "list_tasks", "read_dependencies",
        "read_open_dependencies", "read_all_dependency_outputs", "read_job_outputs", "read_job_failures",
        "read_steps", "list_steps", "load_edges", "load_signals", "load_waiters", "load_waiting_for_turn",
        "count_outcomes", "read_dependencies_of", "read_dependencies_of_tasks",
    },
    NAMED: {
        "load_execution_tags", "lock_executions", "lock_stripes", "load_at_once", "load_candidates",
        "read_tallies_of_keys", "count_gate_members", "list_tenants", "sum_tallies_by_key", "take_tallies",
    },
    COUNTS: {
        "count_jobs_by_state", "count_jobs_of_users_by_state", "count_jobs_by_name", "count_jobs_by_tag",
        "count_jobs_by_tag_value",
        "count_executions_by_status", "count_executions_by_agent", "count_executions_by_tag",
        "count_executions_by_tag_value", "count_outside_events", "count_own_executions", "count_ready",
        "count_dead_letters", "count_jobs", "count_timers", "count_waiting_approvals",
    },
    FEW: {
        "read_feed_secret",
        "list_workers", "live_workers", "dead_workers", "silent_workers", "all_leases", "list_functions",
        "read_retention", "list_keys", "any_key", "read_clock", "read_budget", "raise_budget_day", "raise_budget_month",
        "hold_budget", "definitions_stamp", "tenants_with_system_work",
    },
    BESIDE: {
        "count_sealed", "wake_for_budget", "list_triggers",
    },
    FIRST: {
        "last_audit_entry", "feed_end_of_tenant",
    },
    RANKED: {
        "search_result_words", "search_result_vectors",
    },
}  # fmt: skip

AUDIT = {name for name in queries.blocks("sqlite") if name.startswith("audit_")}

MORE = """
INSERT INTO task (
    tenant, job_id, task_id, position, name, queue, priority, policy, optional, dependencies, input, state, attempt,
    attempt_base, crashes, open_dependencies, resuming, skipped_by_dependency, max_attempts
)
SELECT 'default', 'job-' || (n / 10), 'task-' || n, n % 10, 'name-' || (n % 20), 'default', 0, 'block', {false}, 1,
    CAST('{}' AS {bytes}), 'completed', 1, 0, 0, 0, {false}, {false}, 1
FROM numbers;
INSERT INTO edge (tenant, job_id, up, down)
SELECT 'default', 'job-' || (n / 10), 'task-' || (n - 1), 'task-' || n FROM numbers;
INSERT INTO step (tenant, job_id, task_id, key, output, recorded_at)
SELECT 'default', 'job-' || (n / 10), 'task-' || n, 'a', CAST('{}' AS {bytes}), n FROM numbers;
INSERT INTO blob (tenant, job_id, digest, data)
SELECT 'default', 'job-' || n, CAST('a' AS {bytes}), CAST('{}' AS {bytes}) FROM numbers;
INSERT INTO timer (tenant, job_id, task_id, kind, name, key, due_at)
SELECT 'default', 'job-' || n, 'task', CASE WHEN n % 2 = 0 THEN 'wait' ELSE 'sleep' END, 'name', '', n FROM numbers;
INSERT INTO event_page (tenant, job_id, first_seq, last_seq, at, body)
SELECT 'default', 'job-' || (n / 10), n % 10 + 1, n % 10 + 1, n, CAST('[]' AS {bytes}) FROM numbers;
INSERT INTO outside_event (tenant, source, event_id, received_at, data)
SELECT 'default', 'source', 'event-' || n, n, CAST('{}' AS {bytes}) FROM numbers;
INSERT INTO usage (tenant, job_id, task_id, attempt, calls, input_tokens, output_tokens, cost)
SELECT 'default', 'job-' || n, 'task', 1, 1, 1, 1, 1 FROM numbers;
INSERT INTO audit_log (tenant, seq, at, actor, action, target, details, previous_hash, hash)
SELECT 'default', n, n, 'actor', 'action', 'target', CAST('{}' AS {bytes}), CAST('' AS {bytes}), CAST('' AS {bytes})
FROM numbers;
UPDATE job SET idempotency_key = 'key-' || job_id WHERE tenant = 'default';
INSERT INTO removed_key (tenant, idempotency_key, job_id, request_hash, removed_at)
SELECT 'default', 'key-' || n, 'job-' || n, CAST('' AS {bytes}), n FROM numbers;
INSERT INTO removed_event (tenant, source, event_id, removed_at)
SELECT 'default', 'source', 'event-' || n, n FROM numbers;
INSERT INTO gate_key (tenant, gate, key, job_id) SELECT 'default', 'gate', 'key-' || n, 'job-' || n FROM numbers;
INSERT INTO definition (tenant, kind, name, version, document, created_at)
SELECT 'default', 'gate', 'name-' || (n % 20), n / 20 + 1, CAST('{}' AS {bytes}), n FROM numbers;
INSERT INTO result (tenant, result_id, job_id, domain, kind, created_at, document, text)
SELECT 'default', 'result-' || n, 'job-' || n, 'domain', 'kind', n, CAST('{}' AS {bytes}), CAST('' AS {bytes})
FROM numbers;
"""
FILL = test_plans.FILL + MORE
_TABLE = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO|,)\s+(\w+)(?:\s+(?:AS\s+)?(\w+))?")


def of_tables(sql: str, tables: set[str]) -> set[str]:
    """By which names a statement calls tables."""
    return {name for found in _TABLE.findall(sql) if found[0] in tables for name in found}


def bad_on_sqlite(path: str) -> dict[str, list[str]]:
    """SQLite keeps no statistics here, so its plans are the same however much there is."""
    connection: Any = apsw.Connection(path)
    vectors.equip(connection)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    bad: dict[str, list[str]] = {}
    for name, block in queries.blocks("sqlite").items():
        given = max([len(block.parameters), *(int(n) for n in re.findall(r"\?(\d+)", block.sql))])
        given = given or block.sql.count("?")
        plan = connection.execute("EXPLAIN QUERY PLAN " + block.sql, [None] * given).fetchall()
        called = of_tables(block.sql, tables)
        for line in (str(row[3]) for row in plan):
            scan = re.match(r"SCAN (\w+)(?! VIRTUAL)\b", line)
            if (scan and scan[1] in called) or "TEMP B-TREE" in line or line.endswith("(tenant=?)"):
                bad.setdefault(name, []).append(line)
    connection.close()
    return bad


async def bad_on_postgres(url: str) -> dict[str, list[str]]:
    connection = await asyncpg.connect(url, server_settings=postgres.SETTINGS)
    await connection.execute(f"CREATE TEMP TABLE numbers AS SELECT n FROM generate_series(1, {ROWS}) n")
    await connection.execute(FILL.replace("{bytes}", "bytea").replace("{false}", "false"))
    await connection.execute("TRUNCATE numbers; INSERT INTO numbers SELECT n FROM generate_series(1, 100) n")
    fill = FILL.replace("'default',", "'quiet',").replace("{bytes}", "bytea").replace("{false}", "false")
    await connection.execute(fill)
    await connection.execute("DROP TABLE numbers")
    await connection.execute("ANALYZE")
    bad: dict[str, list[str]] = {}
    for name, block in queries.blocks("postgres").items():
        await connection.execute(f"PREPARE {name}_ AS {block.sql}")
        nothing = f"({', '.join(['NULL'] * len(block.parameters))})" if block.parameters else ""
        for line in (row[0].strip() for row in await connection.fetch(f"EXPLAIN EXECUTE {name}_{nothing}")):
            if re.search(r"Seq Scan|-> *(Incremental )?Sort |^Sort |Index Cond: \(tenant = \$\d+\)$", line):
                bad.setdefault(name, []).append(line)
    await connection.close()
    return bad


async def test_no_statement_reads_or_sorts_what_grows(sqlite_url: str, postgres_url: str) -> None:
    """P-1: on neither database; and nothing is allowed that is not needed."""
    on_sqlite = bad_on_sqlite(sqlite_url.removeprefix("sqlite:///"))
    on_postgres = await bad_on_postgres(postgres_url)
    allowed = {name for names in ALLOWED.values() for name in names}
    for bad in (on_sqlite, on_postgres):
        assert not {name: plan for name, plan in bad.items() if name not in allowed | AUDIT}
    assert sorted(allowed - set(on_sqlite) - set(on_postgres)) == []
