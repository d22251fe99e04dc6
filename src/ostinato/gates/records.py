"""What is kept of an arrival."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

import msgspec


class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One arrival: all of its data, what was made of it, and what is asked for most often."""

    member: str
    status: str
    success: bool
    data: dict[str, Any]
    correlation_id: str | None = None
    execution_id: str | None = None
    record_count: int | None = None
    arrived_at: datetime.datetime | None = None
    """Not known before the arrival is committed."""


def read(document: Any) -> Record:
    """A record as it was stored."""
    return document if isinstance(document, Record) else msgspec.convert(document, Record)


def correlation_ids(records: Iterable[Record]) -> list[str]:
    """Every correlation id once, in the order of the records. Most often there is one."""
    return list(dict.fromkeys(record.correlation_id for record in records if record.correlation_id is not None))
