"""Whatever is given to the library, it answers, or raises an error of its own that says what to give instead."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from ostinato import Job, Ostinato, errors
from tests.engine import support
from tests.engine.support import job, task
from tests.index.support import AGENT, MACHINE, change


class Odd:
    """What no database and no JSON knows."""

    def __repr__(self) -> str:
        return "odd"


BAD: list[Any] = [
    None, True, 0, -1, 5, 10**400, -(10**30), 2**63, 1.5, float("nan"), float("inf"),
    "", "x", "a\0b", "\ud800", "x" * 100_000, b"x", b"\xff",
    [], [None], [5], ["x"], [["x"]], [("x", None)], (), ("x",), set(), {"x"},
    {}, {"x": None}, {5: 5}, {"\ud800": "a\0"},
    Odd(), Odd, datetime.datetime(2026, 1, 1), datetime.date(2026, 1, 1), object,
]  # fmt: skip

GATE = {"name": "g", "members": ["a", "b"], "trigger": []}
Call = tuple[Callable[..., Any], dict[str, Any]]


async def calls(app: Ostinato) -> dict[str, Call]:
    """Every public method with arguments that it takes. A name of a number is the place of an argument."""
    await app.gates.define(GATE)
    await app.gates.define(GATE | {"name": "dynamic", "members": "dynamic"})
    made = await app.submit(job(task("a"), task("b", "break", optional=True), jobId="j"))
    with contextlib.suppress(errors.JobFailed):
        await made.result(support.PATIENCE)
    await app.gate("g").arrive("k", "a")
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    wanted = {"name": "n", "state": "running", "correlation_id": "c", "request_id": "r", "tag": "t=v",
              "created_from": moment, "created_until": moment}  # fmt: skip
    chosen = {"agent_name": "a", "status": "RUNNING", "tag": "t=v", "correlation_id": "c",
              "started_from": moment, "started_until": moment}  # fmt: skip
    letters = {
        "name": "a",
        "job_id": "j",
        "error_type": "E",
        "failed_from": moment,
        "failed_until": moment,
    }
    gate, rules, index = app.gate("g"), app.rules, app.index
    rule = {"name": "r", "pattern": {"source": ["s"]}, "targets": [{"signal": {"jobId": "j", "name": "n"}}]}
    return {
        "submit": (app.submit, {"0": job(task("a")), "actor": None, "request_id": "r"}),
        "submit_many": (app.submit_many, {"0": [job(task("a"))], "actor": None, "name": "n"}),
        "submit_task": (app.submit_task, {"0": "echo", "submit": {}, "x": 1}),
        "plan": (app.plan, {"0": job(task("a"))}),
        "signal": (app.signal, {"job_id": "j", "name": "n", "payload": 1, "signal_id": "s", "actor": None}),
        "publish_status": (
            app.publish_status,
            {"job_id": "j", "status": "s", "message": "m", "timestamp": moment, "actor": None},
        ),
        "gate": (app.gate, {"name": "g"}),
        "job": (app.job, {"job_id": "j"}),
        "usage": (app.usage, {"by": "day", "since": moment.date(), "until": moment.date()}),
        "jobs": (app.jobs, {"cursor": None, "most": 5, **wanted}),
        "executions": (app.executions, {"cursor": None, "most": 5, "order": "newest", **chosen}),
        "execution": (app.execution, {"execution_arn": "a"}),
        "execution_counts": (app.execution_counts, {"by": "day", **chosen}),
        "rebuild_index": (app.rebuild_index, {"progress": None}),
        "dead_letters": (app.dead_letters, {"cursor": None, "most": 5, **letters}),
        "dead_letter": (app.dead_letter, {"job_id": "j", "task_id": "a"}),
        "redrive": (app.redrive, {"letters": [("j", "b")], "dry_run": True, "actor": None}),
        "redrive for good": (app.redrive, {"letters": [("j", "b")], "actor": None}),
        "redrive_matching": (app.redrive_matching, {"dry_run": True, "actor": None, **letters}),
        "events": (app.events, {"cursor": None, "most": 5}),
        "record": (app.record, {"actor": "a", "action": "x.y", "target": "t", "details": {}, "request_id": "r"}),
        "audit_log": (app.audit_log, {"actor": "a", "action": "x", "target": "t", "before": 5, "most": 5}),
        "verify_audit_log": (app.verify_audit_log, {"head": None}),
        "set_retention": (app.set_retention, {"jobs": 1e9, "keys": 1e9, "actor": None}),
        "set_budget": (app.set_budget, {"day": 5.0, "month": 5.0, "actor": None}),
        "prune": (app.prune, {"older_than": 1e6}),
        "post_events": (app.post_events, {"events": {"source": "s", "detail-type": "t", "detail": {}}, "actor": None}),
        "gates.define": (app.gates.define, {"document": GATE, "actor": None, "expected": None}),
        "gates.remove": (app.gates.remove, {"name": "other", "actor": None}),
        "gates.gate": (app.gates.gate, {"name": "g"}),
        "gates.shelf.stored": (app.gates.shelf.stored, {"name": "g", "version": 1}),
        "gates.shelf.versions": (app.gates.shelf.versions, {"name": "g"}),
        "gates.shelf.roll_back": (app.gates.shelf.roll_back, {"name": "g", "version": 1, "actor": None}),
        "gate.arrive": (
            gate.arrive,
            {"key": "k2", "member": "a", "data": {}, "status": "success", "correlation_id": "c", "depth": 0},
        ),
        "gate.freeze": (
            app.gate("dynamic").freeze,
            {"key": "k", "members": ["a"], "correlation_id": "c", "actor": None},
        ),
        "gate.open": (gate.open, {"key": "k", "reason": "r", "actor": "a"}),
        "gate.reset": (gate.reset, {"key": "k", "reason": "r", "actor": "a"}),
        "gate.keys": (gate.keys, {"before": "k", "most": 5}),
        "gate.counts": (gate.counts, {"job_id": "j"}),
        "gate.status": (gate.status, {"key": "k"}),
        "rules.define": (rules.define, {"document": rule, "actor": None, "expected": None}),
        "rules.remove": (rules.remove, {"name": "other", "actor": None}),
        "rules.matching": (rules.matching, {"event": {"source": "s", "detail-type": "t", "detail": {}}}),
        "index.report": (index.report, {"events": [change()]}),
        "index.tag": (index.tag, {"state_machine_arn": MACHINE, "tags": AGENT}),
        "results.search": (app.results.search, {"0": "q", "most": 5}),
        "results.get": (app.results.get, {"result_id": "r"}),
        "approvals.list": (
            app.approvals.list,
            {
                "state": "waiting",
                "job_id": "j",
                "task_id": "a",
                "approver": "a",
                "called": "b",
                "cursor": None,
                "most": 5,
            },
        ),
        "approvals.get": (app.approvals.get, {"job_id": "j", "task_id": "a", "key": "k"}),
        "approvals.decide": (
            app.approvals.decide,
            {"job_id": "j", "task_id": "a", "decision": "approve", "actor": "a", "notes": "n", "payload": {}},
        ),
        "ingest": (app.ingest, {"domain_id": "d", "data": {}}),
        "graph": (app.graph, {"name": "n"}),
        "graph.task": (app.graph("n").task, {"0": "echo"}),
        "Ostinato": (Ostinato, {"url": app.url, "tenant": "t"}),
        "function": (lambda name, **more: app.function(name, **more)(lambda: None), {"name": "f", "queue": "q"}),
        "job.result": (made.result, {"timeout": 0}),
        **of_job(made),
        **{f"{name} while it runs": call for name, call in of_job(await running(app)).items()},
    }


async def running(app: Ostinato) -> Job:
    """A job whose tasks wait for somebody else."""
    waiting = [task(name, "wait", external=True) for name in "xyz"]
    return await app.submit(job(*waiting, task("a"), task("b", "break"), jobId="running"))


def of_job(made: Job) -> dict[str, Call]:
    return {
        "job.tasks": (made.tasks, {"state": "completed", "after": -1, "most": 5}),
        "job.dependencies": (made.dependencies, {"task_ids": ["a"]}),
        "job.task": (made.task, {"task_id": "a"}),
        "job.why": (made.why, {"task_id": "a"}),
        "job.events": (made.events, {"task_id": "a", "after": 0, "most": 5}),
        "job.add_tasks": (made.add_tasks, {"tasks": [task("c")], "actor": None}),
        "job.signal": (made.signal, {"name": "n", "payload": 1}),
        "job.set_budget": (made.set_budget, {"budget": 5.0, "actor": None}),
        "job.cancel_task": (made.cancel_task, {"task_id": "x", "reason": "r", "actor": None}),
        "job.skip_task": (made.skip_task, {"task_id": "x", "reason": "r", "actor": None}),
        "job.complete_task": (made.complete_task, {"task_id": "y", "output": 1, "actor": None}),
        "job.fail_task": (made.fail_task, {"task_id": "z", "message": "m", "error_type": "E", "actor": None}),
        "job.retry_task": (made.retry_task, {"task_id": "b", "input": {}, "actor": None}),
        "job.resume": (made.resume, {"inputs": {}, "deadline": 5.0, "dry_run": False, "actor": None}),
        "job.cancel": (made.cancel, {"reason": "r", "actor": None}),
    }


async def attempt(call: Callable[..., Any], given: dict[str, Any]) -> None:
    placed = [value for name, value in given.items() if name.isdigit()]
    made = call(*placed, **{name: value for name, value in given.items() if not name.isdigit()})
    if asyncio.iscoroutine(made):
        await made


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[Ostinato]:
    async with support.opened(url, shutdown_seconds=0, check_functions=False) as app:
        yield app


async def refused(call: Callable[..., Any], given: dict[str, Any]) -> str | None:
    """What is wrong with how something wrong is refused; nothing if it is done as it should be, or was not wrong."""
    try:
        async with asyncio.timeout(5):
            await attempt(call, given)
    except errors.OstinatoError as error:
        names_nothing = isinstance(error, errors.DatabaseError) or "the database" in error.message
        return f"{error!r:.150}" if names_nothing else None
    except Exception as error:
        return f"{error!r:.150}"
    return None


def listed(wrong: dict[str, str]) -> str:
    return "".join(f"\n{name}: {what}" for name, what in wrong.items())


async def test_wrong_types_are_refused_with_errors_of_our_own(url: str) -> None:
    wrong: dict[str, str] = {}
    async with opened(url) as app:
        for name, (call, good) in (await calls(app)).items():
            with contextlib.suppress(errors.NotFound, errors.NotPossible):
                await attempt(call, good)
            for field, bad in itertools.product(good, BAD):
                if callable(bad) and name in ("rebuild_index", "function"):
                    continue  # that is what they take
                if (said := await refused(call, good | {field: bad})) is not None:
                    wrong.setdefault(f"{name} {field}", f"{bad!r:.40} -> {said}")
        assert await support.run(app, task("ok")) == {"ok": {}}, "and the engine goes on"
    assert not wrong, listed(wrong)


def mutants(document: Any) -> Iterator[Any]:
    """The document with one value of it replaced, or with one more name."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from ({**document, name: bad} for bad in BAD)
            yield from ({**document, name: mutant} for mutant in mutants(value))
            yield {other: given for other, given in document.items() if other != name}
        yield from ({**document, bad: bad} for bad in BAD if isinstance(bad, (str, int, bytes, tuple)))
    elif isinstance(document, list):
        for place, value in enumerate(document):
            yield from ([*document[:place], bad, *document[place + 1 :]] for bad in BAD)
            yield from ([*document[:place], mutant, *document[place + 1 :]] for mutant in mutants(value))


