"""Rules in use: saved, tried out, looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.core import codec, moments, patterns
from ostinato.reactions import definitions, events
from ostinato.rules import definition

KIND = "rule"


class Rules(definitions.Kept[definition.Rule]):
    """The rules of a tenant: `app.rules`. Within a second every process goes by a change."""

    def __init__(self, app: definitions.Application) -> None:
        self._app = app
        self.shelf = definitions.Shelf(app, KIND, definition.read, definition.expressions)

    async def matching(self, event: Mapping[str, Any]) -> list[str]:
        """Which rules an event, of others or of the engine itself, would concern. Nothing happens."""
        running = self._app.engine
        event = events.shape(event, running.tenant, moments.text(running.db.now()), "event")
        found: list[str] = []
        for stored in await self.shelf.all():
            rule: dict[str, Any] = codec.decode(stored.document or b"{}")
            if rule.get("enabled", True) and patterns.compile(rule["pattern"], saved=True).matches(event):
                found.append(stored.name)
        return found
