"""Rules, as people use them: what happens is heard of once, and what is wanted is done once, or said why it was not."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from ostinato import Context, Ostinato, errors, outgoing
from ostinato.core.retry import Retry
from ostinato.engine import maintenance
from ostinato.reactions import definitions, functions, own
from ostinato.store import definitions as stored_definitions
from tests.engine import support
from tests.engine.support import PATIENCE, job, run, task, until
from tests.engine.test_encryption import stored
from tests.outgoing import support as web
from tests.reactions.support import quiet, sound, started

QUICK = Retry(max_attempts=8, base_delay=0.02, multiplier=1.0)


def rule(name: str, pattern: dict[str, Any], *targets: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": name, "pattern": pattern, "targets": list(targets)} | fields


def starting(name: str = "next", **given: Any) -> dict[str, Any]:
    """A target that starts a job with this input."""
    return {"job": {"name": name, "tasks": [{"taskId": "t", "name": "echo", "input": given}]}}


def outside(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": f"e-{number}", "source": "shop", "detail-type": "Order", "detail": {"n": number}} | fields


ORDERS = {"source": ["shop"], "detail-type": ["Order"]}


async def inputs(app: Ostinato, name: str = "next") -> list[Any]:
    """What the jobs were given that were started under a name, oldest first."""
    return [(await (await app.job(view.job_id)).result(PATIENCE))["t"] for view in reversed(await started(app, name))]


async def dead_letter(app: Ostinato) -> Any:
    async def there() -> Any:
        return await app.dead_letters()

    [letter] = await until(there, "the dead letter")
    return letter


# --- own events ----------------------------------------------------------------------------------------------------


async def test_a_task_that_completes_starts_a_job(url: str) -> None:
    async with support.opened(url) as app:
        pattern = {
            "source": ["ostinato"],
            "detail-type": ["Task Completed"],
            "detail": {"tags": {"team": ["blue"]}, "output": {"n": [{"numeric": [">", 1]}]}},
        }
        given = {"n": "{% detail.output.n %}", "of": "{% detail.jobId & '/' & detail.taskId %}", "who": "{% account %}"}
        await app.rules.define(rule("blue", pattern, starting(**given)))
        made = await app.submit(
            job(task("a", input={"n": 1}), task("b", input={"n": 2}), tags={"team": "blue"}, correlationId="c-7")
        )
        await made.result(PATIENCE)
        await run(app, task("b", input={"n": 3}), tags={"team": "red"})
        await quiet(app)
        assert await inputs(app) == [{"n": 2, "of": f"{made.job_id}/b", "who": "default"}]
        [view] = await started(app)
        assert view.correlation_id == "c-7"
        [rule_job] = await started(app, "rule:blue")
        assert rule_job.job_id.startswith("rule~"), "S-10: nobody can choose such an id"
        assert (rule_job.correlation_id, rule_job.state) == ("c-7", "completed")
        [created, *_] = await (await app.job(view.job_id)).events()
        assert created.properties["actor"] == "rule:blue"
        await sound(app)


@pytest.mark.parametrize("kind", ["Job Created", "Job Failed", "Task Failed", "Job Completed"])
async def test_every_kind_of_event_can_be_heard(url: str, kind: str) -> None:
    async with support.opened(url) as app:
        pattern = {"detail-type": [kind], "detail": {"jobName": ["test"]}}
        await app.rules.define(rule("any", pattern, starting(kind="{% $.'detail-type' %}")))
        name = "break" if "Failed" in kind else "echo"
        made = await app.submit(job(task("a", name)))
        await support.until(made_ended(made), "the job")
        await quiet(app)
        assert await inputs(app) == [{"kind": kind}]
        await sound(app)


def made_ended(made: Any) -> Any:
    async def ended() -> bool:
        return (await made.info()).state != "running"

    return ended


async def test_a_gate_that_opens_is_heard_of(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define({"name": "phase", "members": ["a"]})
        pattern = {"detail-type": ["Gate Opened"], "detail": {"gate": ["phase"]}}
        await app.rules.define(rule("opened", pattern, starting(key="{% detail.key %}")))
        await app.gate("phase").arrive("today", "a", correlation_id="c-1")
        await quiet(app)
        assert await inputs(app) == [{"key": "today"}]
        assert (await started(app))[0].correlation_id == "c-1"
        await sound(app)


async def test_it_reports_to_a_gate(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define(
            {
                "name": "phase",
                "members": ["a", "b"],
                "aggregate": {"n": {"how": "sum"}},
                "trigger": [starting(n="{% aggregate.n %}")],
            }
        )
        target = {
            "gate": {
                "name": "phase",
                "key": "{% detail.tags.day %}",
                "member": "{% detail.taskId %}",
                "data": "{% detail.output %}",
            }
        }
        pattern = {"detail-type": ["Task Completed"], "detail": {"jobName": ["test"]}}
        await app.rules.define(rule("report", pattern, target))
        await run(
            app, task("a", input={"n": 1}), task("b", input={"n": 2}), tags={"day": "monday"}, correlationId="c-1"
        )
        await quiet(app)
        status = await app.gate("phase").status("monday")
        assert (status.status, status.correlation_ids) == ("open", ["c-1"])
        assert await inputs(app) == [{"n": 3}]
        await sound(app)


async def test_a_gate_over_the_tasks_of_a_job_that_are_known_at_run_time(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that is done before it was said who is expected reports again."""
    monkeypatch.setattr(own, "RETRY", QUICK)
    async with support.opened(url) as app:
        trigger = starting(key="{% key %}", n="{% aggregate.n %}")
        await app.gates.define(
            {"name": "parts", "members": "dynamic", "aggregate": {"n": {"how": "sum"}}, "trigger": [trigger]}
        )
        told = {"key": "{% detail.jobId %}", "member": "{% detail.taskId %}", "data": "{% detail.output %}"}
        pattern = {
            "detail-type": ["Task Completed"],
            "detail": {"jobName": ["fan-out"], "taskId": [{"prefix": "part-"}]},
        }
        await app.rules.define(rule("report", pattern, {"gate": {"name": "parts"} | told}))
        made = await app.submit(job(task("part-0", input={"n": 1}), task("plan"), name="fan-out", jobId="big"))
        await made.result(PATIENCE)
        parts = [f"part-{n}" for n in range(4)]
        await app.gate("parts").freeze("big", parts)
        again = await app.submit(job(*[task(part, input={"n": 10}) for part in parts], name="fan-out", jobId="small"))
        await app.gate("parts").freeze("small", parts)
        await again.result(PATIENCE)

        async def opened() -> bool:
            return (await app.gate("parts").status("small")).status == "open"

        await until(opened, "the gate")
        assert (await app.gate("parts").status("big")).missing == parts[1:]
        await app.gate("parts").freeze("none", [])
        for part in parts[1:]:
            await app.gate("parts").arrive("big", part, {"n": 100})
        await quiet(app)
        assert sorted(await inputs(app), key=lambda one: one["key"]) == [
            {"key": "big", "n": 301},
            {"key": "none", "n": 0},
            {"key": "small", "n": 40},
        ]
        await sound(app)


