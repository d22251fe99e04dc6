"""The table of what is encrypted is true: a word is planted in all that it lists, and looked for in the database."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ostinato import Context, Keyring, Retry, testing
from tests.engine.test_encryption import ONE, stored
from tests.index.support import AGENT, change
from tests.pipelines.support import Newsroom, publishing

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "security.md"
LARGE = 40_000
PLANTED = {
    "inputs and outputs of tasks": ("input", "output"),
    "messages and tracebacks of errors": ("message", "traceback"),
    "results of steps": ("stepresult",),
    "payloads of signals": ("signalpayload",),
    "payloads of approvals, and notes of decisions": ("asked", "notes", "ctxtitle"),
    "payloads of items": ("item", "moved"),
    "data of all events, and received events": ("published", "received"),
    "documents and texts of saved results": ("document",),
    "payloads that are large": ("large",),
    "names of jobs": ("jobname", "function", "queue", "stepname", "signalname", "taskid", "jobid"),
    "tags, correlation and request ids": ("tag", "correlation", "request", "idempotency"),
    "what a task says of how it is run": ("status", "title", "approver"),
    "types of errors": ("Kind",),
    "definitions": ("member", "constant", "prompt"),
    "who submitted": ("submitter", "reviewer"),
    "the audit log": ("reason",),
    "names, tags and correlation ids of executions elsewhere": ("execution", "executiontag"),
    "names of API keys": ("keyname",),
    "states, times, counts, sizes": (),
}
"""By the beginning of a row, the words that are planted in what it speaks of."""


def word(kind: str) -> str:
    return f"Planted{kind}Word"


def make(url: str, keyring: Keyring | None) -> Newsroom:
    room = Newsroom(url, queues=("default", word("queue")))
    app = room.app
    app.keyring = keyring
    kind = type(word("Kind"), (Exception,), {})

    @app.function(word("function"), queue=word("queue"), retry=Retry(max_attempts=1))
    async def work(ctx: Context, said: Any = None) -> Any:
        await ctx.step(word("stepname"), lambda: word("stepresult"))
        await ctx.wait_for(word("signalname"))
        await ctx.publish(word("published"))
        return [word("output"), word("large") * LARGE]

    @app.function(retry=Retry(max_attempts=1))
    async def bad() -> None:
        def fail() -> None:
            raise ValueError(word("message"))

        fail.__code__ = fail.__code__.replace(co_name=word("traceback"))
        fail()

    @app.function(retry=Retry(max_attempts=1))
    async def kinds() -> None:
        raise kind("of its own")

    @app.function
    async def asks(ctx: Context) -> None:
        await ctx.approve(word("ctxtitle"), payload=word("asked"))

    return room


async def plant(kit: testing.Kit) -> None:
    app = kit.app
    approval = {"title": word("title"), "approvers": [word("approver")]}
    await app.submit(
        {
            "jobId": word("jobid"),
            "name": word("jobname"),
            "tags": {"of": word("tag")},
            "correlationId": word("correlation"),
            "requestId": word("request"),
            "idempotencyKey": word("idempotency"),
            "tasks": [
                {
                    "taskId": word("taskid"),
                    "name": word("function"),
                    "input": {"said": word("input")},
                    "statuses": {"completed": word("status")},
                },
                {"taskId": "bad", "name": "bad"},
                {"taskId": "kinds", "name": "kinds"},
                {"taskId": "asks", "name": "asks"},
                {"taskId": "review", "name": "people", "approval": approval},
            ],
        },
        actor=word("submitter"),
    )
    await app.signal(word("jobid"), word("signalname"), word("signalpayload"))
    await kit.run_until_idle()
    await app.approvals.decide(word("jobid"), "asks", "approve", actor="ann", notes=word("notes"))
    await app.post_events([{"source": "s", "id": "1", "detail-type": "t", "detail": {"said": word("received")}}])
    await app.results.save(word("jobid"), {"summary": word("document")})
    job = {"tasks": [{"taskId": "t", "name": "bad", "input": {"said": word("constant")}}]}
    await app.gates.define({"name": "gate", "members": [word("member")], "trigger": [{"job": job}]})
    await app.note("ann", "gates.open", "gate", reason=word("reason"))
    await app.index.report([change(name=word("execution"), tags=AGENT | {"of": word("executiontag")})])
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    model = {"model": "m", "baseUrl": "https://models.example", "system": word("prompt")}
    await app.playbooks.define_agent({"name": "writer", "outputSchema": schema, "kind": "llm", "llm": model})
    await app.pipelines.define(publishing())
    await app.pipelines.enter("publishing", {"title": word("item")}, item_id="a1")
    await kit.run_until_idle()
    await app.pipelines.move("a1", "in_review", actor="rita", reason=word("moved"))
    await app.pipelines.decide("a1", "approve", actor=word("reviewer"))
    await app.engine.store.create_key(app.tenant, word("keyname"), frozenset({"jobs:read"}))
    await kit.run_until_idle()


def rows() -> dict[str, str]:
    found = re.findall(r"^\| (.+?) \| (encrypted|readable) \|$", PAGE.read_text(), re.MULTILINE)
    return dict(found)


async def test_the_table_of_what_is_encrypted_is_true(url: str) -> None:
    """S-6: what the table calls encrypted is in no file and in no row, and what it calls readable is."""
    table = {start: how for text, how in rows().items() for start in PLANTED if text.startswith(start)}
    assert len(rows()) == len(PLANTED) == len(table), "each row is about something that is planted"
    async with testing.open(make(url, Keyring({"one": ONE})).app) as kit:
        await plant(kit)
        there = await stored(url)
    for start, kinds in PLANTED.items():
        for kind in kinds:
            assert (word(kind).encode() in there) == (table[start] == "readable"), (start, kind)


async def test_without_keys_every_word_is_there(url: str) -> None:
    """What is not found with keys has been planted."""
    async with testing.open(make(url, None).app) as kit:
        await plant(kit)
        there = await stored(url)
    assert [kind for kinds in PLANTED.values() for kind in kinds if word(kind).encode() not in there] == []
