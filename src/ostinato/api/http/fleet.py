"""What can run, and who runs it."""

from __future__ import annotations

from ostinato.api import models, routing
from ostinato.api.calls import Client
from ostinato.core import moments, scopes

routes = routing.Routes()


@routes("GET", "/v1/functions", scope=scopes.JOBS_READ, tag="fleet")
async def list_functions(client: Client) -> models.Functions:
    """List the functions that workers have registered."""
    found = await client.engine.store.functions(client.tenant)
    policies = await client.engine.known_policies()
    return models.Functions(
        [
            models.Function(
                name,
                moments.moment(about["registeredAt"]),
                *policies[name],
            )
            for name, about in found.items()
        ]
    )


@routes("GET", "/v1/workers", scope=scopes.JOBS_READ, tag="fleet")
async def list_workers(client: Client) -> models.Workers:
    """List the workers that have been heard of lately."""
    found = await client.engine.store.workers(client.tenant)
    return models.Workers(
        [
            models.Worker(
                about["workerId"],
                about["alive"],
                moments.moment(about["startedAt"]),
                moments.moment(about["expiresAt"]),
                about.get("host"),
                about.get("pid"),
                about.get("queues", []),
            )
            for about in found
        ]
    )
