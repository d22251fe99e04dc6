"""Payloads through the whole engine: exact, large, too large, and not JSON at all."""

import dataclasses
import datetime
from typing import Any

import pytest

from ostinato import Context, errors
from tests.engine import support
from tests.engine.support import job, run, task

MEGABYTE = "0123456789abcdef" * 65_536
LIMIT = 10_000


async def test_odd_but_legal_payloads_are_exact(url: str) -> None:
    odd = {"nul": "a\0b", "\0": "😀\u2028", "big": 10**40, "small": 5e-324, "minus": -0.0, "deep": [[[[{}]]]], "": None}
    async with support.opened(url) as app:
        result = await run(app, task("a", input=odd), task("b", "join", "a"))
        assert repr(result["a"]) == repr(odd)
        assert repr(result["b"]["a"]) == repr(odd)


async def test_a_megabyte_of_output_comes_back_whole(url: str) -> None:
    app = support.make(url)

    @app.function
    async def large(letter: str) -> str:
        return letter + MEGABYTE

    async with app:
        made = await app.submit(
            job(*[task(i, "large", input={"letter": i}) for i in "abc"], task("end", "join", "a b c"))
        )
        result = await made.result(support.PATIENCE)
        assert result["end"] == {i: i + MEGABYTE for i in "abc"}
        assert (await made.task("a")).output == "a" + MEGABYTE
        assert await made.outputs() == result


async def test_a_megabyte_of_input_comes_back_whole(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", input={"text": MEGABYTE})))
        assert await made.result(support.PATIENCE) == {"a": {"text": MEGABYTE}}
        assert (await made.task("a")).input == {"text": MEGABYTE}
        assert (await made.events())[0].properties["tasks"][0]["input"] == {"text": MEGABYTE}


async def test_large_payloads_are_stored_once(url: str) -> None:
    """Content-addressed: the same megabyte from many tasks of a job is one blob."""
    app = support.make(url)

    @app.function
    async def large() -> str:
        return MEGABYTE

    async with app:
        await run(app, *[task(f"t{n}", "large") for n in range(5)])
        blobs = await support.sql(url, "SELECT length(data) FROM blob")
        assert sum(1 for (size,) in blobs if size > 1_000_000) == 1


async def test_the_edge_between_small_and_large(url: str) -> None:
    async with support.opened(url, spill_bytes=1000) as app:
        for size in range(980, 1010, 3):
            text = "x" * size
            assert await run(app, task("a", input={"t": text}), task("b", "join", "a")) == {
                "a": {"t": text},
                "b": {"a": {"t": text}},
            }


async def test_a_large_error_of_a_dead_letter_and_its_large_input(url: str) -> None:
    app = support.make(url)

    @app.function
    async def bad(text: str) -> None:
        raise ValueError(text)

    async with app:
        await support.failure(await app.submit(job(task("a", "bad", input={"text": MEGABYTE}))))
        [letter] = await app.dead_letters()
        assert letter.input == {"text": MEGABYTE}
        assert MEGABYTE.startswith(letter.error["message"])


async def test_input_over_the_limit_is_refused(url: str) -> None:
    async with support.opened(url, max_payload_bytes=LIMIT) as app:
        with pytest.raises(errors.PayloadTooLarge, match="input of task 'b'"):
            await app.submit(job(task("a"), task("b", input={"text": "x" * LIMIT})))
        assert await app.jobs() == []
        at_the_limit = {"t": "x" * (LIMIT - len('{"t":""}'))}
        assert await run(app, task("a", input=at_the_limit)) == {"a": at_the_limit}


async def test_output_over_the_limit_fails_the_attempt(url: str) -> None:
    app = support.make(url, max_payload_bytes=LIMIT)

    @app.function
    async def large() -> str:
        return "x" * LIMIT

    async with app:
        error = await support.failure(await app.submit(job(task("a", "large"))))
        assert error.failed["a"]["type"] == "PayloadTooLarge"
        assert "the output of" in error.failed["a"]["message"]
        assert await run(app, task("b")) == {"b": {}}


def _deep() -> Any:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


def _circle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "make",
    [
        object,
        lambda: float("nan"),
        lambda: [float("inf")],
        lambda: "\ud800",
        lambda: {"a": {1, "x", object()}},
        _deep,
        _circle,
        lambda: 1j,
    ],
    ids=["object", "nan", "inf", "surrogate", "in a set", "deep", "circle", "complex"],
)
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_output_that_is_not_json_fails_the_attempt_not_the_worker(url: str, make: Any, kind: str) -> None:
    app = support.make(url)

    @app.function("async")
    async def slow() -> Any:
        return make()

    @app.function("plain")
    def plain() -> Any:
        return make()

    async with app:
        made = await app.submit(job(task("a", kind), task("b", "join", "a")))
        error = await support.failure(made)
        assert error.failed["a"]["type"] == "InvalidPayload"
        assert error.blocked == ["b"]
        assert await run(app, task("c")) == {"c": {}}


async def test_one_rule_for_everything_that_is_stored(url: str) -> None:
    """Inputs, outputs, results of steps, signals, approvals and events: equal, as listed, or refused by its place."""
    moment = {"at": [datetime.datetime(2026, 11, 16)]}
    refused = pytest.raises(
        errors.InvalidPayload, match=r", at (detail\.)?at\[0\], is a datetime, which JSON cannot say"
    )
    app = support.make(url)

    @app.function
    async def returns() -> Any:
        return moment

    @app.function
    async def steps(ctx: Context) -> Any:
        return await ctx.step("moment", lambda: moment)

    @app.function
    async def asks(ctx: Context) -> Any:
        return await ctx.approve("May it?", payload=moment)

    async with app:
        with refused:
            await app.submit(job(task("a", input=moment)))
        with refused:
            await app.signal("nobody", "go", moment)
        with refused:
            await app.post_events([{"source": "s", "id": "1", "detail-type": "t", "detail": moment}])
        for name in ("returns", "steps", "asks"):
            error = await support.failure(await app.submit(job(task("a", name))))
            assert error.failed["a"]["type"] == "InvalidPayload"
            assert "at at[0], is a datetime" in error.failed["a"]["message"]


async def test_what_is_converted_is_listed(url: str) -> None:
    @dataclasses.dataclass
    class Price:
        amount: float
        sizes: tuple[int, int]

    app = support.make(url)
    expected = {"price": {"amount": 1.5, "sizes": [1, 2]}, "by": {"1": "one"}}

    @app.function
    async def price(ctx: Context) -> Any:
        """What a step gives is what it will give when the function is run again."""
        given = {"price": Price(1.5, (1, 2)), "by": {1: "one"}}
        assert await ctx.step("price", lambda: given) == expected
        return given

    async with app:
        assert await run(app, task("a", "price")) == {"a": expected}


async def test_the_input_of_a_job_is_taken_when_it_is_submitted(url: str) -> None:
    async with support.opened(url) as app:
        given = {"list": [1]}
        made = await app.submit(job(task("a", input=given)))
        given["list"].append(2)
        assert await made.result(support.PATIENCE) == {"a": {"list": [1]}}


async def test_what_one_function_does_to_its_input_no_other_sees(url: str) -> None:
    app = support.make(url)

    @app.function
    async def change(ctx: Any) -> Any:
        ctx.dependency_outputs["a"]["list"].append(ctx.task_id)
        return ctx.dependency_outputs["a"]

    async with app:
        result = await run(app, task("a", input={"list": []}), task("b", "change", "a"), task("c", "change", "a"))
        assert (result["b"], result["c"]) == ({"list": ["b"]}, {"list": ["c"]})
        assert result["a"] == {"list": []}
