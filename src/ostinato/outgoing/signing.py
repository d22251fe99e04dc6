"""Signatures as Standard Webhooks has them: HMAC-SHA256 over the id, the time and the body of a message.

A secret is `whsec_` and its bytes in base64, as the libraries for receivers expect it; any other text stands for its
own bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping

from ostinato import errors

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
PREFIX = "whsec_"
TOLERANCE = 300
"""Seconds that a message may be old, or its clock be ahead: older ones may be replays."""


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers of a signed message."""
    if not re.fullmatch(r"[!-~]+", message_id) or "." in message_id:
        # A full stop would let a receiver take the id for a shorter one and a part of it for the time.
        raise errors.InvalidInput("the id of a message must be printable, without blanks and full stops", field="id")
    signature = f"v1,{_signature(secret, message_id, str(timestamp), body)}"
    return {ID: message_id, TIMESTAMP: str(timestamp), SIGNATURE: signature}


def verify(secret: str, headers: Mapping[str, str], body: bytes, now: float, tolerance: float = TOLERANCE) -> None:
    """For receivers: raise InvalidSignature unless who has the secret sent this body, not long before `now`.

    `body` is the bytes as they came. Remember `webhook-id` for as long as `tolerance`, and a replay does no harm.
    """
    given = {name.lower(): value for name, value in headers.items()}
    if not all(given.get(name) for name in (ID, TIMESTAMP, SIGNATURE)):
        raise errors.InvalidSignature("the message is not signed")
    if not re.fullmatch(r"[0-9]{1,15}", given[TIMESTAMP]) or abs(now - int(given[TIMESTAMP])) > tolerance:
        raise errors.InvalidSignature("the message is too old, or its clock is wrong")
    wanted = _signature(secret, given[ID], given[TIMESTAMP], body).encode()
    # There are several while a secret is being changed. All are compared, whichever fits.
    offered = [entry.partition(",")[2] for entry in given[SIGNATURE].split(" ") if entry.startswith("v1,")]
    fitting = [hmac.compare_digest(wanted, entry.encode("utf-8", "replace")) for entry in offered]
    if not any(fitting):
        raise errors.InvalidSignature


def _signature(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode("utf-8", "replace") + body
    return base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode()


def _key(secret: str) -> bytes:
    try:
        if secret.startswith(PREFIX):
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        else:
            key = secret.encode()
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise errors.InvalidInput("the secret must be whsec_ and base64, or any other text", field="secret")
    return key
