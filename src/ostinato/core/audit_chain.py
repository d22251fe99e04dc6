"""The chain of the audit log: how an entry is hashed, and where a chain is broken."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from ostinato import errors
from ostinato.core import arguments, codec

START = bytes(32)
"""What the first entry of a chain holds as the hash of the one before."""
MAX_TEXT = 1024
MAX_DETAILS = 8 * 1024


class Entry(msgspec.Struct, frozen=True):
    """Somebody did something. Field order is column order, after the tenant."""

    seq: int
    at: int
    actor: str
    action: str
    target: str
    request_id: str | None
    details: bytes
    previous_hash: bytes
    hash: bytes
    refuses: int | None = None
    """The entry that this one says was refused."""


class Verdict(msgspec.Struct, rename="camel"):
    """How far a chain holds. `broken_seq` is the first entry that is not as it was written, or is missing."""

    entries: int = 0
    seq: int = 0
    hash: str = START.hex()
    broken_seq: int | None = None
    problem: str | None = None


def entry_hash(tenant: str, entry: Entry) -> bytes:
    """SHA-256 over the hash before and all fields as one JSON list, which can be read in one way only."""
    fields = [
        tenant,
        entry.seq,
        entry.at,
        entry.actor,
        entry.action,
        entry.target,
        entry.request_id,
        hashlib.sha256(entry.details).hexdigest(),
    ]
    if entry.refuses is not None:  # an entry that refuses nothing is hashed as before there were others
        fields.append(entry.refuses)
    return hashlib.sha256(entry.previous_hash + codec.encode_canonical(fields)).digest()


def next_entry(tenant: str, last: tuple[int, bytes] | None, at: int, entry: Entry) -> Entry:
    """The entry with its time and its place at the end of the chain, whose last (seq, hash) is given."""
    seq, previous_hash = last or (0, START)
    placed = msgspec.structs.replace(entry, seq=seq + 1, at=at, previous_hash=previous_hash)
    return msgspec.structs.replace(placed, hash=entry_hash(tenant, placed))


def new_entry(actor: str, action: str, target: str, request_id: str | None, details: object) -> Entry:
    """An entry that has no place yet, if its parts can be stored."""
    texts = {"actor": actor, "action": action, "target": target, "request_id": request_id or ""}
    for field, text in texts.items():
        check_text(text, field)
        if not text and field in ("actor", "action"):
            raise errors.InvalidInput(f"{field} must not be empty: the log says who did what", field=field)
    data = codec.encode(details, "the details of an audit entry", MAX_DETAILS)
    return Entry(0, 0, actor, action, target, request_id, data, START, b"")


def refusal(entry: Entry, code: str) -> Entry:
    """An entry, without a place yet, that says that what another one tells of was refused, and with which error."""
    details = codec.encode_own({"error": code})
    return Entry(0, 0, entry.actor, entry.action, entry.target, entry.request_id, details, START, b"", entry.seq)


def check_text(text: object, field: str) -> None:
    """Refuse what no entry could say."""
    if not isinstance(text, str) or len(text) > MAX_TEXT or "\0" in text or not arguments.is_unicode(text):
        raise errors.InvalidInput(f"{field} must be at most {MAX_TEXT} characters of text without NUL", field=field)


def follow(tenant: str, verdict: Verdict, entries: Iterable[Entry], noted: tuple[int, str] | None = None) -> None:
    """Go on along the chain, to the first entry that does not fit. `noted` is an entry's (seq, hash) as once seen."""
    for entry in entries:
        problem = _problem(tenant, verdict, entry, noted)
        if problem is not None:
            verdict.broken_seq, verdict.problem = problem
            return
        verdict.entries += 1
        verdict.seq = entry.seq
        verdict.hash = entry.hash.hex()


def conclude(verdict: Verdict, noted: tuple[int, str] | None) -> Verdict:
    """The verdict at the end of a chain, which must be at least as long as it once was."""
    if noted is not None and verdict.problem is None and verdict.seq < noted[0]:
        verdict.broken_seq = verdict.seq + 1
        verdict.problem = f"entry {verdict.seq + 1} is missing: the log was noted up to entry {noted[0]}"
    return verdict


def _problem(tenant: str, before: Verdict, entry: Entry, noted: tuple[int, str] | None) -> tuple[int, str] | None:
    if entry.seq != before.seq + 1:
        return before.seq + 1, f"entry {before.seq + 1} is missing"
    if entry.previous_hash.hex() != before.hash:
        return entry.seq, f"entry {entry.seq} does not follow entry {before.seq}"
    if entry.hash != entry_hash(tenant, entry):
        return entry.seq, f"entry {entry.seq} is not as it was written"
    if noted is not None and noted[0] == entry.seq and noted[1] != entry.hash.hex():
        return entry.seq, f"entry {entry.seq} is not the one that was noted"
    return None


def read_head(text: str) -> tuple[int, str]:
    """A noted end of a chain, `SEQ:HASH`."""
    seq, separator, digest = text.partition(":")
    if not (separator and seq.isascii() and seq.isdigit() and len(digest) == 64):
        raise errors.InvalidInput(f"{text[:100]!r} is not the end of a chain: write SEQ:HASH", field="head")
    return int(seq), digest.lower()
