"""`ostinato ingest` and `ostinato query`: data or a question for the playbook of a domain, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato.reactions import playbooks

Domain = Annotated[str, typer.Argument(metavar="DOMAIN", help="The domain of the playbook.", show_default=False)]
Playbook = Annotated[
    str | None, typer.Option("--playbook", help="Which one, if the domain has several.", metavar="NAME")
]
IdempotencyKey = Annotated[
    str | None, typer.Option("--idempotency-key", help="The same again finds the job of before.", metavar="KEY")
]
JobId = Annotated[
    str | None, typer.Option("--job-id", help="The id of the job, if it is not to be made.", metavar="ID")
]
CorrelationId = Annotated[
    str | None, typer.Option("--correlation-id", help="What the job belongs to, elsewhere.", metavar="ID")
]
Detach = Annotated[bool, typer.Option("--detach", help="Print the id of the job, and do not wait for it.")]


def register(root: typer.Typer) -> None:
    command(root, "ingest")(ingest)
    command(root, "query")(query)


async def ingest(
    settings: Settings,
    domain: Domain,
    source: Annotated[
        str, typer.Argument(metavar="FILE|-", help="The data, a JSON document; - is stdin.", show_default=False)
    ],
    playbook: Playbook = None,
    idempotency_key: IdempotencyKey = None,
    correlation_id: CorrelationId = None,
    job_id: JobId = None,
    detach: Detach = False,
) -> int:
    """Give data to the ingestion playbook of a domain, and print what comes of it."""
    from ostinato.cli import loading
    from ostinato.core import codec

    data = codec.parse(loading.content(source), "stdin" if source == "-" else f"the file {source!r}")
    named = {"playbook": playbook, "idempotency_key": idempotency_key, "correlation_id": correlation_id}
    named["job_id"] = job_id
    return await _play(settings, "ingestion", domain, data, named, detach=detach)


async def query(
    settings: Settings,
    domain: Domain,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The question.", show_default=False)],
    playbook: Playbook = None,
    idempotency_key: IdempotencyKey = None,
    correlation_id: CorrelationId = None,
    job_id: JobId = None,
    detach: Detach = False,
) -> int:
    """Ask the query playbook of a domain, and print its answer."""
    named = {"playbook": playbook, "idempotency_key": idempotency_key, "correlation_id": correlation_id}
    named["job_id"] = job_id
    return await _play(settings, "query", domain, {"question": text}, named, detach=detach)


async def _play(
    settings: Settings, type: playbooks.Type, domain: str, data: Any, named: dict[str, str | None], *, detach: bool
) -> int:
    from ostinato import app as app_
    from ostinato.cli import failures, session
    from ostinato.core import states

    async with session.opened(settings) as app:
        started = await app.playbooks.start(type, domain, data, actor=session.actor(), **named)
        accepted = {"job_id": started.job_id, "playbook": started.playbook, "version": started.version}
        if detach:
            output.document(accepted) if settings.json else output.say(started.job_id)
            return failures.OK
        job = app_.Job(app, started.job_id)
        told = await _follow(job, silent=settings.json)
        state, answer = (await job.info()).state, await _answer(job)
    if settings.json:
        output.document(accepted | {"state": state, "statuses": told, "answer": answer})
    elif answer is not None:
        output.say(output.pretty(answer["synthesized"]))
        for left_out in (*answer["failed"], *answer["skipped"]):
            output.note(f"without {left_out['agent']}: {output.reason(left_out.get('error')) or 'skipped'}")
    if state == states.COMPLETED:
        return failures.OK
    output.note(f"job {started.job_id} is {state}: see `ostinato jobs show {started.job_id}`")
    return failures.FAILED


async def _follow(job: app_.Job, *, silent: bool) -> list[str]:
    """Say how the job stands until it has ended; all that was said."""
    from ostinato.cli import events

    told: list[str] = []
    async for event in events.stream(job):
        if event.type == "Status Published":
            told.append(event.properties["status"])
            if not silent:
                output.note(told[-1])
    return told


async def _answer(job: app_.Job) -> dict[str, Any] | None:
    """What the agents came to; None if it did not get so far."""
    from ostinato import errors
    from ostinato.playbooks import job as stages

    try:
        return (await job.task(stages.SYNTHESIZE)).output
    except errors.NotFound:
        return None
