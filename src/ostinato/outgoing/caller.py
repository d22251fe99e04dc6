"""One POST to an address that a user gave.

The connection goes to an address that was checked; the certificate, SNI and the Host header are those of the name. No
proxy, redirect, cookie, compression or second use of a connection. Errors say what failed, and nothing about the
network in here: no address, no path or query of the URL, nothing of the answer but its status.
"""

from __future__ import annotations

import asyncio
import dataclasses
import email.utils
import hashlib
import re
import ssl
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ostinato import errors
from ostinato.core import graph
from ostinato.outgoing import signing, targets

if TYPE_CHECKING:
    import httpx2  # at run time only when something is called: it takes a while to load

LONGEST_WAIT = 3600.0
"""Seconds that an answer may put off the next attempt."""
MOST_ADDRESSES = 4
"""Of one host, to be tried one after the other."""
RETRYABLE = frozenset({408, 425, 429})
"""Answers below 500 after which the same request may succeed."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~]*")
_OWN = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "idempotency-key", "keep-alive"}
    | {"proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that are ours: those of the connection, and those that would let a body be read in two ways."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CallOptions:
    """What may be called, and how much of an answer is read."""

    allow: tuple[str, ...] = ()
    """Hosts, addresses and networks that may be called though they are not on the internet, also without TLS."""
    max_answer_bytes: int = 1024 * 1024
    ca_file: str | None = None
    """Certificates of an authority of one's own, to be trusted besides those of the system."""


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    """The names are in small letters; what came several times is joined by commas."""
    body: bytes


class Caller:
    """Sends signed requests. It keeps nothing open, and may be used from many tasks at once."""

    def __init__(self, options: CallOptions | None = None, resolver: targets.Resolver = targets.from_system) -> None:
        self._options = options or CallOptions()
        self._guard = targets.Guard(self._options.allow, resolver)
        self._tls: ssl.SSLContext | None = None

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        secret: str | None = None,
        idempotency_key: str | None = None,
        timeout: float = 10.0,
        any_status: bool = False,
    ) -> Answer:
        """POST `body`; the answer has a status of 200 to 299, all others are errors. `timeout` is for all of it.

        `headers` may hold any header, Authorization included, except those of the connection and the signature. The
        body is JSON unless they say otherwise. With a `secret` it is signed; with an `idempotency_key`, which is sent
        as `Idempotency-Key`, its `webhook-id` is the same in every attempt. With `any_status` an answer is an answer,
        for a caller that knows what the server means by it.
        """
        graph.check_seconds(timeout, "timeout")
        target = targets.parse(url)
        sent = {"content-type": "application/json", "user-agent": "ostinato", "accept": "*/*", **_checked(headers)}
        sent |= {"host": target.authority, "accept-encoding": "identity", "connection": "close"}
        sent |= _about(body, secret, idempotency_key)
        ends = asyncio.get_running_loop().time() + timeout
        try:
            async with asyncio.timeout_at(ends):
                found = await self._guard.addresses_of(target)
                return await self._post(target, found[:MOST_ADDRESSES], sent, body, ends, any_status)
        except TimeoutError:
            raise errors.TargetUnreachable(f"{target.host} did not answer within {timeout:g} s") from None

    async def _post(
        self, url: targets.Url, found: list[str], headers: dict[str, str], body: bytes, ends: float, any_status: bool
    ) -> Answer:
        import httpx2

        # Each address has a share of the time, and one is left for the answer. Connecting that is cut off from outside
        # instead would leave a socket behind in the middle of a TLS handshake.
        left = max(ends - asyncio.get_running_loop().time(), 0.001)
        waits = httpx2.Timeout(left, connect=left / (len(found) + 1))
        # A client for one call: a connection that was made for one name must not serve another at the same address.
        transport = httpx2.AsyncHTTPTransport(verify=self._context(), trust_env=False)
        async with httpx2.AsyncClient(transport=transport, timeout=waits, trust_env=False) as client:
            for last, address in enumerate(found, start=1 - len(found)):
                request = httpx2.Request(
                    "POST",
                    httpx2.URL(scheme=url.scheme, host=address, port=url.port, raw_path=url.path.encode()),
                    headers=headers,
                    content=body,
                    extensions={"sni_hostname": url.host, "timeout": waits.as_dict()},
                )
                try:
                    answer = await client.send(request, stream=True, follow_redirects=False)
                except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                    if last == 0:
                        raise errors.TargetUnreachable(_why(url.host, error)) from None
                except httpx2.TimeoutException:
                    raise TimeoutError from None
                except httpx2.HTTPError:
                    raise errors.TargetUnreachable(f"the connection to {url.host} broke off") from None
                else:
                    return await self._read(url.host, answer, any_status)
        raise AssertionError("the last address was neither reached nor given up")

    async def _read(self, host: str, answer: httpx2.Response, any_status: bool) -> Answer:
        import httpx2

        try:
            if not any_status:
                check_status(host, answer)
            body = bytearray()
            async for part in answer.aiter_raw():
                body += part
                if len(body) > self._options.max_answer_bytes:
                    limit = self._options.max_answer_bytes
                    raise errors.CallRejected(
                        f"{host} answered with more than {limit:,} bytes", status=answer.status_code
                    )
        except httpx2.TimeoutException:
            raise TimeoutError from None
        except httpx2.HTTPError:
            raise errors.TargetUnreachable(f"the connection to {host} broke off") from None
        finally:
            await answer.aclose()
        return Answer(answer.status_code, dict(answer.headers), bytes(body))

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
            if self._options.ca_file:
                self._tls.load_verify_locations(self._options.ca_file)
        return self._tls


