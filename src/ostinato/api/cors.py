"""Which pages of other origins a browser lets talk to this server: those that were allowed by name, and no others.

Keys are sent in a header, never in cookies, so credentials of the browser are not let in, and `*` is not an origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import Scope

METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
EXPOSED = "Allow, Location, Retry-After, WWW-Authenticate, X-Request-Id"
"""What a page may read of the head of an answer, besides what it always may."""
REMEMBERED_SECONDS = 600
_ORIGIN = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


class Cors:
    def __init__(self, origins: Iterable[str]) -> None:
        self.origins = frozenset(map(normal, origins))

    def preflight(self, scope: Scope) -> Response | None:
        """The answer to a browser that asks what a page may do, if that is what this is. It needs no key."""
        if scope["type"] != "http" or scope["method"] != "OPTIONS":
            return None
        headers = Headers(scope=scope)
        if "access-control-request-method" not in headers or self._allowed(headers) is None:
            return None
        said = {
            "Access-Control-Allow-Methods": METHODS,
            "Access-Control-Max-Age": str(REMEMBERED_SECONDS),
            "Vary": "Access-Control-Request-Headers",
        }
        if wanted := headers.get("access-control-request-headers"):
            said["Access-Control-Allow-Headers"] = wanted
        return Response(status_code=204, headers=said)

    def mark(self, scope: Scope, headers: MutableHeaders) -> None:
        """Say on an answer, whatever it is, whether the page that asked may read it."""
        if not self.origins or scope["type"] != "http":
            return
        headers.add_vary_header("Origin")
        origin = self._allowed(Headers(scope=scope))
        if origin is not None:
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = EXPOSED

    def _allowed(self, headers: Headers) -> str | None:
        given = headers.getlist("origin")
        return given[0] if len(given) == 1 and given[0].lower() in self.origins else None


def normal(origin: str) -> str:
    """As browsers write it, but for the case."""
    return origin.lower().rstrip("/")


def is_origin(text: str) -> bool:
    """Whether a browser could say that a page is from there: a scheme, a host and perhaps a port."""
    return _ORIGIN.fullmatch(normal(text)) is not None
