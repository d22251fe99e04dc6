"""Events as they are stored: page by page, one page for what a transaction said about a job.

A row for each event would be most of what the engine writes. A page holds hundreds of them; it is never changed, and
its place in the stream is the numbers of its first and last event. Inside is JSON: `[[type, task, attempt, data], …]`,
where `data` is an object, or the digest of a blob as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ostinato.core import events

MOST_EVENTS = 500
MOST_BYTES = 64 * 1024
"""A page may exceed it by one event."""

_decode = msgspec.json.Decoder(list[tuple[str, str | None, int | None, msgspec.Raw]]).decode


def entry(kind: str, task_id: str | None, attempt: int | None, data: bytes) -> bytes:
    """One event in a page. Types and ids have no characters that JSON would escape."""
    if task_id is None:
        return b'["%b",null,null,%b]' % (kind.encode(), data)
    return b'["%b","%b",%d,%b]' % (kind.encode(), task_id.encode(), attempt, data)


def split(entries: Sequence[bytes], first_seq: int) -> Iterator[tuple[int, int, bytes]]:
    """(first, last, body) of the pages that hold the entries."""
    start = size = 0
    for index, one in enumerate(entries):
        if index > start and (index - start >= MOST_EVENTS or size >= MOST_BYTES):
            yield _page(entries[start:index], first_seq + start)
            start, size = index, 0
        size += len(one)
    yield _page(entries[start:], first_seq + start)


def _page(entries: Sequence[bytes], first: int) -> tuple[int, int, bytes]:
    return first, first + len(entries) - 1, b"[" + b",".join(entries) + b"]"


def mention(task_id: str) -> bytes:
    """Bytes that a page about the task contains: a quick way past pages that do not."""
    return b',"%b",' % task_id.encode()


def read(job_id: str, first: int, at: int, body: bytes) -> Iterator[events.Event]:
    for seq, (kind, task_id, attempt, data) in enumerate(_decode(body), first):
        yield events.Event(job_id, seq, kind, task_id, attempt, at, bytes(data))


def blob_reference(digest: bytes) -> bytes:
    return b'"%b"' % digest.hex().encode()


def referred_blob(data: bytes) -> bytes | None:
    """The digest of the blob that the data of an event is in, if it is in one."""
    return bytes.fromhex(data[1:-1].decode()) if data[:1] == b'"' else None