async def test_it_signals_a_job_that_waits(url: str) -> None:
    app = support.make(url)

    @app.function
    async def waiter(ctx: Context) -> Any:
        return await ctx.wait_for("go")

    async with app:
        target = {"signal": {"jobId": "{% detail.job %}", "name": "go", "payload": {"n": "{% detail.n %}"}}}
        await app.rules.define(rule("wake", ORDERS, target))
        made = await app.submit(job(task("a", "waiter")))
        await app.post_events(outside(detail={"job": made.job_id, "n": 5}))
        assert await made.result(PATIENCE) == {"a": {"n": 5}}
        await quiet(app)
        await app.post_events(outside(2, detail={"job": made.job_id, "n": 6}))  # too late: it has ended
        letter = await dead_letter(app)
        assert letter.attempts == 1
        assert "is completed" in letter.error["message"]
        await sound(app)


# --- webhooks -------------------------------------------------------------------------------------------------------


async def test_it_calls_an_address_until_it_succeeds(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "RETRY", QUICK)
    app = support.make(url, webhooks=True, webhook_networks=("127.0.0.1/32",))
    app.secret_source = {"default.HOOK": "a-long-secret-of-ours"}.get
    async with web.running() as server, app:
        failing, fine = web.answering(500), web.answering(204)

        async def behave(writer: asyncio.StreamWriter) -> None:
            await (failing if len(server.requests) < 3 else fine)(writer)

        server.behave = behave
        target = {
            "webhook": {
                "url": server.url,
                "secret": "secret://HOOK",
                "headers": {"X-Order": "{% $string(detail.n) %}"},
                "body": {"n": "{% detail.n %}"},
            }
        }
        await app.rules.define(rule("call", ORDERS, target))
        await app.post_events(outside())
        await quiet(app)
        assert len(server.requests) == 3
        assert len({request.headers["idempotency-key"] for request in server.requests}) == 1
        for request in server.requests:
            assert json.loads(request.body) == {"n": 1}
            assert request.headers["x-order"] == "1"
            outgoing.verify("a-long-secret-of-ours", request.headers, request.body, time.time())
            with pytest.raises(errors.InvalidSignature):
                outgoing.verify("another-secret-of-ours", request.headers, request.body, time.time())
        [done] = await started(app, "rule:call")
        [view] = await (await app.job(done.job_id)).tasks()
        assert (view.state, view.attempt) == ("completed", 3)
        assert b"a-long-secret-of-ours" not in await stored(url)


