"""Filters and cursors as people write them."""

import datetime
from typing import Any

import pytest

from ostinato import errors
from ostinato.core import cursors, filters

NOON = datetime.datetime(2026, 11, 16, 12, tzinfo=datetime.UTC)


def test_a_filter_as_people_write_it() -> None:
    assert filters.job_filter() == filters.JobFilter()
    assert filters.job_filter(state="failed").states == ("failed",)
    assert filters.job_filter(state=["failed", "running", "failed"]).states == ("failed", "running")
    assert filters.job_filter(tag="team").tag == ("team", None)
    assert filters.job_filter(tag="team=").tag == ("team", "")
    assert filters.job_filter(tag="team=a=b").tag == ("team", "a=b")
    assert filters.job_filter(created_from=NOON).created_from == 1_794_830_400_000_000


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"state": "happy"}, "state"),
        ({"state": ["failed", ""]}, "state"),
        ({"tag": ""}, "tag"),
        ({"nmae": "x"}, "nmae"),
        ({"tag": "=x"}, "tag"),
        ({"created_from": NOON.replace(tzinfo=None)}, "created_from"),
    ],
)
def test_bad_filters_are_refused(wanted: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        filters.job_filter(**wanted)
    assert caught.value.details["field"] == field


def test_a_misspelt_filter_on_dead_letters_does_not_select_all() -> None:
    with pytest.raises(errors.InvalidInput, match="no filter 'fuction': use name"):
        filters.dead_letter_filter(**{"fuction": "x"})  # type: ignore[misc]


@pytest.mark.parametrize("most", [0, 501, -1, True, 1.5])
def test_a_page_has_its_limits(most: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="1 to 500"):
        filters.check_most(most)


def test_a_place_is_the_earlier_of_the_cursor_and_the_end_of_the_range() -> None:
    cursor = cursors.write((500, "job"))
    assert filters.JobFilter().place(cursor) == (500, "job")
    assert filters.JobFilter(created_until=400).place(cursor) == (400, "")
    assert filters.JobFilter(created_until=600).place(cursor) == (500, "job")
    assert filters.DeadLetterFilter(failed_until=400).place(None) == (400, "", "")


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "!",
        "x",
        "YWJj",
        "\ud800",
        "é",
        cursors.write((1, "a", "b")),
        cursors.write(("1", "a")),
        cursors.write((2**63, "a")),
    ],
)
def test_odd_cursors_are_refused(odd: str) -> None:
    with pytest.raises(errors.InvalidInput, match="cursor"):
        filters.JobFilter().place(odd)