FULL_GATE = {
    "name": "full",
    "key": "day",
    "members": [{"name": "a", "kind": "players"}, {"name": "b", "kind": "teams"}],
    "required": ["day"],
    "success": {"status": ["success", {"prefix": "ok"}]},
    "aggregate": {
        "all": {"how": "union", "from": "a.b"},
        "some": {"how": "jsonata", "expression": "$count($keys(members))"},
    },
    "trigger": [{"job": {"name": "next", "tasks": [{"taskId": "a", "name": "echo", "input": {"x": "{% key %}"}}]}}],
    "deadline": 5.5,
    "onDeadline": "fail",
    "late": "trigger",
    "onFailure": "wait",
    "retention": 100,
}
FULL_RULE = {
    "name": "full",
    "pattern": {
        "source": [{"prefix": "a"}, {"anything-but": ["b"]}],
        "detail": {"n": [{"numeric": [">", 1, "<", 5]}], "ip": [{"cidr": "10.0.0.0/8"}], "x": [{"exists": True}]},
        "$or": [{"a": ["b"]}, {"c": [{"wildcard": "*d"}]}],
    },
    "targets": [
        {"gate": {"name": "g", "key": "{% detail.key %}", "member": "a", "data": {"a": 1}, "status": "success"}},
        {"signal": {"jobId": "j", "name": "n", "payload": {"a": 1}}},
        {"index": {"executionArn": "a", "stateMachineArn": "b", "status": "RUNNING", "startDate": 1}},
        {"webhook": {"url": "https://example.com/", "secret": "secret://S", "headers": {"X-A": "b"}, "body": {"a": 1}}},
    ],
    "enabled": False,
    "description": "all of it",
}
BRIDGE = {
    "id": "1",
    "source": "s",
    "detail-type": "t",
    "time": "2026-01-31T12:00:00Z",
    "resources": ["r"],
    "detail": {"a": [1]},
}
ENTRY = {"Source": "s", "DetailType": "t", "Detail": "{}", "Time": 1.5, "Resources": ["r"]}
CLOUD = {
    "specversion": "1.0",
    "id": "1",
    "source": "s",
    "type": "t",
    "time": "2026-01-31T12:00:00Z",
    "data": {"a": 1},
    "subject": "x",
}


