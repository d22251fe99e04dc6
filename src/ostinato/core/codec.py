"""Payloads are JSON and nothing else: exact round trip for what JSON can say, a clear refusal for the rest. Only tuples
and objects with fields are taken for what they are in JSON, lists and objects."""

from __future__ import annotations

import itertools
import re
from typing import Any, cast

import msgspec

from ostinato import errors
from ostinato.core import lossless

_encoder = msgspec.json.Encoder()
_sorted_encoder = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder()

EMPTY_OBJECT = b"{}"

_EXACT = frozenset({str, int, bool, type(None)})
"""What comes back as it is, without a look."""
SMALL = 8

DEEPEST = 256
"""How deep a payload may be nested. Python itself reads 1,000 levels or 10,000, as its version has it, less what it is
deep in calls: what one process has written, every other one is to read, and to look through for secrets."""

_NOT_BRACKETS_OR_QUOTES = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}

_SUSPECT = re.compile("surrogate|truncated")
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2}|[\ud800-\udfff])|\\."
)
"""Whole pairs, halves of one, and other escapes, after which nothing is taken for the beginning of one."""

SEAL_MARK = b"\x01"
"""First byte of an encrypted payload; no JSON text starts with it, and no reference to a blob."""
KEY_ID_BYTES = 16
"""The mark is followed by the id of the key, filled up to this length."""


def encode(value: Any, what: str = "value", limit: int | None = None) -> bytes:
    """Write `value` as JSON, or raise InvalidPayload / PayloadTooLarge naming `what`."""
    try:
        data = _encoder.encode(value)
    except RecursionError:
        raise errors.InvalidPayload(
            f"{what} is nested deeper than {DEEPEST} levels, or refers to itself: flatten it"
        ) from None
    except UnicodeEncodeError:
        raise errors.InvalidPayload(lone_surrogate(what)) from None
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise errors.InvalidPayload(
            f"{what} cannot be written as JSON ({error}): return dicts, lists, strings, numbers, booleans or None"
        ) from None
    if type(value) not in _EXACT and not _is_simple(value) and not _comes_back(value, data):
        lossless.check(value, what)
    if limit is not None and len(data) > limit:
        raise errors.PayloadTooLarge(
            f"{what} has {len(data):,} bytes and the limit is {limit:,}: store it elsewhere and pass a reference",
            size=len(data),
            limit=limit,
        )
    if len(data) > DEEPEST and depth(data, DEEPEST) > DEEPEST:
        raise errors.InvalidPayload(too_deep(what))
    return data


def encode_own(value: Any) -> bytes:
    """Write a document of our own making, whose user-given parts have been through `encode` before."""
    try:
        return _encoder.encode(value)
    except RecursionError:
        raise errors.InvalidPayload(too_deep("the value")) from None
    except UnicodeEncodeError:
        raise errors.InvalidPayload("the value has text with a lone surrogate, which is not valid Unicode") from None


def encode_canonical(value: Any) -> bytes:
    """The same bytes for the same content, whatever the order of its keys."""
    try:
        return _sorted_encoder.encode(value)
    except RecursionError:
        raise errors.InvalidPayload(too_deep("the value")) from None


def decode(data: bytes | str) -> Any:
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError:
        if isinstance(data, bytes) and data[:1] == SEAL_MARK:
            raise cannot_open(data) from None
        raise


def seal_head(key_id: str) -> bytes:
    """How a payload starts that was encrypted with this key."""
    return SEAL_MARK + key_id.encode().ljust(KEY_ID_BYTES, b"\0")


def seal_key_id(stored: bytes) -> str:
    """The id of the key with which a payload was encrypted."""
    return stored[1 : 1 + KEY_ID_BYTES].rstrip(b"\0").decode("ascii", "replace")


def check_open(data: bytes) -> None:
    """Raise DecryptionFailed for a payload that is still sealed where it should have been opened."""
    if data[:1] == SEAL_MARK:
        raise cannot_open(data)


def cannot_open(stored: bytes) -> errors.DecryptionFailed:
    key_id = seal_key_id(stored)
    if not key_id:
        return errors.DecryptionFailed("a stored payload is not encrypted, and only encrypted ones are accepted here")
    return errors.DecryptionFailed(
        f"a payload is encrypted with key {key_id!r} and does not open: give that key (OSTINATO_ENCRYPTION_KEYS); if "
        "it is there, it is another one of the same id, or what is stored was changed or moved",
        keyId=key_id,
    )


def parse(text: bytes | str, what: str = "input") -> Any:
    """Read JSON that came from outside."""
    try:
        found = _decoder.decode(text)
    except RecursionError:
        raise errors.InvalidPayload(too_deep(what)) from None
    except (UnicodeError, msgspec.MsgspecError) as error:
        raise errors.InvalidPayload(why_not_json(text, what, error)) from None
    if len(text) > DEEPEST and depth(text if isinstance(text, bytes) else text.encode(), DEEPEST) > DEEPEST:
        raise errors.InvalidPayload(too_deep(what))
    return found


def depth(text: bytes, enough: int = 0) -> int:
    """How deep JSON text is nested. Not exact where that is not more than `enough`, which is quickly seen."""
    if text.count(b"[") + text.count(b"{") <= enough:
        return 0
    quoted = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NOT_BRACKETS_OR_QUOTES)
    brackets = b"".join(quoted.replace(b'""', b"").split(b'"')[::2])
    return max(itertools.accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def too_deep(what: str) -> str:
    return f"{what} is nested deeper than {DEEPEST} levels: flatten it"


def why_not_json(text: bytes | str, what: str, error: Exception) -> str:
    """Of half a pair that is escaped at the end, the decoder says that the text is cut off."""
    suspect = isinstance(error, UnicodeEncodeError) or _SUSPECT.search(str(error)) is not None
    if suspect and any(match.lastgroup for match in _ESCAPES.finditer(_readable(text))):
        return lone_surrogate(what)
    return f"{what} is not valid JSON: {error}"


def lone_surrogate(what: str) -> str:
    return f"{what} has text with a lone surrogate, which is not valid Unicode: decode the text properly first"


def _readable(text: bytes | str) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def _is_simple(given: Any) -> bool:
    """Whether it is a small object of plain values: to look at these takes half as long as to read them."""
    if type(given) is not dict or len(given) > SMALL:  # pyright: ignore[reportUnknownArgumentType]
        return False
    for key, item in cast("dict[Any, Any]", given).items():
        if type(key) is not str or type(item) not in _EXACT:
            return False
    return True


def _comes_back(value: Any, data: bytes) -> bool:
    """Whether what was written is read as the same value. (To look at all parts of a value takes much longer.)"""
    try:
        return bool(_decoder.decode(data) == value)
    except Exception:  # objects may compare themselves in any way they like
        return False
