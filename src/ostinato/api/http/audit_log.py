"""The audit log: who did what."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ostinato.api import models, routing
from ostinato.api.calls import Client, Limit
from ostinato.core import scopes

routes = routing.Routes()
Text = Annotated[str | None, Query(min_length=1, max_length=1024, pattern=r"^[^\x00]+$")]


@routes("GET", "/v1/audit-log", scope=scopes.ADMIN, tag="audit log")
async def list_audit_log(
    client: Client,
    actor: Text = None,
    action: Text = None,
    target: Text = None,
    before: Annotated[int, Query(ge=1, lt=2**62, description="Go on where a page ended: its `nextBefore`.")] = 2**62
    - 1,
    limit: Limit = 50,
) -> models.AuditLogPage:
    """List who did what, newest first. Each entry is chained to the one before it by its hash."""
    found = await client.audit_log(actor=actor, action=action, target=target, before=before, most=limit)
    return models.AuditLogPage(found, found[-1].seq if len(found) == limit else None)
