"""Payload encryption at rest: a ring of AES-256-GCM keys, and what a sealed payload looks like.

A sealed payload is a mark that no JSON text starts with, the id of its key, a random nonce, and the ciphertext with its
tag. What it belongs to (tenant, job, kind, place) is authenticated with it, so that it opens in its own place only.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from ostinato import errors
from ostinato.core import codec

VARIABLE = "OSTINATO_ENCRYPTION_KEYS"
KEY_BYTES = 32
NONCE_BYTES = 12

_KEY_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{codec.KEY_ID_BYTES - 1}}}", re.ASCII)


class Keyring:
    """Keys by id. The first one encrypts, all of them decrypt.

    Payloads that were stored before encryption was on stay readable, until `accept_plain` is False.
    """

    def __init__(self, keys: Mapping[str, bytes], *, accept_plain: bool = True) -> None:
        if not keys:
            raise errors.InvalidInput("a keyring needs at least one key", field="encryption")
        for key_id, key in keys.items():
            _check(key_id, key)
        from cryptography.hazmat.primitives.ciphers import aead  # only where encryption is on

        self._ciphers: dict[str, Any] = {key_id: aead.AESGCM(key) for key_id, key in keys.items()}
        self.ids = tuple(keys)
        self.accept_plain = accept_plain
        self.head = codec.seal_head(self.ids[0])
        """How everything starts that is sealed with the first key."""
        self._seal: Callable[[bytes, bytes, bytes], bytes] = self._ciphers[self.ids[0]].encrypt

    def __repr__(self) -> str:
        return f"<Keyring {', '.join(self.ids)}>"

    @classmethod
    def parse(cls, text: str) -> Keyring:
        """Read `id:base64,id2:base64`, first key first."""
        keys: dict[str, bytes] = {}
        for number, part in enumerate(text.split(","), 1):
            key_id, separator, encoded = part.strip().partition(":")
            try:
                key = base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                key = b""
            if not separator or len(key) != KEY_BYTES:
                raise errors.InvalidInput(
                    f"encryption key {number} must be ID:KEY with {KEY_BYTES} bytes of base64: make one with "
                    "`ostinato encryption new-key ID`",
                    field="encryption",
                )
            if key_id in keys:
                raise errors.InvalidInput(f"there are two encryption keys of the id {key_id!r}", field="encryption")
            keys[key_id] = key
        return cls(keys)

    @classmethod
    def from_environment(cls) -> Keyring | None:
        """The keys in `$OSTINATO_ENCRYPTION_KEYS`; None if it is not set."""
        text = os.environ.get(VARIABLE)
        return cls.parse(text) if text else None

    def seal(self, data: bytes, about: bytes) -> bytes:
        """Encrypt with the first key. Bytes that are sealed already are left as they are."""
        if data[:1] == codec.SEAL_MARK:
            return data
        nonce = os.urandom(NONCE_BYTES)
        return self.head + nonce + self._seal(nonce, data, self.head + about)

    def open(self, stored: bytes, about: bytes) -> bytes:
        """Decrypt, or raise DecryptionFailed. Plain bytes are what they are, if plain is accepted."""
        if stored[:1] != codec.SEAL_MARK:
            if self.accept_plain:
                return stored
            raise codec.cannot_open(codec.SEAL_MARK)
        cipher = self._ciphers.get(codec.seal_key_id(stored))
        if cipher is None:
            raise codec.cannot_open(stored)
        start = len(self.head)
        try:
            return cipher.decrypt(
                stored[start : start + NONCE_BYTES], stored[start + NONCE_BYTES :], stored[:start] + about
            )
        except Exception:  # InvalidTag, or too short to have one: either way it is not what was sealed here
            raise codec.cannot_open(stored) from None


def new_key() -> bytes:
    return os.urandom(KEY_BYTES)


def address(_: bytes) -> bytes:
    """Where to keep a large payload that is sealed: a digest would tell which ones are equal."""
    return os.urandom(32)


def _check(key_id: str, key: bytes) -> None:
    if not _KEY_ID.fullmatch(key_id):
        raise errors.InvalidInput(
            f"the id of an encryption key must be 1 to {codec.KEY_ID_BYTES} letters, digits, . _ or -",
            field="encryption",
        )
    if len(key) != KEY_BYTES:
        raise errors.InvalidInput(f"encryption key {key_id!r} must have {KEY_BYTES} bytes", field="encryption")
