"""The seam between the store's verbs and the two databases.

A verb is a *script*: a generator that yields statements and receives their rows. A driver runs a whole script as one
transaction: SQLite on its writer thread without leaving it, PostgreSQL with a round trip for each statement. So the
logic of a verb is written once, and neither knows nor cares which database it talks to.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from ostinato.store import inspection

T = TypeVar("T")
Row = Sequence[Any]


class Fetch(NamedTuple):
    """Run one named query and give back its rows. A list argument goes in as a set of rows."""

    block: str
    args: dict[str, Any]


class Load(NamedTuple):
    """Read what a transition needs: ready tasks to choose from, jobs, tasks, and the tasks that wait for `ups`.

    The jobs are those named, and those of the candidates; likewise the tasks. Of candidates of jobs that are `known`
    only the keys are read. The answer is one `Loaded`.
    """

    tenant: str
    queues: list[str]
    names: list[str]
    most: int
    job_ids: list[str]
    keys: list[tuple[str, str]]
    ups: list[tuple[str, str]]
    known: list[str]


class Loaded(NamedTuple):
    """`edges` are (job, up, down) for the tasks that wait for `ups`."""

    candidates: list[tuple[str, str]]
    jobs: list[Row]
    tasks: list[Row]
    edges: list[Row]


class Run(msgspec.Struct, frozen=True):
    """Run named writes in order, each over many rows. They must not touch the same row twice in one `Run`.

    The driver counts what the guarded ones changed (`tables.GUARDED`), and takes everything back if it is not all.
    """

    writes: list[tuple[str, list[tuple[Any, ...]]]]


Script = Generator[Fetch | Load | Run, Any, T]


def fetch(block: str, **args: Any) -> Fetch:
    return Fetch(block, args)


class Database(Protocol):
    """What a driver offers. `now` is microseconds since the epoch on the clock that all processes share."""

    dialect: str
    before_commit: Callable[[], None] | None
    after_commit: Callable[[], None] | None
    """Hooks for the test kit, which crashes there."""

    def now(self) -> int: ...

    async def open(self, *, migrate: bool) -> None: ...

    async def close(self) -> None: ...

    async def write(
        self,
        script: Callable[[], Script[T]],
        *,
        optimistic: bool = False,
        brief: bool = False,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        """Run the script in one durable transaction, all or nothing. It may be run again if others got in the way.

        An optimistic script ends in one `Run` that says which versions of the jobs it has seen: then a driver need not
        hold locks from the first read on. A brief one writes a few rows: it may be run on the spot. `committed` hears
        of the commit before the next script begins.
        """
        ...

    async def read(
        self,
        script: Callable[[], Script[T]],
        *,
        snapshot: bool = True,
        brief: bool = False,
        long: bool = False,
    ) -> T:
        """Run a script that only reads; all of it on one snapshot, unless it has but one statement or needs none.

        A brief one looks up a few rows: it may be run on the spot, where going elsewhere would take longer. A long one
        takes time in proportion to a history, and stands in line with others like it, so that quick ones never wait.
        """
        ...

    def seen_by(self, tenant: str) -> Database:
        """The same database, of which a read shows nothing of other tenants, whatever it asks for.

        This very one where the database knows no such wall."""
        ...

    async def changed(self, timeout: float, *, eager: bool = False) -> bool:
        """Wait until another process may have committed something, at most `timeout` seconds.

        An eager caller wants to know within milliseconds, even if that means looking more often.
        """
        ...

    def announce(self) -> None:
        """Tell other processes, at once but only a few times a second, that something was committed."""
        ...

    async def settings(self) -> dict[str, Any]:
        """Versions and durability settings, for `doctor`."""
        ...

    async def damage(self, seconds: float) -> inspection.Damage:
        """Look for damage, at most for so long, beside all work."""
        ...