async def test_webhooks_are_off_unless_somebody_wants_them(url: str) -> None:
    async with web.running() as server, support.opened(url) as app:
        await app.rules.define(rule("call", ORDERS, {"webhook": {"url": server.url}}))
        await app.post_events(outside())
        letter = await dead_letter(app)
        assert letter.attempts == 1
        assert "calls to the outside are off" in letter.error["message"]
        assert "--webhooks" in letter.error["message"]
        assert server.connections == 0


async def test_private_addresses_are_not_called(url: str) -> None:
    async with web.running() as server, support.opened(url, webhooks=True) as app:
        await app.rules.define(rule("call", ORDERS, {"webhook": {"url": server.url}}))
        await app.post_events(outside())
        assert (await dead_letter(app)).error["type"] == "TargetRefused"
        assert server.connections == 0


# --- events of others ---------------------------------------------------------------------------------------------


async def test_events_come_in_every_shape(url: str) -> None:
    async with support.opened(url) as app:
        given = {"n": "{% detail.n %}", "id": "{% id %}", "account": "{% account %}"}
        await app.rules.define(rule("orders", ORDERS, starting(**given)))
        answers = await app.post_events(
            [
                outside(1, time="2025-11-29T00:00:00Z", account="somebody else", region="eu-west-1", resources=[]),
                {"Source": "shop", "DetailType": "Order", "Detail": '{"n": 2}', "Id": "e-2", "EventBusName": "x"},
                {"specversion": "1.0", "id": "e-3", "source": "shop", "type": "Order", "data": {"n": 3}},
                outside(4, source="other"),
            ]
        )
        assert [(a.id, a.source, a.outcome) for a in answers] == [
            ("e-1", "shop", "recorded"),
            ("e-2", "shop", "recorded"),
            ("e-3", "shop", "recorded"),
            ("e-4", "other", "recorded"),
        ]
        await quiet(app)
        found = sorted(await inputs(app), key=lambda item: item["n"])
        assert found == [{"n": n, "id": f"e-{n}", "account": "default"} for n in (1, 2, 3)]
        kept = await app.engine.store.outside_events("default")
        assert {(event.source, event.event_id) for event in kept} == {
            ("shop", "e-1"), ("shop", "e-2"), ("shop", "e-3"), ("other", "e-4"),
        }  # fmt: skip
        await sound(app)


async def test_a_bad_event_is_refused_by_itself(url: str) -> None:
    """Of a batch the others are taken; with nothing good in it, it is an error."""
    async with support.opened(url) as app:
        await app.rules.define(rule("orders", ORDERS, starting()))
        for bad, field in (
            ({"source": "shop", "detail": {}}, "events[1].detail-type"),
            (outside(2, source="ostinato"), "events[1].source"),
            (outside(2, detail=[1]), "events[1].detail"),
            ({"Source": "shop", "DetailType": "Order", "Detail": "{"}, "events[1].Detail"),
            ({"specversion": "0.3", "id": "1", "source": "shop", "type": "Order"}, "events[1].specversion"),
            (outside(2, id="x" * 256), "events[1].id"),
            (outside(2, detail={"x": "x" * 300_000}), "events[1]"),
            ("no object", "events[1]"),
        ):
            good, refused = await app.post_events([outside(1), bad])
            assert good.outcome in ("recorded", "duplicate")
            assert (refused.outcome, refused.code is None, refused.field) == ("refused", False, field)
            with pytest.raises(errors.InvalidInput) as caught:
                await app.post_events([bad])
            assert caught.value.details["field"] == field.replace("[1]", "[0]")
        for bad in ([], [outside(n) for n in range(501)]):
            with pytest.raises(errors.InvalidInput, match="1 to 500"):
                await app.post_events(bad)
        assert len(await app.engine.store.outside_events("default")) == 1
        assert len(await started(app, "rule:orders")) == 1


