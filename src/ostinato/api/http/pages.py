"""The web UI: one page for every address below `/ui/`, and the files that it loads. They are built into the package.

The page is public because a browser cannot send a key with a link; it knows nothing until it has asked with one.
"""

from __future__ import annotations

import functools
import gzip
import mimetypes
import re
import secrets
from pathlib import Path
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

import ostinato
from ostinato.api import routing

HOME = "/ui/"
PATH = "/ui/{path:path}"
BUILT = Path(ostinato.__file__).parent / "_ui"
FILES = "assets/"
NONCE = "NONCE-OF-THIS-ANSWER"
"""What stands in the built page for the nonce that its styles carry. Scripts have none: they are all in files."""
FOR_EVER = "public, max-age=31536000, immutable"
"""The name of a file has a hash of what is in it."""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        "style-src 'self' 'nonce-{nonce}'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Ostinato</title></head>
<body>
<h1>Ostinato</h1>
<p>The server works, but it was installed without its web UI, because there was no npm or no package registry then.
In a clone of the project, <code>make ui</code> builds it; <code>pip install .</code> tells why it cannot.</p>
<p>HTTP is under <code>/v1</code>, which <a href="/v1/openapi.json">/v1/openapi.json</a> describes, and GraphQL at
<code>/graphql</code>. <a href="/readyz">/readyz</a> says whether the server can work.</p>
</body>
</html>
"""
_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


class File(NamedTuple):
    kind: str
    plain: bytes
    packed: bytes


class Pages:
    """Answers everything below `/ui/`. What is built anew is served anew, so that one can work on it."""

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path: str = request.path_params["path"]
        answer = self._file(path[len(FILES) :], request) if path.startswith(FILES) else self._page()
        await answer(scope, receive, send)

    def _page(self) -> Response:
        page = self._folder / "index.html"
        if not page.is_file():
            return HTMLResponse(NOT_BUILT, 503)
        nonce = secrets.token_urlsafe(16)
        text = page.read_text("utf-8").replace(NONCE, nonce)
        return HTMLResponse(text, headers={"Content-Security-Policy": POLICY.format(nonce=nonce)})

    def _file(self, name: str, request: Request) -> Response:
        path = self._folder / "assets" / name
        if not _FILE_NAME.fullmatch(name) or not path.is_file():
            raise HTTPException(404)
        found = _read(path, path.stat().st_mtime_ns)
        packed = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"} | (
            {"Content-Encoding": "gzip"} if packed else {}
        )
        return Response(found.packed if packed else found.plain, headers=headers, media_type=found.kind)


@functools.lru_cache(maxsize=64)
def _read(path: Path, _: int) -> File:
    plain = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return File(kind, plain, gzip.compress(plain, mtime=0))


async def _go_home(scope: Scope, receive: Receive, send: Send) -> None:
    await RedirectResponse(HOME)(scope, receive, send)


routes = routing.Routes()
for _path in ("/", "/ui"):
    routes.asgi("home", _path, _go_home, methods=("GET",), scope=routing.PUBLIC)
routes.asgi("pages", PATH, Pages(), methods=("GET",), scope=routing.PUBLIC)
