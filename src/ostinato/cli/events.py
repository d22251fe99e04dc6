"""`ostinato events`: the history of one job, or the feed of all of them; and telling of what happened elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output, posting
from ostinato.cli.default_command import WithDefault
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato import views
    from ostinato.core import events as core_events

PAGE = 1000
POLL_SECONDS = 0.2
_EARLIEST, _LATEST = 10**15, 10**16
"""Between 2001 and 2286: a number beyond that is no time in microseconds."""


group = typer.Typer(
    cls=WithDefault,
    help="Show the events of a job, or of all jobs, and post those of others. `events JOB` is `events show JOB`.",
)
posting.register(group)


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="events")


@command(group, WithDefault.default)
async def show(
    settings: Settings,
    job_id: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="The id of the job.", show_default=False)
    ] = None,
    task_id: Annotated[str | None, typer.Option("--task", help="Only of this task.", metavar="TASK")] = None,
    after: Annotated[int, typer.Option("--after", help="Only after this number of the job's stream.", min=0)] = 0,
    everything: Annotated[bool, typer.Option("--all", help="Of all jobs, in the order of their commits.")] = False,
    cursor: Annotated[str | None, typer.Option("--cursor", help="With --all: go on after this place.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on as events happen; with --json, one JSON document to a line.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", help=f"At most this many. [default: {PAGE}]", min=1, max=100_000)
    ] = None,
) -> None:
    """Show the events of a job, or of all jobs.

    Those of a job come from its beginning on; those of --all from a cursor on, or with --follow from now on."""
    from ostinato import errors
    from ostinato.cli import session

    for wrong, sentence in (
        ((job_id is None) != everything, "say which: either a JOB, or --all"),
        (everything and (task_id is not None or after), "--task and --after are for the events of one JOB"),
        (not everything and cursor is not None, "--cursor is for --all: those of a JOB go on --after a number"),
        (follow and limit is not None, "--follow goes on until it is stopped: leave out --limit"),
    ):
        if wrong:
            raise errors.InvalidInput(sentence)
    async with session.opened(settings) as app:
        if everything and follow:
            await _follow_feed(app, cursor, as_json=settings.json)
        elif everything:
            await _show_feed(app, cursor, limit or PAGE, as_json=settings.json)
        else:
            job = await app.job(job_id or "")
            if follow:
                async for event in stream(job, task_id=task_id, after=after):
                    output.json_line(event) if settings.json else output.say(line(event))
            else:
                await _show_stream(job, task_id, after, limit or PAGE, as_json=settings.json)


async def stream(job: app_.Job, *, task_id: str | None = None, after: int = 0) -> AsyncIterator[views.EventView]:
    """The events of a job as they happen, until the job has ended."""
    import asyncio

    from ostinato.cli import session
    from ostinato.core import states

    async def look() -> tuple[bool, list[views.EventView]]:
        ended = (await job.info()).state in states.JOB_ENDED
        return ended, await job.events(task_id=task_id, after=after, most=PAGE)

    while True:
        ended, found = await session.patiently(look)
        for event in found:
            yield event
        if found:
            after = found[-1].seq
        elif ended:
            return
        else:
            await asyncio.sleep(POLL_SECONDS)


async def _show_stream(job: app_.Job, task_id: str | None, after: int, limit: int, *, as_json: bool) -> None:
    found = await job.events(task_id=task_id, after=after, most=limit)
    if as_json:
        output.document({"events": found, "after": found[-1].seq if found else after})
        return
    for event in found:
        output.say(line(event))
    if len(found) == limit:
        output.note(f"more: --after {found[-1].seq}")


async def _show_feed(app: app_.Ostinato, cursor: str | None, limit: int, *, as_json: bool) -> None:
    found = await app.events(cursor=cursor, most=limit)
    last = found[-1].cursor if found else cursor
    if as_json:
        documents = [_document(x.cursor, x.event, x.job_name, x.correlation_id) for x in found]
        output.document({"events": documents, "cursor": last})
        return
    for item in found:
        output.say(_feed_line(item.event, item.job_name))
    if found:
        output.note(f"go on with: --cursor {last}")


async def _follow_feed(app: app_.Ostinato, cursor: str | None, *, as_json: bool) -> None:
    async for item in app.tail(cursor=cursor):
        if as_json:
            output.json_line(_document(item.cursor, item.event, item.job_name, item.correlation_id))
        else:
            output.say(_feed_line(item.event, item.job_name))


def line(event: views.EventView) -> str:
    """One event on one line."""
    parts = [event.at.astimezone().strftime("%H:%M:%S.%f")[:-3], f"{event.seq:>5}", f"{event.type:<20}"]
    if event.task_id is not None:
        parts.append(event.task_id + (f" #{event.attempt}" if event.attempt else ""))
    error = event.properties.get("error")
    about = output.reason(error) if error else output.short(_brief(event.properties), 100)
    return "  ".join([*parts, about]).rstrip()


def _brief(properties: dict[str, Any]) -> str:
    """The properties that fit on a line."""
    return ", ".join(
        f"{k}={output.short(_said(k, v), 40)}"
        for k, v in properties.items()
        if k != "jobId" and v not in (None, {}, [])
    )


def _said(name: str, value: Any) -> Any:
    """A time of the engine's own, which events keep in microseconds, as people write it."""
    from ostinato.core import moments

    if name.endswith("At") and type(value) is int and _EARLIEST <= value < _LATEST:
        return moments.moment(value).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return value


def _feed_line(event: core_events.Event, job_name: str) -> str:
    from ostinato import views

    return f"{event.job_id}  {job_name}  {line(views.event_view(event, ''))}"


def _document(cursor: str, event: core_events.Event, job_name: str, correlation_id: str) -> dict[str, Any]:
    import msgspec

    from ostinato import views

    view: dict[str, Any] = msgspec.to_builtins(views.event_view(event, correlation_id))
    return {"cursor": cursor, "jobName": job_name} | view
