"""Random graphs with everything that is done to them, told to an engine and to a model that is too simple to be wrong.

The model forgets how a task came to stand where it stands: after each order it looks at the whole graph again, until
nothing changes. Two engines take turns on one database."""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from ostinato import audit, errors
from ostinato.core import codec, commands, graph, rows
from ostinato.store import snapshots, store
from tests.engine import support
from tests.properties.test_commands import FAILURE, Clock

STORIES = int(os.environ.get("OSTINATO_EXAMPLES", "40"))
TURNS = 35
ATTEMPTS = 2
POLICY = rows.FunctionPolicy(ATTEMPTS, None)
AGAIN = ("failed", "cancelled", "skipped")


@dataclasses.dataclass
class Node:
    """A task, as the model sees it: `ready` is whatever may begin, or has begun and goes on by itself."""

    ups: list[str]
    policy: str
    optional: bool
    external: bool
    state: str = "blocked"
    by_hand: bool = False
    """It was skipped by somebody, not because of another one."""
    begun: int = 0
    """Attempts since it was last told to run again, without those that were handed back."""
    claimed: bool = False
    """Somebody had it in this pass."""


class Model:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.job = "running"

    def outcome(self, up: Node, policy: str) -> str:
        if up.state == "completed" or (up.state == "skipped" and up.by_hand):
            return "good"
        if up.state in ("failed", "skipped"):
            return "good" if up.optional and policy != "skip" else "bad"
        return "bad" if up.state == "cancelled" else "open"

    def settle(self) -> None:
        """Look at all that have not begun, until nothing changes, and end the job when nothing is left."""
        moved = True
        while moved:
            moved = False
            for node in self.nodes.values():
                if node.state != "blocked":
                    continue
                outcomes = {self.outcome(self.nodes[up], node.policy) for up in node.ups}
                if node.policy == "skip" and "bad" in outcomes:
                    node.state, moved = "skipped", True
                elif not outcomes - ({"good", "bad"} if node.policy == "run" else {"good"}):
                    node.state, moved = "ready", True
        if self.job == "running" and not any(node.state == "ready" for node in self.nodes.values()):
            wrong = any(
                node.state in ("blocked", "cancelled") or (node.state == "failed" and not node.optional)
                for node in self.nodes.values()
            )
            self.job = "failed" if wrong else "completed"

    def anew(self, again: list[str]) -> None:
        """These run again. All that has not begun, or was skipped for another, is looked at afresh."""
        for name in again:
            self.nodes[name].state, self.nodes[name].begun = "blocked", 0
        for node in self.nodes.values():
            if node.state == "skipped" and not node.by_hand:
                node.state = "blocked"
            if node.state == "ready" and not node.begun:
                node.state = "blocked"
            node.claimed = node.claimed and node.state != "blocked"
        for name in again:
            self.nodes[name].by_hand = False
        self.job = "running"
        self.settle()

    # --- what is done ----------------------------------------------------------------------------------------------

    def add(self, name: str, node: Node) -> None:
        self.nodes[name] = node

    def end(self, name: str, state: str) -> None:
        self.nodes[name].state = state
        self.settle()

    def skip(self, name: str) -> None:
        self.nodes[name].state, self.nodes[name].by_hand = "skipped", True
        self.anew([])

    def resumed(self) -> list[str]:
        """What a resume runs again: an optional task only if others were skipped for it."""

        def matters(name: str) -> bool:
            downs = [node for node in self.nodes.values() if name in node.ups]
            return any(down.state == "skipped" and not down.by_hand for down in downs)

        return [
            name
            for name, node in self.nodes.items()
            if node.state == "cancelled" or (node.state == "failed" and (not node.optional or matters(name)))
        ]

    def cancel_all(self) -> None:
        for node in self.nodes.values():
            if node.state in ("blocked", "ready"):
                node.state = "cancelled"
        self.job = "cancelled"