async def test_wrong_values_in_documents_are_refused_with_errors_of_our_own(url: str) -> None:
    wrong: dict[str, str] = {}
    async with opened(url) as app:
        await app.gates.define(GATE)
        told: list[tuple[str, Callable[..., Any], Any]] = [
            ("gates.define", app.gates.define, FULL_GATE),
            ("rules.define", app.rules.define, FULL_RULE),
            ("rules.matching", app.rules.matching, BRIDGE),
            ("post_events", app.post_events, BRIDGE),
            ("post_events", app.post_events, ENTRY),
            ("post_events", app.post_events, CLOUD),
            ("post_events", app.post_events, change("SUCCEEDED", stop=1234567900000, correlationId="c")),
            ("index.report", lambda event: app.index.report([event]), change(tags=[{"key": "a", "value": "b"}])),
            (
                "arrive",
                lambda data: app.gate("g").arrive("k", "a", data),
                {"status": "success", "correlation_id": "c", "n": [1]},
            ),
        ]
        for name, call, good in told:
            await attempt(call, {"0": good})
            for mutant in mutants(good):
                if (said := await refused(call, {"0": mutant})) is not None:
                    wrong.setdefault(f"{name}: {said}", f"{mutant!r:.300}")
        assert await support.run(app, task("ok")) == {"ok": {}}, "and the engine goes on"
    assert not wrong, listed(wrong)
