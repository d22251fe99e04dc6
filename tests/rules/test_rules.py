"""Rules as their authors write them."""

from typing import Any

import msgspec
import pytest

from ostinato import errors
from ostinato.rules import definition

RULE: dict[str, Any] = {
    "name": "failed-jobs",
    "description": "Tell the operators",
    "pattern": {"source": ["ostinato"], "detail-type": ["Job Failed"]},
    "targets": [{"webhook": {"url": "https://example.com", "body": {"job": "{% detail.jobId %}"}}}],
}


def test_a_rule_is_read_and_written_back_alike() -> None:
    rule = definition.read(RULE)
    assert (rule.name, rule.enabled, rule.targets[0].kind) == ("failed-jobs", True, "webhook")
    assert msgspec.to_builtins(rule) == RULE
    assert not definition.read(RULE | {"enabled": False}).enabled
    assert list(definition.expressions(rule)) == [("targets[0].webhook.body.job", "detail.jobId")]


def test_reading_leaves_the_document_as_it_was() -> None:
    document = msgspec.json.decode(msgspec.json.encode(RULE))
    definition.read(document)
    assert document == RULE


def without(name: str) -> dict[str, Any]:
    return {field: value for field, value in RULE.items() if field != name}


BAD: list[tuple[Any, str, str]] = [
    (None, "document", "must be an object"),
    (without("name"), "name", "is missing"),
    (without("pattern"), "pattern", "is missing"),
    (without("targets"), "targets", "is missing"),
    (RULE | {"name": "a:b"}, "name", "not a valid name"),
    (RULE | {"name": "x" * 129}, "name", "1 to 128"),
    (RULE | {"name": 3}, "name", "Expected `str`"),
    (RULE | {"description": "\0"}, "description", "without control characters"),
    (RULE | {"enabled": "yes"}, "enabled", "Expected `bool`"),
    (RULE | {"target": []}, "target", "did you mean 'targets'"),
    (RULE | {"pattern": "all"}, "pattern", "Expected `object`"),
    (RULE | {"pattern": {"source": "ostinato"}}, "pattern.source", ""),
    (RULE | {"targets": []}, "targets", "1 to 10"),
    (RULE | {"targets": [{"gate": {"name": "x", "key": "k"}}]}, "targets[0].gate.member", "is missing"),
]


@pytest.mark.parametrize(("document", "field", "words"), BAD)
def test_a_bad_rule_is_refused_by_its_field(document: Any, field: str, words: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        definition.read(document)
    assert caught.value.details["field"] == field
    assert words in caught.value.message