class Story:
    """One job, and what happens to it there and in the model."""

    def __init__(self, seed: int, stores: list[store.Store], clock: Clock) -> None:
        self.draw = random.Random(seed)
        self.stores, self.clock = stores, clock
        self.job_id = f"graph-{seed}"
        self.model = Model()
        self.leases: dict[str, rows.Lease] = {}
        self.names = 0

    def number(self) -> int:
        self.names += 1
        return self.names

    def new_tasks(self, count: int) -> tuple[list[dict[str, Any]], list[tuple[str, Node]]]:
        draw, documents, nodes = self.draw, list[dict[str, Any]](), list[tuple[str, Node]]()
        for _ in range(count):
            known = [*self.model.nodes, *[name for name, _ in nodes]]
            ups = draw.sample(known, min(len(known), draw.choice([0, 1, 1, 2, 3])))
            kind = draw.choice([{}, {}, {}, {"external": True}, {"delay": 5}])
            node = Node(ups, draw.choice(["block", "skip", "run"]), draw.random() < 0.3, "external" in kind)
            nodes.append((f"t{self.number()}", node))
            documents.append(
                kind
                | {
                    "taskId": nodes[-1][0],
                    "name": "one",
                    "dependsOn": ups,
                    "optional": node.optional,
                    "onDependencyFailure": node.policy,
                }
            )
        draw.shuffle(documents)
        return documents, nodes

    async def give(self, command: commands.Command) -> Any:
        """One of the two engines gets it."""
        outcome = await self.draw.choice(self.stores).execute("default", [command])
        [answer] = outcome.answers
        if isinstance(answer, store.Refused):
            raise answer.error
        return answer

    async def submit(self) -> None:
        documents, nodes = self.new_tasks(self.draw.randint(2, 9))
        limits = self.draw.choice([{}, {}, {"maxConcurrency": 1}])
        spec = graph.read_job({"jobId": self.job_id, "tasks": documents} | limits)
        await self.give(commands.Submit(self.job_id, spec, [codec.EMPTY_OBJECT] * len(spec.tasks)))
        self.model.nodes = dict(nodes)
        self.model.settle()

    async def turn(self) -> None:
        self.clock.now += self.draw.choice([0, 1_000_000, 6_000_000])
        found = await self.read()
        for timer in found.timers.values():
            if timer.due_at is not None and timer.due_at <= self.clock.now:
                await self.give(commands.FireTimer(timer))
        await self.draw.choice([self.claim, self.claim, self.work, self.work, self.work, self.order])()
        self.compare(await self.read())

    async def read(self) -> snapshots.Snapshot:
        found = await self.stores[0].db.read(lambda: snapshots.read("default", self.job_id))
        assert found is not None
        return found

    async def claim(self) -> None:
        target = self.draw.choice(self.stores)
        token = f"{self.job_id}-{self.number()}"
        claim = commands.Claim("w", token, {"one": POLICY}, frozenset({"default"}), 2, {})
        for lease in (await target.execute("default", [], claim)).leases:
            node = self.model.nodes[lease.task_id]
            assert node.state == "ready", (lease.task_id, node)
            ups = {self.model.outcome(self.model.nodes[up], node.policy) for up in node.ups}
            assert node.claimed or "open" not in ups, (lease.task_id, node)
            node.begun += 1
            node.claimed = True
            self.leases[lease.task_id] = lease

    async def work(self) -> None:
        """A worker, or somebody outside, says how a task has ended; or a function adds tasks."""
        outside = [name for name, node in self.model.nodes.items() if node.external and node.state == "ready"]
        if outside and self.draw.random() < 0.5:
            name = self.draw.choice(outside)
            good = self.draw.random() < 0.6
            await self.give(
                commands.CompleteTask(self.job_id, name, b"1")
                if good
                else commands.FailTask(self.job_id, name, FAILURE)
            )
            self.model.end(name, "completed" if good else "failed")
            return
        if not self.leases:
            return
        name = self.draw.choice([*self.leases])
        lease = self.leases[name]
        if self.draw.random() < 0.15:
            await self.add(lease)
            return
        del self.leases[name]
        how = self.draw.choice(["complete", "complete", "fail", "retry", "lost", "release"])
        if how == "complete":
            await self.give(commands.Complete(lease, b"{}"))
            self.model.end(name, "completed")
        elif how == "release":
            await self.give(commands.Release(lease, "not now"))
            self.model.nodes[name].begun -= 1
        else:
            lost = commands.Expire(self.job_id, name, lease.token, FAILURE)
            failed = commands.Fail(lease, FAILURE, how == "retry", self.draw.choice([0, 3]))
            await self.give(lost if how == "lost" else failed)
            if how == "fail" or self.model.nodes[name].begun >= ATTEMPTS:
                self.model.end(name, "failed")

    async def add(self, lease: rows.Lease | None = None) -> None:
        documents, nodes = self.new_tasks(self.draw.randint(1, 3))
        specs = graph.read_tasks(documents)
        inputs = [codec.EMPTY_OBJECT] * len(specs)
        command = commands.AddTasks(self.job_id, specs, inputs, lease, f"k{self.number()}")
        if await self.takes(command, self.model.job == "running"):
            self.model.nodes |= dict(nodes)
            self.model.settle()

    async def takes(self, command: commands.Command, may: bool) -> bool:
        """Whether the engine carries an order out, which must be what the model says."""
        try:
            await self.give(command)
        except errors.OstinatoError:
            if may:
                raise
            return False
        assert may, command
        return True

    async def order(self) -> None:
        model, name = self.model, self.draw.choice([*self.model.nodes])
        node, over = model.nodes[name], model.job == "completed"
        ways: list[Callable[[], Any]] = [self.resume, self.resume, self.add, self.retry]
        if self.draw.random() < 0.05:
            ways = [self.cancel_job]
        if self.draw.random() < 0.3:
            ways = [lambda: self.cancel(name, node)]
        if self.draw.random() < 0.3:
            ways = [lambda: self.skip(name, node, over)]
        if model.job != "running" and self.draw.random() < 0.7:
            ways = [self.resume]
        await self.draw.choice(ways)()
        self.leases = {t: lease for t, lease in self.leases.items() if model.nodes[t].state == "ready"}

    async def cancel_job(self) -> None:
        await self.give(commands.CancelJob(self.job_id))
        if self.model.job == "running":
            self.model.cancel_all()

    async def cancel(self, name: str, node: Node) -> None:
        open_ = node.state in ("blocked", "ready")
        if await self.takes(commands.CancelTask(self.job_id, name), self.model.job == "running") and open_:
            self.model.end(name, "cancelled")

    async def skip(self, name: str, node: Node, over: bool) -> None:
        by_hand = node.state == "skipped" and node.by_hand
        may = by_hand or (node.state != "completed" and not over)
        if await self.takes(commands.SkipTask(self.job_id, name), may) and not by_hand:
            self.model.skip(name)

    async def resume(self) -> None:
        again = self.model.resumed()
        running = self.model.job == "running"
        repaired = {name: b'{"repaired":true}' for name in again if self.draw.random() < 0.3}
        may = self.model.job != "completed" and (bool(again) or not running)
        if await self.takes(commands.Resume(self.job_id, repaired), may):
            self.model.anew(again)

    async def retry(self) -> None:
        nodes = self.model.nodes
        names = self.draw.sample([*nodes], min(len(nodes), self.draw.choice([1, 1, 2])))
        fit = all(nodes[name].state in AGAIN for name in names)
        if any(nodes[name].state == "ready" for name in names) or self.model.job == "completed":
            return  # what is only due later is made due now, which the model does not tell apart
        if await self.takes(commands.RetryTasks(self.job_id, names), fit):
            self.model.anew(names)

    def compare(self, found: snapshots.Snapshot) -> None:
        stands = {name: task.state for name, task in found.tasks.items()}
        named = {"pending": "ready", "processing": "ready", "waiting": "ready"}
        told = {name: named.get(state, state) for name, state in stands.items()}
        assert told == {name: node.state for name, node in self.model.nodes.items()}
        by_hand = {
            name for name, task in found.tasks.items() if task.state == "skipped" and not task.skipped_by_dependency
        }
        assert by_hand == {n for n, node in self.model.nodes.items() if node.state == "skipped" and node.by_hand}
        assert found.job.state == self.model.job

    async def tell(self) -> None:
        await self.submit()
        self.compare(await self.read())
        for _ in range(TURNS):
            await self.turn()
        await self.stores[0].execute("default", [commands.CancelJob(self.job_id)])


@pytest.mark.timeout(600 + STORIES)
async def test_graphs_do_as_the_model_says_whatever_is_done_to_them(url: str) -> None:
    """No task begins before each of its dependencies has ended in this pass."""
    clock = Clock()
    idle: dict[str, Any] = {
        "work": False,
        "maintain": False,
        "check_functions": False,
        "poll_seconds": 60,
        "clock": clock,
    }
    async with support.opened(url, **idle) as one, support.opened(url, **idle) as other:
        stores = [one.engine.store, other.engine.store]
        for seed in range(STORIES):
            try:
                await Story(seed, stores, clock).tell()
            except BaseException as error:
                error.add_note(f"in story {seed}")
                raise
        assert not (await audit.audit(one.engine.store)).problems
