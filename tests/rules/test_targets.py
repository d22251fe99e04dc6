"""What happens when a rule matches or a gate opens: which documents are taken, and which field an error names."""

from typing import Any

import msgspec
import pytest

from ostinato import errors
from ostinato.rules import targets

JOB: dict[str, Any] = {
    "name": "report",
    "tasks": [{"taskId": "a", "name": "work", "input": {"day": "{% detail.day %}"}}],
}
GATE: dict[str, Any] = {"name": "phase", "key": "{% detail.day %}", "member": "A", "data": {"n": "{% detail.n %}"}}
INDEX: dict[str, Any] = {
    "executionArn": "{% detail.run %}",
    "stateMachineArn": "m",
    "status": "RUNNING",
    "startDate": 1,
}
HOOK: dict[str, Any] = {"url": "https://example.com/hook"}


def task(**fields: Any) -> dict[str, Any]:
    return {"job": {"tasks": [{"taskId": "a", "name": "work"} | fields]}}


def nested(levels: int) -> dict[str, Any]:
    inside: Any = "bottom"
    for _ in range(levels - 1):
        inside = [inside]
    return {"index": inside}


@pytest.mark.parametrize(
    "document",
    [
        {"job": JOB},
        {"job": {"tasks": "{% detail.tasks %}"}},
        {"job": {"tasks": ["{% detail.first %}", {"taskId": "b", "name": "work"}]}},
        {"job": JOB | {"priority": "{% detail.urgent ? 9 : 0 %}", "tags": {"day": "{% detail.day %}"}}},
        task(retry={"maxAttempts": "{% detail.attempts %}"}),
        {"gate": GATE},
        {"gate": {"name": "phase", "key": "2025-11-29", "member": "A"}},
        {"gate": GATE | {"data": "{% detail %}", "status": "failed", "correlationId": "{% detail.correlationId %}"}},
        {"signal": {"jobId": "{% detail.jobId %}", "name": "approved"}},
        {"signal": {"jobId": "job-1", "name": "approved", "payload": [1, None]}},
        {"index": INDEX | {"status": "{% detail.status %}"}},
        {"index": INDEX | {"deep": nested(62)}},
        {"webhook": HOOK},
        {"webhook": HOOK | {"secret": "secret://hook", "headers": {"X-Day": "{% detail.day %}"}, "body": None}},
        {"webhook": {"url": "{% detail.callback %}"}},
        {"gate": GATE, "job": None},
    ],
)
def test_a_good_target_is_read_and_written_back_alike(document: dict[str, Any]) -> None:
    read = targets.read([document], "targets")
    assert read[0].kind == next(name for name, value in document.items() if value is not None)
    assert targets.read(msgspec.to_builtins(read), "targets") == read


