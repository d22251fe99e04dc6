"""Random pipelines through anything that can happen to their items, against a naive model, on both databases."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ostinato import EngineOptions, Ostinato, errors, testing
from ostinato.core import courses
from tests.properties.random_pipelines import DELAY, OUTCOMES, Model, pipelines

EXAMPLES = int(os.environ.get("OSTINATO_EXAMPLES", "40"))
MOST_STEPS = 20
ACTIONS = ("wait", "wait", "approve", "approve", "reject", "again", "cancel", "roll back", "restart", "restart", "skip")


class World:
    """The application, whose steps do what the plan of their item says."""

    def __init__(self, url: str) -> None:
        self.app = Ostinato(url, options=EngineOptions(prune_every_seconds=None))
        self.plans: dict[str, dict[str, list[str]]] = {}
        self.calls: dict[str, dict[str, int]] = collections.defaultdict(dict)
        self.undone: dict[str, list[str]] = collections.defaultdict(list)
        for number in range(1, MOST_STEPS):
            self._add(number)

        @self.app.step("undo")
        async def undo(item_id: str, output: str) -> None:
            self.undone[item_id].append(output)

    def _add(self, number: int) -> None:
        @self.app.step(f"work{number}")
        async def work(ctx: Any, item_id: str) -> str:
            calls = self.calls[item_id]
            calls[ctx.task_id] = calls.get(ctx.task_id, 0) + 1
            left = self.plans[item_id].get(ctx.task_id, [])
            outcome = left.pop(0) if left else "ok"
            if outcome == "retry":
                raise ConnectionError("try again")
            if outcome == "terminal":
                raise errors.TerminalError("it never will")
            if outcome == "end":
                await ctx.finish("gone")
            return ctx.task_id


class Life:
    """One item and its model, which go through the same."""

    def __init__(self, kit: testing.Kit, world: World, document: dict[str, Any], plan: dict[str, list[str]]) -> None:
        self.kit, self.world, self.document = kit, world, document
        self.item_id = document["name"]
        world.plans[self.item_id] = {name: [*outcomes] for name, outcomes in plan.items()}
        self.plan = plan

    async def begin(self) -> None:
        pipelines = self.kit.app.pipelines
        version = await pipelines.define(self.document)
        self.course = await pipelines.course(self.document["name"], version)
        await pipelines.enter(self.document["name"], {}, item_id=self.item_id)
        await self.kit.run_until_idle()
        self.model = Model(self.document, self.plan)

    async def act(self, action: str, place: str) -> None:
        pipelines, model = self.kit.app.pipelines, self.model
        asked = any(one.how == "asked" for one in model.places) and model.over is None
        if action == "wait":
            await self.kit.advance(DELAY)
            if model.over is None:
                model.run(due=True)
        elif action in ("approve", "reject", "again"):
            if not asked:
                with contextlib.suppress(errors.NotPossible, errors.ApprovalDecided):
                    assert (await pipelines.decide(self.item_id, action, actor="ann")).again
                return
            await pipelines.decide(self.item_id, action, actor="ann")
            if action == "again":
                model.restart(model.entry(model.asked().name)["again"]["again"])
            else:
                getattr(model, action)()
                if action == "reject":
                    await self._stays_over()
        elif action == "cancel":
            item, _ = await pipelines.item(self.item_id)
            await (await self.kit.app.job(item.job_id or "")).cancel()
            model.cancel()
        elif action == "roll back":
            await self._roll_back()
        elif action == "skip":
            await self._skip()
        else:
            await self._restart(place)
        await self.kit.run_until_idle()

    async def _roll_back(self) -> None:
        item, _ = await self.kit.app.pipelines.item(self.item_id)
        failed = self.course.failed
        if item.status not in (failed, self.course.dead) and (item.status, failed) not in self.course.moves:
            with pytest.raises(errors.IllegalMove):
                await self.kit.app.pipelines.roll_back(self.item_id)
            return
        await self.kit.app.pipelines.roll_back(self.item_id)
        self.model.roll_back()
        await self._stays_over()

    async def _stays_over(self) -> None:
        item, _ = await self.kit.app.pipelines.item(self.item_id)
        for dry_run in (True, False):
            with pytest.raises(errors.NotPossible):
                await (await self.kit.app.job(item.job_id or "")).resume(dry_run=dry_run)

    async def _skip(self) -> None:
        """Whatever holds it up, unless people are asked: they have to decide."""
        held = [one for one in self.model.places if not one.done and one.how != "blocked"]
        if held and self.model.over is None:
            item, _ = await self.kit.app.pipelines.item(self.item_id)
            job = await self.kit.app.job(item.job_id or "")
            if held[0].kind == "review":
                with pytest.raises(errors.NotPossible, match="decide on the item instead"):
                    await job.skip_task(held[0].name)
                return
            await job.skip_task(held[0].name)
            self.model.skip(held[0].name)

    async def _restart(self, place: str) -> None:
        item, _ = await self.kit.app.pipelines.item(self.item_id)
        if not self.model.may_restart(place):
            with pytest.raises(errors.NotPossible, match="not done"):
                await self.kit.app.pipelines.restart(self.item_id, place)
            return
        begins_at = self.course.stops[self.model.begins_at(place)].codes[0]
        if begins_at not in (item.status, *self._ways(item.status)):
            elsewhere = place in self.course.reviews or place == self.course.stops[-1].name
            assert elsewhere or self.model.is_ahead(place), "the way back to work is always open"
            with pytest.raises(errors.IllegalMove):
                await self.kit.app.pipelines.restart(self.item_id, place)
            return
        await self.kit.app.pipelines.restart(self.item_id, place)
        self.model.restart(place)

    def _ways(self, status: int) -> set[int]:
        return {after for before, after in self.course.moves if before == status}

    async def check(self) -> None:
        pipelines = self.kit.app.pipelines
        item, _ = await pipelines.item(self.item_id)
        assert self.course.names[item.status] == self.model.status
        assert item.open == (item.status in self.course.open)
        assert self.world.calls[self.item_id] == self.model.calls
        assert self.world.undone[self.item_id] == self.model.undone
        at = courses.NOWHERE
        for move in await pipelines.history(self.item_id):
            assert move.from_code == at
            still = move.from_code == move.to_code and move.how is not None
            assert still or (move.from_code, move.to_code) in self.course.moves
            at = move.to_code
        assert at == item.status


@pytest.fixture
def on_loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.timeout(600)
def test_items_stand_where_the_model_says(url: str, on_loop: asyncio.Runner) -> None:
    world = World(url)
    opening = testing.open(world.app)
    kit = on_loop.run(opening.__aenter__())

    async def live(document: dict[str, Any], plan: dict[str, list[str]], actions: list[tuple[str, int]]) -> None:
        life = Life(kit, world, document, plan)
        await life.begin()
        await life.check()
        places = [stop.name for stop in life.course.stops]
        for action, number in actions:
            await life.act(action, places[number % len(places)])
            await life.check()

    numbers = itertools.count()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink) if EXAMPLES > 40 else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(
        pipelines(),
        st.dictionaries(
            st.sampled_from([f"s{n}" for n in range(1, 9)]), st.lists(st.sampled_from(OUTCOMES), max_size=4), max_size=5
        ),
        st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 20)), max_size=8),
    )
    def run(document: dict[str, Any], plan: dict[str, list[str]], actions: list[tuple[str, int]]) -> None:
        on_loop.run(live(document | {"name": f"p{next(numbers)}"}, plan, actions))

    try:
        run()
        on_loop.run(kit.audit())
    finally:
        on_loop.run(opening.__aexit__(None, None, None))
