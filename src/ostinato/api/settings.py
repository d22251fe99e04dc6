"""How a server is set up."""

from __future__ import annotations

import dataclasses

from ostinato import errors
from ostinato.api import cors
from ostinato.core import documents

FEWEST_CONNECTIONS = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where a server listens, whom it answers, and how much it takes."""

    host: str = "127.0.0.1"
    port: int = 8080
    allowed_hosts: tuple[str, ...] = ()
    """Names under which it is reached, besides its own address and those of this machine."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of pages, besides its own, that may use the API, such as https://ops.example.com."""
    max_body_bytes: int = 1024 * 1024
    max_header_bytes: int = 16 * 1024
    max_json_depth: int = 64
    requests_per_second: float = 100.0
    """For each key. As many may come at once."""
    max_waiting_claims: int = 200
    """Claims of remote workers that may wait for tasks at the same time, for each key."""
    max_tenants: int = 1024
    """Tenants that are kept ready at the same time."""
    max_connections: int = 5000
    """Open at the same time: requests, sockets, and those that say nothing."""
    max_connections_per_address: int = 1000
    """Of one address. All that come through a proxy have its address."""
    shutdown_seconds: int = 10
    """How long requests may go on after the server was told to stop."""

    def __post_init__(self) -> None:
        for field in (
            "max_body_bytes",
            "max_header_bytes",
            "max_json_depth",
            "requests_per_second",
            "max_waiting_claims",
            "max_tenants",
        ):
            if getattr(self, field) <= 0:
                raise errors.InvalidInput(f"{field} must be more than 0", field=field)
        for origin in self.allowed_origins:
            if not cors.is_origin(origin):
                raise errors.InvalidInput(
                    f"{documents.short(origin)} is no origin that can be allowed: write a scheme, a host and perhaps a "
                    "port, such as https://ops.example.com, for each of them",
                    field="allowed_origins",
                )
        for field in ("max_connections", "max_connections_per_address"):
            if getattr(self, field) < FEWEST_CONNECTIONS:
                raise errors.InvalidInput(f"{field} must be {FEWEST_CONNECTIONS} or more", field=field)
