"""Events of others, on their way in."""

from __future__ import annotations

from starlette.requests import Request

from ostinato.api import cloud_events, reacting, routing
from ostinato.api.calls import Client, Principal
from ostinato.core import scopes

routes = routing.Routes()


@routes(
    "POST",
    "/v1/events",
    scope=scopes.JOBS_WRITE,
    tag="events",
    takes={
        routing.JSON: (
            reacting.Event
            | reacting.Events
            | reacting.Entry
            | reacting.PutEvents
            | reacting.CloudEvent
            | reacting.CloudEvents
        ),
        cloud_events.STRUCTURED: reacting.CloudEvent,
        cloud_events.BATCHED: reacting.CloudEvents,
    },
)
async def post_events(request: Request, client: Client, principal: Principal) -> reacting.ReceivedEvents:
    """Record events, each once, and let the rules act on them. One that is wrong is refused, the others are taken."""
    given = cloud_events.read(request.headers, await request.body())
    return reacting.ReceivedEvents(await client.post_events(given, actor=principal.actor))
