"""What it means that an endpoint did not answer with 200: whether to come again, when, and what to check.

Of the answer only its status and its code are told, never its text: providers like to quote the key in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from ostinato import errors
from ostinato.agents import resets, wire

_CODE = re.compile(r"[a-z][a-z_]{1,63}")
"""Codes look like this; keys, which have digits or capitals in them, do not."""
_FORMAT = re.compile(rb"response_format|json_schema|json_object|structured|guided|schema", re.IGNORECASE)
_CHECKS = {
    400: "check the model and the parameters of the agent, and that the input is not too long for the model",
    401: "check apiKey: it is missing, wrong or revoked",
    402: "check the account of the key: it has to be paid for",
    403: "check apiKey: the key may not use this model, or not from here",
    404: "check baseUrl, which usually ends in /v1, and the name of the model",
    405: "check baseUrl, which usually ends in /v1",
    413: "the input is too long: give less",
    422: "check the model and the parameters of the agent",
}
_USED_UP = ("insufficient_quota", "billing_hard_limit_reached", "credit_balance_too_low")
_HELD_BACK = ("content_filter", "content_policy_violation")
_MAY_PASS = (408, 409, 425, 429)


class Refusal:
    """An answer that is none. Its status may be that of the answer, or the one in its body."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self._error = _error_in(body)
        self._said = body[:4096]
        self.code = next((text for name in ("code", "type") if (text := _code(self._error.get(name)))), None)

    @property
    def is_for_the_format(self) -> bool:
        """Whether the endpoint may be one that only does not know the way in which JSON was asked for."""
        if self.status not in (400, 415, 422, 501) or self.code in _HELD_BACK:
            return False
        return not self._error.get("message") or _FORMAT.search(self._said) is not None

    @property
    def is_for_too_many(self) -> bool:
        return self.status == 429 and self.code not in _USED_UP

    def error(self, host: str) -> errors.OstinatoError:
        """For all but too many calls."""
        said = f"{host} answered {self.status}" + (f" ({self.code})" if self.code else "")
        if self.code in _HELD_BACK:
            return errors.ModelRefused(f"{said}: a filter does not let this input pass", status=self.status)
        if self.code in _USED_UP:
            return errors.CallRejected(f"{said}: the account of the key has nothing left", status=self.status)
        wait = resets.retry_after(self.headers) if self.status >= 500 else None
        if wait is not None:
            return errors.RetryAfter(wait, f"{said}: retry after {wait:g} s")
        if self.status >= 500 or self.status in _MAY_PASS:
            return errors.CallFailed(said, status=self.status)
        if 300 <= self.status < 400:
            return errors.CallRejected(f"{said}: redirects are not followed, check baseUrl", status=self.status)
        check = _CHECKS.get(self.status, "it does not want this request")
        return errors.CallRejected(f"{said}: {check}", status=self.status)


def inside(body: Any) -> int | None:
    """The status in an answer of 200 that is an error all the same, as some gateways send it."""
    if not isinstance(body, dict) or "choices" in body:
        return None
    error = cast("dict[str, Any]", body).get("error")
    if not isinstance(error, dict):
        return None
    status = cast("dict[str, Any]", error).get("code")
    return status if isinstance(status, int) and 400 <= status < 600 else 502


def _error_in(body: bytes) -> dict[str, Any]:
    """`{"error": {…}}` as it should be, or what others send: `{"error": "…"}`, `{"detail": …}`, `{"message": …}`."""
    document = wire.decode(body)
    if not isinstance(document, dict):
        return {}
    given = cast("dict[str, Any]", document)
    error = given.get("error", given)
    if isinstance(error, dict):
        inner = cast("dict[str, Any]", error)
        return inner if "message" in inner else {**inner, "message": inner.get("detail")}
    return {"message": error}


def _code(value: Any) -> str | None:
    return value if isinstance(value, str) and _CODE.fullmatch(value) else None
