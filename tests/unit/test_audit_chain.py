"""The chain of the audit log, as values: what breaks it, and that it breaks where it was touched."""

from typing import Any

import msgspec
import pytest

from ostinato import errors
from ostinato.core import audit_chain


def chain(count: int, tenant: str = "t") -> list[audit_chain.Entry]:
    made: list[audit_chain.Entry] = []
    for number in range(count):
        new = audit_chain.new_entry("key-1", "jobs.cancel", f"job-{number}", None, {"n": number})
        last = (made[-1].seq, made[-1].hash) if made else None
        made.append(audit_chain.next_entry(tenant, last, number, new))
    return made


def verdict(entries: list[audit_chain.Entry], tenant: str = "t", noted: Any = None) -> audit_chain.Verdict:
    found = audit_chain.Verdict()
    audit_chain.follow(tenant, found, entries, noted)
    return audit_chain.conclude(found, noted)


def test_a_chain_holds_from_its_start_to_its_end() -> None:
    entries = chain(5)
    found = verdict(entries)
    assert (found.entries, found.seq, found.hash, found.problem) == (5, 5, entries[-1].hash.hex(), None)


@pytest.mark.parametrize("field", ["at", "actor", "action", "target", "request_id", "details", "hash", "refuses"])
def test_every_field_of_an_entry_is_covered(field: str) -> None:
    entries = chain(5)
    other: dict[str, Any] = {"at": 99, "refuses": 1, "details": b'{"n":9}', "hash": bytes(32)}
    entries[2] = msgspec.structs.replace(entries[2], **{field: other.get(field, "other")})
    assert verdict(entries).broken_seq == 3


def test_a_chain_of_another_tenant_does_not_hold() -> None:
    assert verdict(chain(3), tenant="other").broken_seq == 1


def test_entries_cannot_be_taken_out_moved_or_made_up() -> None:
    entries = chain(5)
    assert verdict(entries[:2] + entries[3:]).broken_seq == 3
    assert verdict(entries[1:]).broken_seq == 1
    assert verdict([entries[0], entries[2], entries[1], *entries[3:]]).broken_seq == 2
    new = audit_chain.new_entry("key-1", "jobs.cancel", "made up", None, {})
    forged = audit_chain.next_entry("t", (2, entries[1].hash), 0, new)
    assert verdict([*entries[:2], forged, *entries[3:]]).broken_seq == 4


def test_an_end_that_was_noted_must_still_be_there() -> None:
    entries = chain(5)
    noted = audit_chain.read_head(f"4:{entries[3].hash.hex()}")
    assert verdict(entries, noted=noted).problem is None
    assert verdict(entries[:2], noted=noted).broken_seq == 3
    assert verdict(entries, noted=(4, "0" * 64)).broken_seq == 4
    for text in ("", "4", "4:abc", f"x:{'0' * 64}"):
        with pytest.raises(errors.InvalidInput):
            audit_chain.read_head(text)


@pytest.mark.parametrize(
    "wrong", [{"actor": ""}, {"action": ""}, {"target": "a\0b"}, {"actor": "\ud800"}, {"details": {"x": "y" * 9000}}]
)
def test_what_cannot_be_stored_is_refused(wrong: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"actor": "a", "action": "b", "target": "", "request_id": None, "details": {}}
    with pytest.raises(errors.InvalidInput):
        audit_chain.new_entry(**(fields | wrong))


def test_entries_of_before_there_were_refusals_hold() -> None:
    """B8: what refuses nothing is hashed as it always was."""
    [entry] = chain(1)
    assert entry.hash.hex() == "13b516fb046bee774f230459eaab96beb1fd2633433da537d11323cb6daaf15f"
    refused = audit_chain.next_entry("t", (1, entry.hash), 5, audit_chain.refusal(entry, "not_an_approver"))
    assert (refused.refuses, refused.details, verdict([entry, refused]).problem) == (
        1, b'{"error":"not_an_approver"}', None,
    )  # fmt: skip
