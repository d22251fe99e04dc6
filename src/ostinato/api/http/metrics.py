"""What Prometheus reads."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse

from ostinato.api import metrics, routing
from ostinato.api.calls import Principal
from ostinato.core import scopes

routes = routing.Routes()


@routes("GET", "/metrics", scope=scopes.ADMIN, tag="server")
async def show_metrics(request: Request, principal: Principal) -> PlainTextResponse:
    """Numbers about this process and the queues, for Prometheus. They are those of the key's own tenant."""
    counted: metrics.Metrics = request.app.state.metrics
    body = await counted.render(principal.tenant)
    return PlainTextResponse(body, headers={"Content-Type": metrics.CONTENT_TYPE})