async def test_the_same_event_counts_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the same instant, in the same call, and through two processes."""
    monkeypatch.setattr(definitions, "CHECKED_SECONDS", 0.0)  # the other goes by the new rule at once
    monkeypatch.setattr(stored_definitions, "RULES_SECONDS", -1.0)
    async with support.opened(url) as app, support.opened(url) as other:
        await app.rules.define(rule("orders", ORDERS, starting(n="{% detail.n %}")))
        batch = [outside(n % 5) for n in range(25)]
        answers = await asyncio.gather(*[one.post_events(batch) for one in (app, other) for _ in range(4)])
        recorded = [answer.id for answered in answers for answer in answered if answer.outcome == "recorded"]
        assert sorted(recorded) == [f"e-{n}" for n in range(5)]
        [same_id] = await app.post_events(outside(1, source="shop.other"))
        assert same_id.outcome == "recorded"
        await quiet(app)
        assert sorted(item["n"] for item in await inputs(app)) == [0, 1, 2, 3, 4]
        await sound(app)


async def test_events_are_not_kept_for_ever(url: str) -> None:
    async with support.opened(url) as app:
        await app.post_events(outside(1))
        await app.set_retention(jobs=3600, keys=0)
        await maintenance.Pruner(app.engine.store, 1).run_once()
        assert [r.outcome for r in await app.post_events(outside(1))] == ["duplicate"]
        await app.set_retention(jobs=0, keys=0)
        await asyncio.sleep(0.01)
        await maintenance.Pruner(app.engine.store, 1).run_once()
        assert await app.engine.store.outside_events("default") == []
        assert [r.outcome for r in await app.post_events(outside(1))] == ["recorded"]


# --- rules come and go --------------------------------------------------------------------------------------------


async def test_a_rule_that_is_disabled_or_removed_does_nothing(url: str) -> None:
    async with support.opened(url) as app:
        await app.rules.define(rule("orders", ORDERS, starting(n="{% detail.n %}")))
        await app.post_events(outside(1))
        await app.rules.define(rule("orders", ORDERS, starting(n="{% detail.n %}"), enabled=False))
        assert await app.rules.matching(outside(2)) == []
        await app.post_events(outside(2))
        await app.rules.define(rule("orders", ORDERS, starting(n="{% -detail.n %}")))
        assert await app.rules.matching(outside(3)) == ["orders"]
        await app.post_events(outside(3))
        await app.rules.remove("orders")
        await app.post_events(outside(4))
        with pytest.raises(errors.DefinitionNotFound):
            await app.rules.remove("orders")
        await app.rules.shelf.roll_back("orders", 1)
        await app.post_events(outside(5))
        await quiet(app)
        assert sorted(item["n"] for item in await inputs(app)) == [-3, 1, 5]


async def test_another_process_follows_a_change_within_a_second(url: str) -> None:
    async with support.opened(url) as app, support.opened(url) as other:
        await other.post_events(outside(0))  # it has looked, and there was none
        await app.rules.define(rule("orders", ORDERS, starting(n="{% detail.n %}")))
        await asyncio.sleep(1.1)  # that second is what this is about
        await other.post_events(outside(1))
        await app.rules.remove("orders")
        await asyncio.sleep(1.1)
        await other.post_events(outside(2))
        await quiet(app)
        assert await inputs(app) == [{"n": 1}]


async def test_rules_hear_nothing_of_what_rules_do(url: str) -> None:
    async with support.opened(url) as app:
        await app.rules.define(rule("all", {"source": ["ostinato"]}, starting("never")))
        await app.rules.remove("all")
        pattern = {"source": ["ostinato"], "detail": {"jobName": [{"prefix": "rule:"}]}}
        await app.rules.define(rule("curious", pattern, starting("never")))
        await app.rules.define(rule("orders", ORDERS, starting()))
        await app.post_events(outside())
        await quiet(app)
        assert len(await started(app)) == 1
        assert await started(app, "never") == []


async def test_tenants_do_not_hear_of_each_other(url: str) -> None:
    async with support.opened(url) as app, support.opened(url, tenant="other") as other:
        await app.rules.define(rule("all", {"account": [{"exists": True}]}, starting("heard", of="{% account %}")))
        await other.rules.define(rule("orders", ORDERS, starting()))
        assert [r.outcome for r in await other.post_events(outside(1, account="default"))] == ["recorded"]
        await run(other, task("a"))
        await quiet(other)
        await quiet(app)
        assert await app.jobs() == []
        assert [r.outcome for r in await app.post_events(outside(1))] == ["recorded"]
        await until(lambda: reached(app, "heard", 1), "the job")
        assert {item["of"] for item in await inputs(app, "heard")} == {"default"}
        assert await app.rules.names() == ["all"]
        await app.rules.remove("all")  # it hears of what it starts itself


async def reached(app: Ostinato, name: str, count: int) -> bool:
    return len(await started(app, name)) >= count


# --- what goes wrong ----------------------------------------------------------------------------------------------


async def test_a_circle_of_rules_ends(url: str) -> None:
    async with support.opened(url) as app:
        again = {"detail-type": ["Job Completed"], "detail": {"jobName": ["next"]}}
        await app.rules.define(rule("round", again, starting()))
        await app.rules.define(rule("orders", ORDERS, starting()))
        await app.post_events(outside())
        letter = await dead_letter(app)
        assert "circle" in letter.error["message"]
        assert letter.attempts == 1
        await quiet(app)
        assert len(await started(app)) == functions.DEEPEST
        await sound(app)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("Signal Received", {"signal": {"jobId": "{% detail.jobId %}", "name": "go"}}),
        ("Gate Arrival Late", {"gate": {"name": "phase", "key": "k", "member": "b"}}),
        ("Gate Arrival Failed", {"gate": {"name": "wait", "key": "k", "member": "b", "status": "error"}}),
    ],
)
async def test_a_circle_that_starts_no_job_ends_too(url: str, kind: str, target: dict[str, Any]) -> None:
    async with support.opened(url) as app:
        await app.gates.define({"name": "phase", "members": ["a", "b"]})
        await app.gates.define({"name": "wait", "members": ["a", "b"]})
        await app.rules.define(rule("round", {"detail-type": [kind]}, target))
        if kind == "Signal Received":
            made = await app.submit(job(task("a", external=True)))
            await app.signal(made.job_id, "go")
        else:
            await app.gate("phase").arrive("k", "a")
            await app.gate("phase").open("k", reason="hurry", actor="ann")
            name = target["gate"]["name"]
            await app.gate(name).arrive("k", "b", status="success" if name == "phase" else "error")
        letter = await dead_letter(app)
        assert "circle" in letter.error["message"]
        await app.rules.remove("round")


async def test_what_a_template_lacks_is_named(url: str) -> None:
    async with support.opened(url) as app:
        await app.rules.define(rule("orders", ORDERS, starting(n="{% detail.amount %}")))
        await app.post_events(outside())
        letter = await dead_letter(app)
        assert letter.attempts == 1
        assert "job.tasks[0].input.n" in letter.error["message"]
        made = await app.job(letter.job_id)
        given = (await made.task(letter.task_id)).input
        with pytest.raises(errors.NotPossible, match="correct the rule or gate"):
            await made.retry_task(letter.task_id, input=given)
        with pytest.raises(errors.NotPossible, match="correct the rule or gate"):
            await made.resume(inputs={letter.task_id: given})
        await app.rules.define(rule("orders", ORDERS, starting(n="{% detail.n %}")))
        await app.redrive([(letter.job_id, letter.task_id)])
        await quiet(app)
        assert await inputs(app) == [{"n": 1}]
        assert await app.dead_letters() == []
        await sound(app)


async def test_a_target_that_is_wrong_for_ever_is_not_tried_again(url: str) -> None:
    async with support.opened(url) as app:
        await app.gates.define({"name": "phase", "members": ["a", "b"], "late": "refuse"})
        await app.gate("phase").arrive("k", "a")
        await app.gate("phase").open("k", reason="hurry", actor="ann")
        await app.submit(job(task("x"), idempotencyKey="taken"))
        for target, said in (
            ({"job": {"name": "{% 'gate:x' %}", "tasks": [{"taskId": "t", "name": "echo"}]}}, "'gate:'"),
            ({"job": {"name": "next", "tasks": [{"taskId": "t", "name": "{% 'ostinato.fire' %}"}]}}, "'ostinato.'"),
            ({"job": {"idempotencyKey": "taken", "tasks": [{"taskId": "t", "name": "echo"}]}}, "'taken' belongs"),
            ({"signal": {"jobId": "nobody", "name": "go"}}, "'nobody'"),
            ({"gate": {"name": "phase", "key": "k", "member": "c"}}, "does not expect 'c'"),
            ({"gate": {"name": "phase", "key": "{% detail.list %}", "member": "a"}}, "key"),
            ({"gate": {"name": "phase", "key": "k", "member": "b"}}, "too late"),
        ):
            await app.rules.define(rule("orders", ORDERS, target))
            [posted] = await app.post_events({"source": "shop", "detail-type": "Order", "detail": {"list": [1]}})
            assert posted.outcome == "recorded"
            letter = await dead_letter(app)
            assert said in letter.error["message"]
            assert letter.attempts == 1
            await (await app.job(letter.job_id)).skip_task(letter.task_id)


async def test_one_target_that_fails_leaves_the_others_alone(url: str) -> None:
    async with support.opened(url) as app:
        targets = [starting("one"), starting("two", n="{% nothing %}"), starting("three")]
        await app.rules.define(rule("orders", ORDERS, *targets))
        await app.post_events(outside())
        assert (await dead_letter(app)).task_id == "target-2"
        await quiet(app)
        assert [len(await started(app, name)) for name in ("one", "two", "three")] == [1, 0, 1]


@pytest.mark.parametrize("depth", ["²", "-1", "9" * 200, "x"])
async def test_tags_of_others_do_no_harm(url: str, depth: str) -> None:
    async with support.opened(url) as app:
        to_nobody = {"signal": {"jobId": "nobody", "name": "go"}}
        await app.rules.define(rule("all", {"detail-type": ["Task Completed"]}, to_nobody))
        assert await run(app, task("a"), tags={"ostinato.depth": depth}) == {"a": {}}
        assert await dead_letter(app)


# --- large and secret ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [30_000, 32_750, 40_000])
async def test_large_outputs(url: str, size: int) -> None:
    """Up to 32 KiB an output is in its event; of one that is kept aside a rule sees where it is kept."""
    async with support.opened(url) as app:
        pattern = {"detail-type": ["Task Completed"], "detail": {"jobName": ["test"]}}
        await app.rules.define(rule("all", pattern, starting(output="{% $type(detail.output.text) %}")))
        aside = pattern | {"detail": {"jobName": ["test"], "output": {"$blob": [{"exists": True}]}}}
        await app.rules.define(rule("aside", aside, starting("aside")))
        await run(app, task("a", input={"text": "x" * size}))
        await support.until(lambda: no_rule_runs(app), "the rules")
        if size > 32 * 1024:
            assert "output" in (await dead_letter(app)).error["message"]
            assert len(await started(app, "aside")) == 1
        else:
            assert await inputs(app) == [{"output": "string"}]
            assert await started(app, "aside") == []


async def no_rule_runs(app: Ostinato) -> bool:
    found = [view for name in ("rule:all", "rule:aside") for view in await started(app, name)]
    return bool(found) and all(view.state != "running" for view in found)


async def test_large_events_are_heard_of(url: str) -> None:
    """Fields that are longer than 32 KiB are not in an own event; those of others are whole."""
    async with support.opened(url) as app:
        pattern = {"detail-type": ["Job Created"], "detail": {"jobName": ["test"], "totalTasks": [2]}}
        given = {"priority": "{% detail.priority %}", "tasks": "{% $exists(detail.tasks) %}"}
        await app.rules.define(rule("all", pattern, starting(**given)))
        await run(app, task("a", input={"text": "x" * 100_000}), task("b"), priority=7)
        await quiet(app)
        assert await inputs(app) == [{"priority": 7, "tasks": False}]
        await app.rules.define(rule("orders", ORDERS, starting("large", n="{% $length(detail.text) %}")))
        await app.post_events([outside(1, detail={"text": "x" * 200_000})])
        await quiet(app)
        assert await inputs(app, "large") == [{"n": 200_000}]
        await sound(app)


async def test_what_events_say_is_never_a_wish_for_a_secret(url: str) -> None:
    """Whoever may post events does not get to see secrets by naming them, in any target."""
    value = "the-value-of-the-secret"
    app = support.make(url, webhooks=True, webhook_networks=("127.0.0.1/32",))
    app.secret_source = {"default.NAME": value, "NAME": value}.get
    seen: list[Any] = []

    @app.function
    async def look(**given: Any) -> None:
        seen.append(given)

    async with web.running() as server, app:
        looking = [{"taskId": "t", "name": "look", "input": {"x": "{% detail.x %}", "own": "secret://NAME"}}]
        whole = [{"taskId": "t", "name": "look", "input": "{% detail %}"}]
        collected = [{"taskId": "t", "name": "look", "input": {"x": "{% aggregate.x.a %}"}}]
        gate = {"name": "phase", "key": "{% detail.key %}", "member": "a", "data": "{% detail %}"}
        await app.gates.define(
            {
                "name": "phase",
                "members": ["a"],
                "aggregate": {"x": {"how": "list"}},
                "trigger": [{"job": {"tasks": collected}}],
            }
        )
        await app.rules.define(
            rule(
                "orders",
                ORDERS,
                {"job": {"tasks": looking}},
                {"job": {"tasks": whole}},
                {"webhook": {"url": server.url, "headers": {"X-A": "{% detail.x %}", "X-B": "secret://NAME"}}},
                {"gate": gate},
            )
        )
        await app.post_events(outside(1, detail={"x": "secret://NAME", "key": "k"}))
        await app.post_events(outside(2, detail={"x": "nothing", "key": "l"}))

        async def ended() -> bool:
            return not await app.jobs(state="running") and len(server.requests) == 2

        await until(ended, "everything")
        assert sorted(request.headers["x-a"] for request in server.requests) == ["nothing", "secret://NAME"]
        assert {request.headers["x-b"] for request in server.requests} == {value}, "the rule itself may ask for it"
        assert all(value.encode() not in request.body for request in server.requests)
        assert [given for given in seen if "own" in given] == [{"x": "nothing", "own": value}]
        assert all(value not in str({**given, "own": ""}) for given in seen)
        letters = await app.dead_letters()
        assert {letter.task_id for letter in letters} == {"target-1", "target-2", "$trigger-1"}
        assert all("secret://" in letter.error["message"] for letter in letters)
        assert value.encode() not in await stored(url)


# --- names of our own -----------------------------------------------------------------------------------------------


async def test_names_of_the_engine_are_not_for_others(url: str) -> None:
    async with support.opened(url) as app:
        for bad in (
            job(task("a"), name="gate:x"),
            job(task("a"), name="rule:x"),
            job(task("a", "ostinato.fire")),
            job(task("a", queue="ostinato.system")),
        ):
            with pytest.raises(errors.InvalidInput, match="engine's own"):
                await app.submit(bad)
            with pytest.raises(errors.InvalidInput, match="engine's own"):
                await app.plan(bad)
        made = await app.submit(job(task("a", external=True)))
        for bad in (task("b", "ostinato.fire"), task("b", queue="ostinato.system")):
            with pytest.raises(errors.InvalidInput, match="engine's own"):
                await made.add_tasks([bad])
        with pytest.raises(errors.InvalidInput, match="engine's own"):
            app.function("ostinato.fire")(lambda: None)
        with pytest.raises(errors.InvalidInput, match="engine's own"):
            app.function("mine", queue="ostinato.system")(lambda: None)
        with pytest.raises(errors.InvalidInput, match="engine's own"):
            await app.rules.define(rule("r", ORDERS, {"job": {"tasks": [{"taskId": "t", "name": "ostinato.open"}]}}))


async def test_an_expression_may_stand_between_blanks(url: str) -> None:
    """As YAML leaves a line end after a block of text. It is checked, and filled in, like any other."""
    async with support.opened(url) as app:
        await app.gates.define({"name": "shops", "members": ["north"], "trigger": []})
        target = {"gate": {"name": "shops", "key": "{% detail.day %}\n", "member": "north", "data": "{% detail %}\n"}}
        await app.rules.define(rule("orders", ORDERS, target))
        await app.post_events(outside(1, detail={"day": "monday"}))
        await quiet(app)
        assert (await app.gate("shops").status("monday")).status == "open"
        bad = {"job": {"tasks": [{"taskId": "t", "name": "echo", "input": {"n": " {% $sum( %}\n"}}]}}
        with pytest.raises(errors.InvalidInput, match="not a valid expression") as caught:
            await app.rules.define(rule("bad", ORDERS, bad))
        assert caught.value.details["field"] == "targets[0].job.tasks[0].input.n"
