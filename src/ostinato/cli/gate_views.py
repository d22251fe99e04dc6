"""How gates look on a screen: the keys in a list, and one of them in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ostinato.cli import output

if TYPE_CHECKING:
    import datetime

    from ostinato.gates import status

MARKS = {
    "open": "green",
    "waiting": "yellow",
    "failed": "red",
    "expired": "red",
    "reset": "magenta",
    "arrived": "green",
    "missing": "yellow",
    "late": "magenta",
}


def show_keys(found: Sequence[status.Status], now: datetime.datetime) -> None:
    lines = [
        [
            one.key,
            _mark(one.status),
            f"{one.completed_count:,}/{one.expected_count:,}",
            output.ago(one.since, now),
            output.ago(one.opened_at or one.ended_at, now),
            _some(one.missing),
        ]
        for one in found
    ]
    output.table(["key", "status", "arrived", "since", "opened", "missing"], lines, none="nobody has reported yet")


def show_status(found: status.Status, now: datetime.datetime) -> None:
    """What to know first, then a line for each member: those who came in the order in which they came."""
    output.fields(
        [
            ("gate", found.gate),
            ("key", found.key),
            ("job", found.job_id),
            ("status", _mark(found.status)),
            ("arrived", f"{found.completed_count:,} of {found.expected_count:,}"),
            ("since", _when(found.since, now)),
            ("opened", _when(found.opened_at, now)),
            ("opened by", found.opened_by),
            ("ended", _when(found.ended_at, now)),
            ("reason", found.reason),
            ("error", None if found.error is None else f"{found.error['type']}: {found.error['message']}"),
            ("correlation", ", ".join(found.correlation_ids)),
            *[("triggered", _triggered(item)) for item in found.triggered if found.opened_at is not None],
        ]
    )
    output.say("")
    output.table(["member", "", "when", "status", "records", "execution"], _lines(found, now), none="no members")


def _lines(found: status.Status, now: datetime.datetime) -> list[list[Any]]:
    failed = {one.member for one in found.failed}
    told = failed | {one.member for one in found.late}
    lines = [_line(one, "failed" if one.member in failed else "arrived", now) for one in found.arrived]
    lines += [_line(one, "failed", now) for one in found.failed if one.member in found.missing]
    waited = output.took(found.since, None, now) if found.status == "waiting" else ""
    for_so_long = f"for {waited}" if waited else ""
    lines += [[name, _mark("missing"), for_so_long, "", "", ""] for name in found.missing if name not in told]
    return lines + [_line(one, "late", now) for one in found.late]


def _line(one: status.Arrival, mark: str, now: datetime.datetime) -> list[Any]:
    count = "" if one.record_count is None else f"{one.record_count:,}"
    return [one.member, _mark(mark), _when(one.arrived_at, now), one.status, count, one.execution_id or ""]


def _triggered(item: dict[str, Any]) -> str:
    if item["state"] in ("blocked", "pending"):
        return "not yet: a worker or a server does it"
    if item["error"] is not None:
        return f"{item['state']}: {item['error']['type']}: {item['error']['message']}"
    result: Any = item.get("result")
    if isinstance(result, dict) and "jobId" in result:
        return f"job {cast('dict[str, Any]', result)['jobId']}"
    return item["state"] if result is None else output.short(result)


def _when(moment: datetime.datetime | None, now: datetime.datetime) -> str:
    return "" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S} ({output.ago(moment, now)})"


def _some(names: Sequence[str]) -> str:
    from ostinato.core import documents

    return documents.listed(names, 3)


def _mark(word: str) -> Any:
    from rich.text import Text

    return Text(word, style=MARKS.get(word, ""))
