"""`ostinato items`: enter them, see where they stand and why, decide on them, and begin them again."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ostinato.cli import output
from ostinato.cli.asking import DryRun, Yes
from ostinato.cli.jobs import Cursor, Reason
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import app as app_
    from ostinato.reactions import bulk as bulk_

group = typer.Typer(
    cls=Group, help="Enter items of pipelines, see where they stand, and act on them.", no_args_is_help=True
)

Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="The name of the pipeline.", show_default=False)]
ItemId = Annotated[str, typer.Argument(metavar="ITEM", help="The id of the item.", show_default=False)]
Payload = Annotated[str | None, typer.Option("--payload", help="What it is to be about instead.", metavar="JSON")]
Notes = Annotated[str | None, typer.Option("--notes", help="Why, for the history.", metavar="TEXT")]
Version = Annotated[int | None, typer.Option("--to-version", help="Of the pipeline.", metavar="N", min=1)]
Status = Annotated[str | None, typer.Option("--status", help="By name, or by code.", metavar="STATUS")]
Stuck = Annotated[
    float | None, typer.Option("--stuck", help="Not over, and in their status for longer.", metavar="SECONDS")
]
Retrying = Annotated[bool, typer.Option("--retrying", help="The next attempt is due at a time.")]
Held = Annotated[bool, typer.Option("--held", help="Entered, and never run.")]
Only = Annotated[bool, typer.Option("--only", help="Run that step, and nothing after it.")]


def register(root: typer.Typer) -> None:
    root.add_typer(group, name="items")


@contextlib.asynccontextmanager
async def _opened(settings: Settings) -> AsyncGenerator[app_.Ostinato]:
    from ostinato.cli import definitions, pipelines, session

    async with session.opened(settings) as app, definitions.suggesting(pipelines.KIND, app):
        yield app


# --- entering and looking -----------------------------------------------------------------------------------------


@command(group, "enter")
async def enter(
    settings: Settings,
    pipeline: Pipeline,
    source: Annotated[str, typer.Argument(metavar="FILE|-", help="A payload of JSON; - is stdin.", show_default=False)],
    item_id: Annotated[str | None, typer.Option("--id", help="Of the item; else it gets one.", metavar="ID")] = None,
    many: Annotated[
        bool, typer.Option("--many", help="A list of payloads, or one to a line, or {itemId, payload} each.")
    ] = False,
    hold: Annotated[bool, typer.Option("--hold", help="Do nothing with it until it is processed.")] = False,
) -> None:
    """Enter an item, or many. The same again changes nothing."""
    from ostinato.cli import session
    from ostinato.reactions import pipelines

    new = _new(source, item_id, many=many)
    async with _opened(settings) as app:
        found = await app.pipelines.enter_many(
            pipeline, [pipelines.NewItem(payload, one) for one, payload in new], hold=hold, actor=session.actor()
        )
    if settings.json:
        output.document({"pipeline": pipeline, "items": found})
        return
    for one in found:
        output.say(one.item_id if one.created else f"{one.item_id} (was there before)")


def _new(source: str, item_id: str | None, *, many: bool) -> list[tuple[str | None, Any]]:
    """(id, payload) of each."""
    from ostinato import errors
    from ostinato.cli import loading, posting
    from ostinato.core import codec

    if not many:
        what = "the payload on stdin" if source == "-" else f"the file {source!r}"
        return [(item_id, codec.parse(loading.content(source), what))]
    if item_id is not None:
        raise errors.InvalidInput("--id is for one item: write {itemId, payload} for each of many")
    found: list[tuple[str | None, Any]] = []
    for document in posting.documents(source):
        given = cast("dict[str, Any]", document) if isinstance(document, dict) else {"": None}
        named = given.keys() <= {"itemId", "payload"}
        found.append((given.get("itemId"), given.get("payload")) if named else (None, cast("Any", document)))
    return found


@command(group, "ls")
async def ls(
    settings: Settings,
    pipeline: Pipeline,
    status: Status = None,
    stuck: Stuck = None,
    retrying: Retrying = False,
    held: Held = False,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=500)] = 50,
    cursor: Cursor = None,
) -> None:
    """List items, newest first; those in one status, stuck, retried or held, longest first."""
    from ostinato.cli import session
    from ostinato.reactions import item_views

    async with _opened(settings) as app:
        wanted = item_views.Wanted(status, stuck, retrying, held)
        found = await app.pipelines.views(pipeline, wanted, cursor=cursor, most=limit)
        now = session.now(app)
    if settings.json:
        output.document({"items": list(found), "cursor": found.cursor})
        return
    lines = [
        [one.item_id, f"{one.code} {one.status}", output.ago(one.status_at, now), f"{one.run}", one.sentence]
        for one in found
    ]
    output.table(["item id", "status", "since", "run", ""], lines, none="no items")
    if found.cursor is not None:
        output.note(f"more: --cursor {found.cursor}")


@command(group, "show")
async def show(settings: Settings, item_id: ItemId) -> None:
    """Show where an item stands and why, its payload and results, its attempts and runs."""
    from ostinato.cli import item_screens, session

    async with _opened(settings) as app:
        found = await app.pipelines.detail(item_id)
        now = session.now(app)
    output.document(found) if settings.json else item_screens.show(found, now)


@command(group, "history")
async def history(
    settings: Settings,
    item_id: ItemId,
    after: Annotated[int, typer.Option("--after", help="Only moves after this number.", min=0)] = 0,
    limit: Annotated[int, typer.Option("--limit", help="At most this many.", min=1, max=500)] = 100,
) -> None:
    """List the moves of an item in order: from where to where, when, by whom and why."""
    from ostinato.cli import item_screens, session

    async with _opened(settings) as app:
        found = await app.pipelines.moves(item_id, after=after, most=limit)
        now = session.now(app)
    if settings.json:
        output.document({"itemId": item_id, "moves": list(found), "after": found.cursor and int(found.cursor)})
        return
    item_screens.show_moves(found, now)
    if found.cursor is not None:
        output.note(f"more: --after {found.cursor}")


# --- acting on one ------------------------------------------------------------------------------------------------


@command(group, "restart")
async def restart(
    settings: Settings,
    item_id: ItemId,
    at: Annotated[
        str | None, typer.Argument(metavar="[STEP|STATUS]", help="Where; else where it has got to.", show_default=False)
    ] = None,
    only: Only = False,
    payload: Payload = None,
    version: Version = None,
    reason: Reason = None,
) -> None:
    """Begin an item again at a step or a status. What was done before that place is not done again."""
    from ostinato.cli import session

    async with _opened(settings) as app:
        await app.pipelines.restart(
            item_id,
            at,
            only=only,
            payload=_given(payload),
            version=version,
            actor=session.actor(),
            reason=reason,
        )
        await _tell(settings, app, item_id)


@command(group, "decide")
async def decide(
    settings: Settings,
    item_id: ItemId,
    decision: Annotated[
        str, typer.Argument(metavar="DECISION", help="approve, reject, or what the review knows.", show_default=False)
    ],
    notes: Notes = None,
    payload: Payload = None,
) -> None:
    """Decide on an item in its review."""
    from ostinato.cli import session

    async with _opened(settings) as app:
        done = await app.pipelines.decide(
            item_id,
            decision,
            actor=session.actor(),
            called=session.user(),
            notes=notes,
            payload=_given(payload),
        )
        if settings.json:
            output.document({"itemId": item_id, "answer": done, "item": await app.pipelines.view(item_id)})
            return
        if done.state == "waiting":
            output.note(f"{done.approvals} of {done.quorum} have approved")
        await _tell(settings, app, item_id)


@command(group, "move")
async def move(
    settings: Settings,
    item_id: ItemId,
    status: Annotated[str, typer.Argument(metavar="STATUS", help="Where to.", show_default=False)],
    payload: Payload = None,
    reason: Reason = None,
) -> None:
    """Move an item by hand: take it for review, begin to edit it, or as its pipeline allows beside the course."""
    from ostinato.cli import session

    async with _opened(settings) as app:
        me, called = session.actor(), session.user()
        await app.pipelines.move(item_id, status, payload=_given(payload), reason=reason, actor=me, called=called)
        await _tell(settings, app, item_id)


@command(group, "roll-back")
async def roll_back(settings: Settings, item_id: ItemId, reason: Reason = None, yes: Yes = False) -> int:
    """Give an item up: its run ends, and what its steps did is taken back where they say how."""
    from ostinato.cli import asking, failures, session

    async with _opened(settings) as app:
        if not yes:
            found = await app.pipelines.view(item_id)
            asking.check_can_ask(settings, f"item {item_id!r} is {found.status}: confirm with --yes")
            if not typer.confirm(f"give item {item_id}, which is {found.status}, up?"):
                return failures.FAILED
        await app.pipelines.roll_back(item_id, actor=session.actor(), reason=reason)
        await _tell(settings, app, item_id)
    return failures.OK


@command(group, "migrate")
async def migrate(
    settings: Settings,
    item_id: ItemId,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="Of the pipeline.", min=1, show_default=False)],
    dry_run: DryRun = False,
) -> None:
    """Let an item go on in another version of its pipeline, in the status that it has."""
    from ostinato.cli import session

    async with _opened(settings) as app:
        await app.pipelines.migrate(item_id, version, actor=session.actor(), dry_run=dry_run)
        if dry_run and not settings.json:
            output.say(f"item {item_id} can go on in version {version}")
            return
        await _tell(settings, app, item_id)


async def _tell(settings: Settings, app: app_.Ostinato, item_id: str) -> None:
    found = await app.pipelines.view(item_id)
    if settings.json:
        output.document({"item": found})
    else:
        output.say(f"{item_id} is {found.code} {found.status}, in run {found.run} of version {found.version}")


def _given(payload: str | None) -> Any:
    import msgspec

    from ostinato.cli import loading

    return msgspec.UNSET if payload is None else loading.value(payload, "--payload")


# --- acting on many -----------------------------------------------------------------------------------------------


@command(group, "bulk")
async def bulk(
    settings: Settings,
    pipeline: Pipeline,
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help="restart, decide, migrate, roll-back or move.", show_default=False)
    ],
    status: Status = None,
    stuck: Stuck = None,
    retrying: Retrying = False,
    held: Held = False,
    at: Annotated[str | None, typer.Option("--at", help="Where to restart.", metavar="STEP|STATUS")] = None,
    only: Only = False,
    decision: Annotated[str | None, typer.Option("--decision", help="What to decide.", metavar="DECISION")] = None,
    notes: Notes = None,
    to: Annotated[str | None, typer.Option("--to", help="Where to move.", metavar="STATUS")] = None,
    version: Version = None,
    reason: Reason = None,
    most: Annotated[int, typer.Option("--most", help="At most this many.", min=1, max=500)] = 100,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Do something with all items that match, after showing what would become of each.

    The exit code is 1 if any of them was refused."""
    from ostinato.cli import failures, session
    from ostinato.core import filters
    from ostinato.reactions import bulk as bulk_
    from ostinato.reactions import item_views

    what = bulk_.Bulk(
        action=filters.one_of(action, bulk_.ACTIONS, "action"),  # pyright: ignore[reportArgumentType]
        at=at,
        only=only or None,
        decision=decision,
        notes=notes,
        status=to,
        version=version,
        reason=reason,
    )
    wanted = item_views.Wanted(status, stuck, retrying, held)
    async with _opened(settings) as app:

        async def run(dry_run: bool) -> bulk_.Done:
            return await app.pipelines.bulk(
                pipeline, wanted, what, dry_run=dry_run, most=most, actor=session.actor(), called=session.user()
            )

        if dry_run or not yes:
            tried = await run(True)
            if dry_run:
                return _tell_all(settings, tried)
            if not _confirmed(settings, tried):
                return failures.FAILED
        return _tell_all(settings, await run(False))


def _tell_all(settings: Settings, done: bulk_.Done) -> int:
    from ostinato.cli import failures, item_screens

    output.document(done) if settings.json else item_screens.show_done(done)
    return failures.OK if done.possible == done.matched else failures.FAILED


def _confirmed(settings: Settings, tried: bulk_.Done) -> bool:
    from ostinato.cli import asking, item_screens

    what = f"{tried.action} of {tried.possible:,} of {tried.matched:,} items"
    asking.check_can_ask(settings, f"{what} would be done: confirm with --yes, or look with --dry-run")
    item_screens.show_done(tried)
    return typer.confirm(f"do it ({what})?")