def _checked(headers: Mapping[str, str] | None) -> dict[str, str]:
    checked: dict[str, str] = {}
    for name, value in (headers or {}).items():
        field = f"headers.{name[:100]}"
        low = name.lower()
        if not _TOKEN.fullmatch(name):
            raise errors.InvalidInput(f"{name[:100]!r} is not the name of a header", field="headers")
        if low in _OWN or low.startswith("webhook-"):
            raise errors.InvalidInput(f"the header {name} is set by Ostinato: leave it out", field=field)
        if not isinstance(value, str) or not _VALUE.fullmatch(value):  # pyright: ignore[reportUnnecessaryIsInstance] - it is a user's
            raise errors.InvalidInput(f"the value of the header {name} must be printable ASCII", field=field)
        checked[low] = value.strip()
    return checked


def _about(body: bytes, secret: str | None, key: str | None) -> dict[str, str]:
    """The headers that let the receiver know a message again, and trust it."""
    headers: dict[str, str] = {}
    message = uuid.uuid4().hex
    if key is not None:
        if not re.fullmatch(r"[!-~]{1,255}", key):
            raise errors.InvalidInput(
                "an idempotency key must be 1 to 255 printable characters", field="idempotencyKey"
            )
        headers["idempotency-key"] = key
        message = hashlib.sha256(key.encode()).hexdigest()[:32]  # a key may hold a full stop, an id may not
    if secret is not None:
        headers |= signing.sign(secret, f"msg_{message}", int(time.time()), body)
    return headers


def check_status(host: str, answer: httpx2.Response) -> None:
    """Raise what an answer that is not a success means for whoever called."""
    status = answer.status_code
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise errors.CallRejected(f"{host} answered {status}: redirects are not followed", status=status)
    said = f"{host} answered {status}"
    seconds = retry_after(answer.headers.get("retry-after", "")) if status in (429, 503) else None
    if seconds is not None:
        raise errors.RetryAfter(seconds, f"{said}: retry after {seconds:g} s")
    if status >= 500 or status in RETRYABLE:
        raise errors.CallFailed(said, status=status)
    raise errors.CallRejected(said, status=status)


def retry_after(value: str) -> float | None:
    """Seconds from a header that holds them or a date: at least one, at most an hour; None if it holds neither."""
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,15}", value):
        seconds = float(value)
    else:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 1.0), LONGEST_WAIT)


def _why(host: str, error: BaseException) -> str:
    cause: Any = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate of {host} could not be verified"
        if isinstance(cause, ssl.SSLError):
            return f"{host} does not speak TLS as it should"
        cause = cause.__cause__ or cause.__context__
    return f"{host} could not be reached"
