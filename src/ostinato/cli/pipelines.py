"""`ostinato pipelines`: define them, see their moves and how they do, change retry policies, begin what was held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import definitions, output
from ostinato.cli.definitions import Name
from ostinato.cli.items import Retrying, Status, Stuck
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato.cli import applying
    from ostinato.core import retry as retry_

group = typer.Typer(cls=Group, help="Define pipelines, see their moves and how they do.", no_args_is_help=True)

AtVersion = Annotated[
    int | None, typer.Option("--at-version", help="An earlier version.", metavar="N", min=1, show_default=False)
]


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="pipelines")


def _shelf(app: app_.Ostinato) -> applying.AnyShelf:
    return app.pipelines.shelf


def _cells(pipeline: dict[str, Any]) -> list[str]:
    from ostinato.core import courses

    entries = [courses.entry_of(entry) for entry in pipeline["course"]]
    steps = [step.step for entry in entries for step in courses.steps_of(entry)]
    reviews = [entry.review for entry in entries if isinstance(entry, courses.Review)]
    return [f"{len(pipeline['statuses']):,}", output.short(", ".join(steps)), ", ".join(reviews)]


KIND = definitions.Kind("pipeline", _shelf, ["statuses", "steps", "reviews"], _cells)
definitions.register(group, KIND)
definitions.register_show(group, KIND)


@command(group, "moves")
async def moves(
    settings: Settings,
    name: Name,
    version: AtVersion = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="A diagram, for Mermaid.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="With the ways back to begin again.")] = False,
) -> None:
    """Show the legal moves: the database refuses all others."""
    from ostinato.cli import session
    from ostinato.pipelines import diagram

    async with session.opened(settings) as app, definitions.suggesting(KIND, app):
        course = await app.pipelines.course(name, version)
    found = diagram.moves(course)
    if settings.json:
        output.document(found)
        return
    if mermaid:
        output.say(diagram.mermaid(course).rstrip())
        return
    shown = [move for move in found.moves if everything or move.kind != "again"]
    lines = [[_status(m.from_code, m.from_status), _status(m.code, m.status), m.kind] for m in shown]
    output.table(["from", "to", "kind"], lines, none="no moves")
    if len(shown) < len(found.moves):
        output.note(f"{len(found.moves) - len(shown):,} ways back to begin again are left out: --all shows them")


def _status(code: int, name: str | None) -> str:
    return "(entered)" if name is None else f"{code} {name}"


@command(group, "health")
async def health(
    settings: Settings,
    name: Name,
    stuck: Annotated[
        float, typer.Option("--stuck", help="In one status for longer is stuck.", metavar="SECONDS")
    ] = 3600,
) -> None:
    """Show how a pipeline does: what is where, what fails, what takes long, what is stuck and why."""
    from ostinato.cli import session

    async with session.opened(settings) as app, definitions.suggesting(KIND, app):
        found = await app.pipelines.health(name, stuck_seconds=stuck)
        now = session.now(app)
    if settings.json:
        output.document(found)
        return
    output.fields(
        [
            ("items", f"{found.items:,} not over yet"),
            ("retrying", _since(found.retrying, "the next", output.ago(found.next_retry_at, now))),
            ("reviews", _since(found.reviews_waiting, "the oldest", output.ago(found.oldest_review_at, now))),
            ("stuck", f"{found.stuck_count:,}" if found.stuck_count else ""),
            ("over", f"{sum(hour.items for hour in found.throughput):,} in the last 24 h"),
        ]
    )
    output.say("")
    counts = [[f"{one.code} {one.name}", one.phase or "", f"{one.items:,}"] for one in found.statuses if one.items]
    output.table(["status", "phase", "items"], counts, none="no items")
    output.say("")
    steps = [
        [one.step, f"{one.completed:,}", f"{one.failed:,}", _seconds(one.average_seconds), _seconds(one.p95_seconds)]
        for one in found.steps
    ]
    output.table(["step", "completed", "failed", "average", "p95"], steps, none="no steps")
    if found.stuck:
        output.say("")
        stuck_ones = [[one.item_id, one.status, output.ago(one.since, now), one.why] for one in found.stuck]
        output.table(["item id", "stuck in", "since", "why"], stuck_ones, none="")
        if found.stuck_count > len(found.stuck):
            output.say(f"and others: ostinato items ls {name} --stuck {stuck:g} has all {found.stuck_count:,}")


def _since(count: int, which: str, when: str) -> str:
    return f"{count:,}, {which} {when}" if count else ""


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else output.duration(seconds)


@command(group, "retry")
async def retry(
    settings: Settings,
    name: Name,
    step: Annotated[str | None, typer.Argument(metavar="[STEP]", help="Change this one.", show_default=False)] = None,
    attempts: Annotated[
        int | None, typer.Option("--attempts", help="All of them, the first included.", metavar="N")
    ] = None,
    delay: Annotated[float | None, typer.Option("--delay", help="Before the first retry.", metavar="SECONDS")] = None,
    multiplier: Annotated[
        float | None, typer.Option("--multiplier", help="How much longer each next one waits.", metavar="X")
    ] = None,
    longest: Annotated[
        float | None, typer.Option("--max-delay", help="No wait is longer than this.", metavar="SECONDS")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Go back to what the pipeline says.")] = False,
) -> None:
    """Show how often and how soon steps are tried again, or change it: also for items that are under way."""
    from ostinato.cli import session

    given = {"max_attempts": attempts, "base_delay": delay, "multiplier": multiplier, "max_delay": longest}
    changes = {name: value for name, value in given.items() if value is not None}
    _check_asked(step, changes, reset=reset)
    async with session.opened(settings) as app, definitions.suggesting(KIND, app):
        if step is not None and (changes or reset):
            policy = None if reset else await _changed(app, name, step, changes)
            await app.pipelines.set_retry(name, step, policy, actor=session.actor())
        found = await app.pipelines.policies(name) if step is None else [await app.pipelines.policy(name, step)]
    if settings.json:
        output.document({"pipeline": name, "policies": found})
        return
    lines = [
        [
            one.step,
            f"{one.retry.max_attempts}",
            ", ".join(output.duration(one.retry.delay(n)) for n in range(1, min(one.retry.max_attempts, 6))),
            "changed" if one.changed else "",
        ]
        for one in found
    ]
    output.table(["step", "attempts", "waits", ""], lines, none="no steps")


def _check_asked(step: str | None, changes: dict[str, Any], *, reset: bool) -> None:
    from ostinato import errors

    if reset and changes:
        raise errors.InvalidInput("--reset goes back to what the pipeline says: leave out the other options")
    if step is None and (reset or changes):
        raise errors.InvalidInput("say which step is to change: ostinato pipelines retry NAME STEP …")


async def _changed(app: app_.Ostinato, name: str, step: str, changes: dict[str, Any]) -> retry_.Retry:
    import msgspec

    now = (await app.pipelines.policy(name, step)).retry
    if "base_delay" in changes and "max_delay" not in changes:
        changes["max_delay"] = max(now.max_delay, changes["base_delay"])
    return msgspec.structs.replace(now, **changes)


@command(group, "process")
async def process(
    settings: Settings,
    name: Name,
    most: Annotated[int, typer.Option("--most", help="At most this many.", min=1, max=500)] = 100,
    status: Status = None,
    stuck: Stuck = None,
    retrying: Retrying = False,
) -> None:
    """Begin items that were held back, those that wait longest first; or go on with those that match."""
    from ostinato.cli import session
    from ostinato.reactions import item_views

    async with session.opened(settings) as app, definitions.suggesting(KIND, app):
        held = status is None and stuck is None and not retrying
        wanted = item_views.Wanted(status, stuck, retrying, held)
        begun = await app.pipelines.process(name, most, wanted, actor=session.actor())
    if settings.json:
        output.document({"pipeline": name, "items": begun})
        return
    output.say(f"begun: {len(begun):,} item{'' if len(begun) == 1 else 's'}")
