"""Short ways to say what the tests of gates and rules say often."""

from __future__ import annotations

from typing import Any

from ostinato import Ostinato, audit
from tests.engine.support import until


async def started(app: Ostinato, name: str = "next") -> list[Any]:
    """Jobs of a name, newest first."""
    return list(await app.jobs(name=name))


async def quiet(app: Ostinato) -> None:
    """Wait until nothing runs any more."""

    async def idle() -> bool:
        return not await app.jobs(state="running", most=1)

    await until(idle, "everything")


async def sound(app: Ostinato) -> None:
    report = await audit.audit(app.engine.store)
    assert not report.problems, report.problems[:3]
