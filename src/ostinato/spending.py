"""What a tenant has used up, day by day, and by the names of its jobs and functions; and what it may spend."""

from __future__ import annotations

import datetime
import functools
import operator
from typing import Final

from ostinato import errors, views
from ostinato.core import arguments, commands, documents, moments, usage
from ostinato.core.commands import spending
from ostinato.engine import engine

BY: Final = ("day", "name", "function", "step")
_KEYS: Final = {"name": spending.NAME, "function": spending.FUNCTION, "step": spending.STEP}
DAYS: Final = 30
"""How far back to look if nobody says."""
_EPOCH: Final = datetime.date(1970, 1, 1)


async def report(
    running: engine.Engine,
    by: str = "day",
    since: datetime.date | None = None,
    until: datetime.date | None = None,
) -> views.UsageReport:
    """From one day of UTC to another, both included; without them, the last thirty."""
    if by not in BY:
        raise errors.InvalidInput(f"by must be one of {', '.join(BY)}, not {documents.short(by)}", field="by")
    for field, day in (("since", since), ("until", until)):
        if day is not None:
            arguments.day(day, field)
    last = until or moments.moment(running.db.now()).date()
    first = since or last - datetime.timedelta(days=min(DAYS - 1, (last - datetime.date.min).days))
    span = ((first - _EPOCH).days, (last - _EPOCH).days + 1)
    target, tenant = running.store, running.tenant
    if by == "day":
        days = await target.usage_by_day(tenant, *span)
        found = {str(_EPOCH + datetime.timedelta(days=day)): used for day, used in sorted(days.items())}
    else:
        keys = await target.usage_by_key(tenant, _KEYS[by], *span)
        found = dict(sorted(keys.items(), key=lambda item: (-item[1].cost, -item[1].calls, item[0])))
    return views.UsageReport(
        by=by,
        from_=first,
        to=last,
        rows=[views.usage_row(key, used) for key, used in found.items()],
        total=views.usage_view(functools.reduce(operator.add, found.values(), usage.Usage())),
    )


async def budget(running: engine.Engine) -> views.BudgetView:
    found = await running.store.budget(running.tenant)
    return views.BudgetView(
        _money(found.day), _money(found.month), usage.money(found.spent_today), usage.money(found.spent_this_month)
    )


async def set_budget(
    running: engine.Engine, day: float | None, month: float | None, actor: str | None
) -> views.BudgetView:
    """Both at once. What waits for the budget of before looks again, and nobody is asked about that any longer."""
    for question in await running.store.set_budget(running.tenant, *check_budget(day, month)):
        await running.execute(commands.Withdraw(question, "the budget was set", actor))
    running.timers.wake()
    return await budget(running)


def check_budget(day: float | None, month: float | None) -> list[int | None]:
    """Both in millionths, if they are amounts."""
    return [None if given is None else usage.micros(given, name) for name, given in (("day", day), ("month", month))]


def _money(amount: int | None) -> float | None:
    return None if amount is None else usage.money(amount)
