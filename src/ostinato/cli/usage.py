"""`ostinato usage` and `ostinato budgets`: what was used up, and what may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ostinato.cli import output
from ostinato.cli.parameters import Group
from ostinato.cli.settings import Settings, command

if TYPE_CHECKING:
    from ostinato import views


budgets = typer.Typer(cls=Group, help="Say what a tenant, or a job, may spend.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    command(root, "usage")(usage)
    root.add_typer(budgets, name="budgets")


async def usage(
    settings: Settings,
    by: Annotated[
        str,
        typer.Option(
            "--by", help="What to sum up by: day, name (of jobs), function, or step (of pipelines).", metavar="WHAT"
        ),
    ] = "day",
    since: Annotated[
        str | None, typer.Option("--from", help="The first day. [default: 29 days before the last]", metavar="DAY")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="The last day. [default: today]", metavar="DAY")] = None,
) -> None:
    """Sum up calls, tokens and cost, by day (of UTC), by the name of jobs, by function, or by step of pipelines."""
    from ostinato.cli import session, times

    first, last = times.read(since, "--from"), times.read(until, "--to")
    async with session.opened(settings) as app:
        found = await app.usage(by, None if first is None else first.date(), None if last is None else last.date())
    if settings.json:
        output.document(found)
        return
    lines = [[row.key, *_cells(row)] for row in found.rows]
    if lines:
        lines.append(["total", *_cells(found.total)])
    output.table([by, "cost", "calls", "tokens in", "tokens out"], lines, none="nothing was used up")


def _cells(used: views.UsageView) -> list[Any]:
    return [output.money(used.cost), f"{used.calls:,}", f"{used.input_tokens:,}", f"{used.output_tokens:,}"]


@command(budgets, "show")
async def show(settings: Settings) -> None:
    """Show what the tenant may spend in a day and in a month (of UTC), and has spent of it."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        _show(settings, await app.budget())


@command(budgets, "set")
async def set_(
    settings: Settings,
    day: Annotated[str | None, typer.Option("--day", help="For a day, or none.", metavar="AMOUNT")] = None,
    month: Annotated[str | None, typer.Option("--month", help="For a month, or none.", metavar="AMOUNT")] = None,
) -> None:
    """Say what the tenant may spend in a day and in a month (of UTC).

    When that is spent, nothing more begins until it is raised, or the next day or month has come."""
    from ostinato import errors
    from ostinato.cli import session

    if day is None and month is None:
        raise errors.InvalidInput("say --day AMOUNT, or --month AMOUNT, or both")
    async with session.opened(settings) as app:
        before = await app.budget()
        found = await app.set_budget(
            day=before.day if day is None else _amount(day, "--day"),
            month=before.month if month is None else _amount(month, "--month"),
            actor=session.actor(),
        )
    _show(settings, found)


@command(budgets, "job")
async def job(
    settings: Settings,
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="The id of the job.", show_default=False)],
    amount: Annotated[
        str, typer.Argument(metavar="AMOUNT", help="What it may cost in all, or none.", show_default=False)
    ],
) -> None:
    """Say what a job may cost.

    What waits because it was used up goes on, if there is enough now."""
    from ostinato.cli import session

    async with session.opened(settings) as app:
        found = await (await app.job(job_id)).set_budget(_amount(amount, "AMOUNT"), actor=session.actor())
    if settings.json:
        output.document({"jobId": job_id, "budget": found.budget, "spent": found.spent})
    else:
        output.say(f"job {job_id}: {output.spent(found.spent, found.budget) or 'nothing'} spent")


def _amount(text: str, option: str) -> float | None:
    from ostinato import errors

    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise errors.InvalidInput(f"{option} {text!r} is not an amount: write 12.50, or none", field=option) from None


def _show(settings: Settings, found: views.BudgetView) -> None:
    if settings.json:
        output.document(found)
        return
    for span, limit, spent in (
        ("day", found.day, found.spent_today),
        ("month", found.month, found.spent_this_month),
    ):
        output.say(f"{span}: " + ("no budget" if limit is None else f"{output.spent(spent, limit)} spent"))