BAD: list[tuple[Any, str, str]] = [
    ("a job", "", "must be an object"),
    ({}, "", "exactly one of job, gate, signal, index, webhook"),
    ({"job": JOB, "gate": GATE}, "", "has job and gate"),
    ({"jbo": JOB}, ".jbo", "did you mean 'job'"),
    (nested(65), "", "deeper than 64 levels"),
    (nested(1000), "", "deeper than 64 levels"),
    ({"index": {"list": [0, "{% %}"]}}, ".index.list[1]", "empty expression"),
    ({"job": []}, ".job", "must be an object"),
    ({"job": {"name": "x"}}, ".job.tasks", "is missing"),
    ({"job": JOB | {"tasks": []}}, ".job.tasks", "1 to"),
    ({"job": JOB | {"tasks": {}}}, ".job.tasks", "must be a list"),
    ({"job": JOB | {"pririty": 3}}, ".job.pririty", "did you mean 'priority'"),
    ({"job": JOB | {"priority": "high"}}, ".job.priority", "Expected `int`"),
    ({"job": JOB | {"tags": {"day": 3}}}, ".job.tags[...]", "Expected `str`"),
    (task(taskid="x"), ".job.tasks[0].taskid", "did you mean 'taskId'"),
    ({"job": {"tasks": [{"taskId": "a"}]}}, ".job.tasks[0].name", "is missing"),
    (task(dependsOn="b"), ".job.tasks[0].dependsOn", "Expected `array`"),
    (task(dependsOn=["b"]), ".job.tasks", "which is not a task of this job"),
    (task(taskId="$a"), ".job.taskId", "not a valid id"),
    ({"job": {"name": "", "tasks": [{"taskId": "a", "name": "work"}]}}, ".job.name", "not a valid name"),
    ({"gate": {"name": "phase", "key": "x"}}, ".gate.member", "is missing"),
    ({"gate": GATE | {"name": "no name"}}, ".gate.name", "not a valid name"),
    ({"gate": GATE | {"key": ""}}, ".gate.key", "1 to 256 characters"),
    ({"gate": GATE | {"member": "$open"}}, ".gate.member", "not a valid id"),
    ({"gate": GATE | {"data": "detail"}}, ".gate.data", "an object, or an expression"),
    ({"gate": GATE | {"data": ["x"]}}, ".gate.data", "Expected"),
    ({"gate": GATE | {"status": ""}}, ".gate.status", "1 to 64 characters"),
    ({"gate": GATE | {"correlationId": "a b"}}, ".gate.correlationId", "not a valid id"),
    ({"signal": {"name": "approved"}}, ".signal.jobId", "is missing"),
    ({"signal": {"jobId": "x y", "name": "approved"}}, ".signal.jobId", "not a valid id"),
    ({"signal": {"jobId": "x", "name": ""}}, ".signal.name", "not a valid name"),
    ({"index": "all"}, ".index", "must be an object"),
    ({"index": {"executionArn": "x"}}, ".index.stateMachineArn", "is missing"),
    ({"webhook": {}}, ".webhook.url", "is missing"),
    ({"webhook": {"url": "ftp://example.com"}}, ".webhook.url", "an address like https"),
    ({"webhook": {"url": "https:///hook"}}, ".webhook.url", "an address like https"),
    ({"webhook": {"url": "https://example.com:port/"}}, ".webhook.url", "an address like https"),
    ({"webhook": {"url": "https://me:pw@example.com/"}}, ".webhook.url", "user or password"),
    ({"webhook": HOOK | {"secret": "hunter2"}}, ".webhook.secret", "secret://NAME"),
    ({"webhook": HOOK | {"headers": {"X Day": "1"}}}, ".webhook.headers", "not a valid header"),
    ({"webhook": HOOK | {"headers": {"X-Day": "1\r\nX-Evil: 2"}}}, ".webhook.headers", "not a valid header"),
    ({"webhook": HOOK | {"headers": {f"X-{n}": "" for n in range(51)}}}, ".webhook.headers", "more than 50"),
    ({"webhook": HOOK | {"method": "PUT"}}, ".webhook.method", "url, secret, headers, body"),
]


@pytest.mark.parametrize(("document", "field", "words"), BAD)
def test_a_bad_target_is_refused_by_its_field(document: Any, field: str, words: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        targets.read([{"index": INDEX}, document], "targets")
    assert caught.value.details["field"] == f"targets[1]{field}"
    assert words in caught.value.message


def test_a_secret_that_was_written_out_is_not_repeated() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        targets.read([{"webhook": HOOK | {"secret": "hunter2"}}], "targets")
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("count", [0, 11])
def test_there_are_one_to_ten_targets(count: int) -> None:
    with pytest.raises(errors.InvalidInput, match="1 to 10") as caught:
        targets.read([{"index": INDEX}] * count, "targets")
    assert caught.value.details["field"] == "targets"


def test_every_expression_is_named_with_its_field() -> None:
    read = targets.read(
        [{"job": JOB}, {"gate": GATE}, {"index": INDEX | {"executionArn": "x", "list": [1, "{% 2 %}", "{% 3"]}}],
        "targets",
    )
    assert list(targets.expressions(read, "targets")) == [
        ("targets[0].job.tasks[0].input.day", "detail.day"),
        ("targets[1].gate.key", "detail.day"),
        ("targets[1].gate.data.n", "detail.n"),
        ("targets[2].index.list[1]", "2"),
    ]
