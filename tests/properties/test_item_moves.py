"""Random moves of items by raw SQL, on both databases: legal ones are made and written down, others are refused."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

import apsw
import asyncpg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ostinato import EngineOptions, Ostinato
from ostinato.core import courses
from tests.pipelines.support import publishing
from tests.properties.random_pipelines import pipelines

EXAMPLES = int(os.environ.get("OSTINATO_EXAMPLES", "20"))
REFUSED = (apsw.SQLError, asyncpg.CheckViolationError)
MOVE = "UPDATE item SET status = {status}{more} WHERE item_id = '{item_id}'"


class Sql:
    """Somebody with a connection of their own."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> Sql:
        lite = url.startswith("sqlite:///")
        return cls(apsw.Connection(url.removeprefix("sqlite:///")) if lite else await asyncpg.connect(url))

    async def execute(self, sql: str) -> None:
        answer = self._connection.execute(sql)
        if isinstance(self._connection, apsw.Connection):
            answer.fetchall()
        else:
            await answer

    async def close(self) -> None:
        answer = self._connection.close()
        if answer is not None:
            await answer


async def check_moves(app: Ostinato, sql: Sql, document: dict[str, Any], wanted: list[int]) -> None:
    """Each number is the index of the status to go to; every second one is turned into a legal move."""
    name = document["name"]
    version = await app.pipelines.define(document)
    course = await app.pipelines.course(name, version)
    await app.pipelines.enter(name, {}, item_id=name, hold=True)
    known = [(courses.NOWHERE, course.initial)]
    at = course.initial
    for number in wanted:
        legal = sorted(after for before, after in course.moves if before == at)
        codes = [*course.names, 7, course.initial]
        after = legal[number % len(legal)] if number % 2 and legal else codes[number % len(codes)]
        move = MOVE.format(status=after, item_id=name, more="")
        if after == at:
            await sql.execute(move)
        elif (at, after) in course.moves:
            await sql.execute(move)
            known.append((at, after))
            at = after
        else:
            with pytest.raises(REFUSED, match=f"item {name} cannot go from {at} to {after}"):
                await sql.execute(move)
    assert [(move.from_code, move.to_code) for move in await app.pipelines.history(name)] == known
    assert (await app.pipelines.item(name))[0].status == at


@pytest.fixture
def on_loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.timeout(300)
def test_b7_the_database_makes_the_moves_of_the_definition_and_no_others(url: str, on_loop: asyncio.Runner) -> None:
    """B6, B7: random pipelines and that of the seed, random moves."""
    app = Ostinato(url, options=EngineOptions(work=False, maintain=False, check_functions=False))
    on_loop.run(app.start())
    sql = on_loop.run(Sql.open(url))
    numbers = itertools.count()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.just(publishing()) | pipelines(), st.lists(st.integers(0, 1000), min_size=1, max_size=20))
    def run(document: dict[str, Any], wanted: list[int]) -> None:
        on_loop.run(check_moves(app, sql, document | {"name": f"p{next(numbers)}"}, wanted))

    try:
        run()
    finally:
        on_loop.run(sql.close())
        on_loop.run(app.stop())


async def test_nobody_else_says_by_which_way_an_item_came(url: str) -> None:
    """The engine says in `via` which moves it made at once; whoever finds that there, or makes it up, gets nowhere."""
    app = Ostinato(url, options=EngineOptions(check_functions=False, prune_every_seconds=None))

    async def work(item: Any) -> str:
        return "done"

    for name in ("fetch", "score", "summarize", "tag", "thumbnail"):
        app.step(name)(work)
    async with app:
        await app.pipelines.define(publishing())
        await app.pipelines.enter("publishing", {}, item_id="a1")
        async with asyncio.timeout(20):
            while (await app.pipelines.item("a1"))[0].status != 300:
                await asyncio.sleep(0.01)
        last = await app.pipelines.history("a1")
        sql = await Sql.open(url)
        try:
            made_up = json.dumps([{"from": 300, "to": 310}, {"from": 231, "to": 232}])
            for more in (f", via = '{made_up}'", ""):
                with pytest.raises(REFUSED, match=r"item a1 cannot go from 3.0 to 232"):
                    await sql.execute(MOVE.format(status=232, item_id="a1", more=more))
            await sql.execute(MOVE.format(status=220, item_id="a1", more=""))
            for move in last[::-1]:  # the way that it came, of which the end is in `via` still
                if (220, move.from_code) not in (await app.pipelines.course("publishing", 1)).moves:
                    continue
                await sql.execute(MOVE.format(status=move.from_code, item_id="a1", more=""))
                with pytest.raises(REFUSED, match=f"cannot go from {move.from_code} to 300"):
                    await sql.execute(MOVE.format(status=300, item_id="a1", more=""))
                break
        finally:
            await sql.close()
