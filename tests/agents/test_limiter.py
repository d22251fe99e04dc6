"""Turns in the order of asking, and one refusal that slows everybody with the same key."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from ostinato import errors, outgoing
from ostinato.agents import limiter, llm, throttle
from tests.agents import support

URL, KEY = "https://models.example/v1", "key"


async def call(limits: limiter.Limiter, order: list[int], number: int, seconds: float = 0.0) -> None:
    async with limits.turn(URL, KEY, within=10) as turn:
        order.append(number)
        await asyncio.sleep(seconds)
        turn.answered()


async def test_turns_come_in_the_order_of_asking() -> None:
    limits, order = limiter.Limiter(), list[int]()
    await asyncio.gather(*(call(limits, order, number, 0.001) for number in range(100)))
    assert order == list(range(100))


async def test_no_more_are_under_way_than_the_window_allows() -> None:
    limits, under_way, most = limiter.Limiter(), 0, 0

    async def work() -> None:
        nonlocal under_way, most
        async with limits.turn(URL, KEY, within=10):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.005)
            under_way -= 1

    await asyncio.gather(*(work() for _ in range(30)))
    assert most == throttle.FIRST_WINDOW


async def test_a_refusal_holds_back_all_with_this_key_and_nobody_else() -> None:
    limits = limiter.Limiter()
    started = time.monotonic()
    async with limits.turn(URL, KEY, within=1) as turn:
        assert turn.refused(0.8) == pytest.approx(0.8)
    async with limits.turn(URL, "another key", within=5), limits.turn("https://other.example", KEY, within=5):
        assert time.monotonic() - started < 0.8
    async with limits.turn(URL, KEY, within=5):
        assert time.monotonic() - started >= 0.8


async def test_who_would_wait_too_long_is_told_at_once_when_to_come() -> None:
    limits = limiter.Limiter()
    async with limits.turn(URL, KEY, within=1) as turn:
        turn.refused(40)
    started = time.monotonic()
    with pytest.raises(errors.RetryAfter) as caught:
        async with limits.turn(URL, KEY, within=10):
            pass
    assert caught.value.seconds == pytest.approx(40, abs=1)
    assert time.monotonic() - started < 0.5


async def test_who_has_no_turn_in_time_leaves_the_line() -> None:
    limits, order = limiter.Limiter(), list[int]()
    holding = [asyncio.create_task(call(limits, order, number, 0.3)) for number in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(errors.RetryAfter, match="no turn"):
        async with limits.turn(URL, KEY, within=0.05):
            pass
    await asyncio.gather(*holding, call(limits, order, 9))
    assert order == [0, 1, 2, 3, 9]


async def test_who_is_cancelled_takes_no_turn_with_him() -> None:
    limits, order = limiter.Limiter(), list[int]()
    tasks = [asyncio.create_task(call(limits, order, number, 0.05)) for number in range(20)]
    await asyncio.sleep(0.01)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order[4:] == list(range(5, 20, 2))
    [line] = limits._lines.values()
    assert line.throttle.under_way == 0
    assert line.is_idle()


async def test_a_failed_call_gives_its_turn_back() -> None:
    limits = limiter.Limiter()
    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            async with limits.turn(URL, KEY, within=0.1):
                raise ZeroDivisionError


async def test_few_lines_are_kept_and_none_that_somebody_stands_in() -> None:
    limits = limiter.Limiter()
    async with limits.turn(URL, KEY, within=1) as turn:
        for number in range(limiter.MOST_LINES * 2):
            async with limits.turn(URL, f"key {number}", within=1):
                pass
        assert len(limits) <= limiter.MOST_LINES
        turn.refused(30)
    with pytest.raises(errors.RetryAfter):
        async with limits.turn(URL, KEY, within=1):
            pass


async def test_a_limiter_does_not_hold_the_key() -> None:
    limits = limiter.Limiter()
    async with limits.turn(URL, support.KEY, within=1):
        assert support.KEY not in repr(limits._lines.keys())


class Limited:
    """An endpoint that takes `limit` calls in each span of `span` seconds, and refuses the rest."""

    def __init__(self, endpoint: support.Endpoint, limit: int, span: float, tells: bool) -> None:
        self._limit, self._span, self._tells = limit, span, tells
        self._began, self._count = 0.0, 0
        self.refused = 0
        endpoint.choose = self.choose

    def choose(self, request: support.Request) -> support.Behaviour:
        now = time.monotonic()
        if now - self._began >= self._span:
            self._began, self._count = now, 0
        left = f"{(self._began + self._span - now) * 1000 + 1:.0f}ms"
        if self._count >= self._limit:
            self.refused += 1
            return support.refusing(429, headers={"x-ratelimit-reset-requests": left})
        self._count += 1
        told = {"x-ratelimit-remaining-requests": str(self._limit - self._count), "x-ratelimit-reset-requests": left}
        return support.saying(after=0.02, headers=told if self._tells else None)


@pytest.fixture
async def endpoint() -> AsyncIterator[support.Endpoint]:
    async with support.running() as endpoint:
        yield endpoint


async def refusals(endpoint: support.Endpoint, *, shared: bool, tells: bool) -> int:
    """How often 20 agents are refused until all of them have an answer. Each comes again when it was told to."""
    limited = Limited(endpoint, limit=5, span=0.5, tells=tells)
    caller = outgoing.Caller(outgoing.CallOptions(allow=("127.0.0.1/32",)))
    one = llm.Llm(caller)
    settings = llm.LlmSettings(model="m", base_url=endpoint.base_url, api_key=support.KEY)

    async def agent() -> None:
        while True:
            try:
                await (one if shared else llm.Llm(caller)).ask(settings, "?", support.SCHEMA, timeout=20)
                return
            except errors.RetryAfter as error:
                await asyncio.sleep(error.seconds)

    await asyncio.gather(*(agent() for _ in range(20)))
    return limited.refused


async def test_a_burst_of_twenty_agents_is_refused_only_a_few_times(endpoint: support.Endpoint) -> None:
    alone = await refusals(endpoint, shared=False, tells=False)
    together = await refusals(endpoint, shared=True, tells=False)
    told = await refusals(endpoint, shared=True, tells=True)
    print(f"refusals: {alone} without a shared limiter, {together} with it, {told} if the endpoint tells what is left")
    assert alone >= 25
    assert together <= alone / 2
    assert told <= alone / 4
