"""The seam for whoever counts: what every transaction of an engine did, without a word about how it is counted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ostinato.core import commands
from ostinato.store import store

log = logging.getLogger("ostinato")


class Commit(NamedTuple):
    """One transaction of a tenant: what was handed in, what came of it, and how long it took."""

    tenant: str
    batch: Sequence[commands.Command]
    outcome: store.Outcome
    seconds: float
    now: int
    """Microseconds since the epoch, on the clock of the database."""


class Observer(Protocol):
    """Hears of transactions on the event loop that made them: it must be quick, and must not wait."""

    def committed(self, commit: Commit) -> None: ...

    def lost(self, tenant: str, leases: int) -> None:
        """So many attempts were taken from workers that are gone."""
        ...


class Observers:
    """Those who listen, usually nobody. One that fails is told of no more, and stops nothing."""

    def __init__(self) -> None:
        self._all: list[Observer] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, observer: Observer) -> None:
        self._all.append(observer)

    def remove(self, observer: Observer) -> None:
        if observer in self._all:
            self._all.remove(observer)

    def committed(self, commit: Commit) -> None:
        for observer in list(self._all):
            try:
                observer.committed(commit)
            except Exception:
                self._give_up(observer)

    def lost(self, tenant: str, leases: int) -> None:
        for observer in list(self._all):
            try:
                observer.lost(tenant, leases)
            except Exception:
                self._give_up(observer)

    def _give_up(self, observer: Observer) -> None:
        log.exception("%s failed and is not told of anything more", type(observer).__name__)
        self.remove(observer)
