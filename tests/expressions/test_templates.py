"""Templates: any JSON with expressions in it."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostinato import errors, expressions, threads

EVENT = {"detail": {"jobId": "j1", "output": {"rows": [1, 2]}, "note": None}}
PAGE = Path(__file__).parents[2] / "docs/reference/expressions.md"


def test_whole_strings_are_evaluated_and_everything_else_is_literal() -> None:
    template = {
        "id": "{% detail.jobId %}",
        "rows": ["{%detail.output.rows%}", {"first": "{% detail.output.rows[0] %}"}],
        "null": "{% detail.note %}",
        "text": "job {% detail.jobId %}",
        "half": ["{%", "%}", "{%}", "{ % 1 % }", ""],
        "{% detail.jobId %}": True,
        "plain": [1, 2.5, None, False],
    }
    before = msgspec.json.encode(template)
    assert expressions.render(template, EVENT, "target") == {
        **template,
        "id": "j1",
        "rows": [[1, 2], {"first": 1}],
        "null": None,
    }
    assert msgspec.json.encode(template) == before


@pytest.mark.parametrize(("template", "wanted"), [("{% 1 + 1 %}", 2), ("x", "x"), (None, None), ([], []), (7, 7)])
def test_a_template_may_be_any_value(template: Any, wanted: Any) -> None:
    assert expressions.render(template, EVENT, "target") == wanted


def test_what_an_expression_gives_is_not_read_as_a_template() -> None:
    assert expressions.render("{% x %}", {"x": "{% 1 + 1 %}"}, "target") == "{% 1 + 1 %}"


def test_the_first_bad_expression_is_named_with_its_path() -> None:
    targets: list[Any] = [
        {"job": {"tasks": [{"input": {}}, {"input": {"a": "{% 1 %}", "key": "{% 1 + %}"}}]}},
        "{% ( %}",
    ]
    with pytest.raises(errors.InvalidInput) as caught:
        expressions.check(targets, "targets")
    assert caught.value.details["field"] == "targets[0].job.tasks[1].input.key"
    expressions.check([{"job": "{% detail.nothing %}"}], "targets")


def test_what_cannot_be_evaluated_is_named_with_its_path() -> None:
    with pytest.raises(
        errors.ExpressionFailed, match=r"^target\.b\[1\] could not be evaluated: it has no value"
    ) as caught:
        expressions.render({"a": "{% 1 %}", "b": [0, "{% detail.nothing %}"]}, EVENT, "target")
    assert caught.value.details["field"] == "target.b[1]"
    with pytest.raises(errors.ExpressionFailed, match=r"^one of target\[0\], target\[1\] could not be evaluated"):
        expressions.render(["{% 1 %}", "{% $pad('a', 1000000000) %}"], EVENT, "target")


def test_all_of_a_template_has_one_bound() -> None:
    template = ["{% ($f := function() { $f() }; $f()) %}"] * 50
    started = time.monotonic()
    with pytest.raises(errors.ExpressionFailed, match="takes too long"):
        expressions.render(template, EVENT, "target")
    assert time.monotonic() - started < 5


def test_all_of_a_template_has_one_size() -> None:
    with pytest.raises(errors.ExpressionFailed, match=r"target\[1\].*larger than 1,048,576 characters"):
        expressions.render(["{% $pad('a', 600000) %}"] * 2, EVENT, "target")


async def test_the_event_loop_goes_on_meanwhile() -> None:
    """The library holds the interpreter for as long as it works, which is why it works elsewhere."""
    await threads.run(lambda: expressions.render("{% 1 %}", {}, "target"))
    endless = "{% ($f := function() { $f() }; $f()) %}"
    rendering = asyncio.ensure_future(threads.run(lambda: expressions.render(endless, {}, "target")))
    longest, turns = 0.0, 0
    while not rendering.done():
        before = time.monotonic()
        await asyncio.sleep(0.001)
        longest = max(longest, time.monotonic() - before)
        turns += 1
    assert isinstance(rendering.exception(), errors.ExpressionFailed)
    assert turns > 20
    assert longest < 0.4


def examples() -> list[Any]:
    """The page has blocks of JSON in pairs: a template, and what it becomes over the first block."""
    blocks = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    event, *rest = [msgspec.json.decode(block) for block in blocks]
    assert len(rest) >= 4
    assert len(rest) % 2 == 0
    return [(event, template, wanted) for template, wanted in zip(rest[::2], rest[1::2], strict=True)]


@pytest.mark.parametrize(("event", "template", "wanted"), examples())
def test_the_examples_of_the_reference(event: Any, template: Any, wanted: Any) -> None:
    expressions.check(template, "template")
    assert expressions.render(template, event, "template", now=1_794_848_827.0) == wanted


def test_the_table_of_the_reference() -> None:
    event = examples()[0][0]
    rows = re.findall(r"^\| `(.+?)` \| `(.+?)` \|", PAGE.read_text(), re.MULTILINE)
    assert len(rows) >= 5
    for text, wanted in rows:
        assert expressions.compile(text, text).evaluate(event) == msgspec.json.decode(wanted)
