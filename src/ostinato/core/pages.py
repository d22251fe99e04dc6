"""Events as they are stored: page by page, one page for what a transaction said about a job.

A row for each event would be most of what the engine writes. A page holds hundreds of them; it is never changed, and
its place in the stream is the numbers of its first and last event. Inside is JSON: `[[type, task, attempt, data], …]`,
where `data` is an object, or the digest of a blob as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ostinato.core import codec, events

MOST_EVENTS = 500
MOST_BYTES = 64 * 1024
"""Only a page of a single event may be larger."""

Raw = msgspec.Raw
Entry = tuple[str, str | None, int | None, Raw]
"""One event in a page: its type, task and attempt, and its data as it is."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Entry]).decode


def split(entries: Sequence[Entry], first: int) -> list[tuple[int, int, bytes]]:
    """(first, last, body) of the pages that hold the entries."""
    if len(entries) <= MOST_EVENTS:
        return _pages(entries, first)
    starts = range(0, len(entries), MOST_EVENTS)
    return [page for start in starts for page in _pages(entries[start : start + MOST_EVENTS], first + start)]


def _pages(entries: Sequence[Entry], first: int) -> list[tuple[int, int, bytes]]:
    body = _encode(entries)
    count = len(entries)
    if len(body) <= MOST_BYTES or count == 1:
        return [(first, first + count - 1, body)]
    half = count // 2
    return _pages(entries[:half], first) + _pages(entries[half:], first + half)


def mention(task_id: str) -> bytes:
    """Bytes that a page about the task contains: a quick way past pages that do not."""
    return b',"%b",' % task_id.encode()


def read(job_id: str, first: int, at: int, body: bytes) -> Iterator[events.Event]:
    codec.check_open(body)
    for seq, (kind, task_id, attempt, data) in enumerate(_decode(body), first):
        yield events.Event(job_id, seq, kind, task_id, attempt, at, bytes(data))


def blob_reference(digest: bytes) -> bytes:
    return b'"%b"' % digest.hex().encode()


def referred_blob(data: bytes) -> bytes | None:
    """The digest of the blob that the data of an event is in, if it is in one."""
    return bytes.fromhex(data[1:-1].decode()) if data[:1] == b'"' else None
