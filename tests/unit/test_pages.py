"""Events are stored in pages, and come back as they were told."""

from __future__ import annotations

import pytest

from ostinato.core import events, pages


def entry(kind: str, task_id: str | None, attempt: int | None, data: bytes) -> pages.Entry:
    return kind, task_id, attempt, pages.Raw(data)


def read_all(entries: list[pages.Entry], first: int = 1) -> tuple[list[events.Event], int]:
    found: list[events.Event] = []
    written = list(pages.split(entries, first))
    for start, end, body in written:
        page = list(pages.read("j", start, 7, body))
        assert (page[0].seq, page[-1].seq) == (start, end)
        found += page
    return found, len(written)


@pytest.mark.parametrize("count", [1, 2, pages.MOST_EVENTS, pages.MOST_EVENTS + 1, 3 * pages.MOST_EVENTS])
def test_every_event_comes_back_in_order(count: int) -> None:
    entries = [entry(events.TASK_PENDING, f"t{n}", 1, b'{"n":%d}' % n) for n in range(count)]
    found, written = read_all(entries, first=41)
    assert [event.seq for event in found] == list(range(41, 41 + count))
    assert [event.task_id for event in found] == [f"t{n}" for n in range(count)]
    assert [event.data for event in found] == [b'{"n":%d}' % n for n in range(count)]
    assert written == -(-count // pages.MOST_EVENTS)


def test_an_event_of_a_job_has_no_task() -> None:
    (event,), _ = read_all([entry(events.JOB_CREATED, None, None, b"{}")])
    assert (event.type, event.task_id, event.attempt, event.at) == ("Job Created", None, None, 7)


def test_large_events_do_not_share_a_page_with_many_others() -> None:
    large = b'{"output":"%b"}' % (b"x" * pages.MOST_BYTES)
    _, written = read_all([entry(events.TASK_COMPLETED, "t", 1, large)] * 3)
    assert written == 3


@pytest.mark.parametrize("sizes", [[1000] * 200, [40_000] * 7, [10] * 499 + [pages.MOST_BYTES], [70_000, 10, 70_000]])
def test_no_page_of_several_events_is_larger_than_the_limit(sizes: list[int]) -> None:
    entries = [entry(events.TASK_COMPLETED, f"t{n}", 1, b'{"o":"%b"}' % (b"x" * s)) for n, s in enumerate(sizes)]
    found, written = read_all(entries)
    assert [event.task_id for event in found] == [f"t{n}" for n in range(len(sizes))]
    assert all(len(body) <= pages.MOST_BYTES for first, last, body in pages.split(entries, 1) if last > first)
    assert written <= 2 + 3 * sum(sizes) // pages.MOST_BYTES + len(sizes) // 50, "and few are nearly empty"


def test_a_page_mentions_the_tasks_it_is_about_and_no_others() -> None:
    ((_, _, body),) = pages.split([entry(events.TASK_PENDING, "t10", 0, b'{"name":"t1"}')], 1)
    assert pages.mention("t10") in body
    assert pages.mention("t1") not in body


def test_data_may_be_a_reference_to_a_blob() -> None:
    digest = bytes(range(32))
    (event,), _ = read_all([entry(events.JOB_CREATED, None, None, pages.blob_reference(digest))])
    assert pages.referred_blob(event.data) == digest
    assert pages.referred_blob(b'{"a":"b"}') is None
