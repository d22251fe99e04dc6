"""Random commands in random batches, by two processes at once, against rules that are too simple to be wrong.

Nobody runs anything here: the story claims, reports, suspends, expires and fires timers itself, in any order, and lets
people meddle in between. After every transaction the tasks of the job must stand as their dependencies say.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from ostinato import audit
from ostinato.core import codec, commands, graph, rows
from ostinato.store import snapshots, store
from tests.engine import support

STORIES = int(os.environ.get("OSTINATO_EXAMPLES", "40"))
TURNS = 25
POLICY = rows.FunctionPolicy(3, None)
FAILURE = commands.make_failure("Refused", "as asked")


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now


class Story:
    """One job, and what happens to it."""

    def __init__(self, seed: int, stores: list[store.Store], clock: Clock) -> None:
        self.draw = random.Random(seed)
        self.stores, self.clock = stores, clock
        self.job_id = f"story-{seed}"
        self.names = 0
        self.leases: list[rows.Lease] = []
        self.completed: dict[str, int] = {}
        self.stood: dict[str, str] = {}
        self.alone = False
        """Only one command was carried out since the last look."""

    def number(self) -> int:
        self.names += 1
        return self.names

    def new_tasks(self, count: int, known: list[str]) -> list[dict[str, Any]]:
        draw, made = self.draw, list[dict[str, Any]]()
        for _ in range(count):
            ups = known + [one["taskId"] for one in made]
            begins = draw.choice([{}, {}, {}, {}, {"external": True}, {"delay": 5}])
            made.append(
                begins
                | {
                    "taskId": f"t{self.number()}",
                    "name": draw.choice(["one", "other"]),
                    "dependsOn": draw.sample(ups, min(len(ups), draw.choice([0, 1, 1, 2]))),
                    "optional": draw.random() < 0.3,
                    "onDependencyFailure": draw.choice(["block", "skip", "run"]),
                }
            )
        draw.shuffle(made)
        return made

    def submit(self) -> commands.Command:
        limits = self.draw.choice([{}, {"deadline": 20}, {"maxConcurrency": 1}, {"maxConcurrency": 2}])
        spec = graph.read_job({"jobId": self.job_id, "tasks": self.new_tasks(self.draw.randint(1, 7), [])} | limits)
        return commands.Submit(self.job_id, spec, [codec.EMPTY_OBJECT] * len(spec.tasks))

    def add_tasks(self, known: list[str]) -> commands.Command:
        specs = graph.read_tasks(self.new_tasks(self.draw.randint(1, 3), known))
        return commands.AddTasks(self.job_id, specs, [codec.EMPTY_OBJECT] * len(specs))

    def command(self, snapshot: snapshots.Snapshot) -> commands.Command:
        draw, job_id = self.draw, self.job_id
        task_id = draw.choice([*snapshot.tasks])
        timers = [*snapshot.timers.values()]
        people: list[Callable[[], commands.Command]] = [
            lambda: commands.CancelTask(job_id, task_id),
            lambda: commands.CancelTask(job_id, task_id),
            lambda: commands.SkipTask(job_id, task_id),
            lambda: commands.RetryTasks(job_id, [task_id]),
            lambda: commands.RetryTasks(job_id, draw.sample([*snapshot.tasks], min(3, len(snapshot.tasks)))),
            lambda: commands.Resume(job_id, deadline=draw.choice([None, 10.0])),
            lambda: self.add_tasks([*snapshot.tasks]),
            lambda: commands.SendSignal(job_id, "go", f"s{self.number()}", b"1"),
            lambda: commands.CompleteTask(job_id, task_id, b"1"),
            lambda: commands.FailTask(job_id, task_id, FAILURE),
        ]
        if draw.random() < 0.02:
            return commands.CancelJob(job_id)
        if snapshot.job.state != "running" and draw.random() < 0.6:
            return commands.Resume(job_id)
        if timers and draw.random() < 0.4:
            return commands.FireTimer(draw.choice(timers))
        if not self.leases or draw.random() < 0.4:
            return draw.choice(people)()
        lease = self.leases.pop(draw.randrange(len(self.leases)))
        workers: list[Callable[[], commands.Command]] = [
            lambda: commands.Complete(lease, b"{}"),
            lambda: commands.Complete(lease, b"{}"),
            lambda: commands.Fail(lease, FAILURE, draw.random() < 0.5, draw.choice([0, 3])),
            lambda: commands.Expire(job_id, lease.task_id, lease.token, FAILURE),
            lambda: commands.Release(lease, "not now"),
            lambda: commands.Suspend(lease, "sleep", f"k{self.number()}", seconds=draw.choice([0, 3])),
            lambda: commands.Suspend(lease, "wait", f"k{self.number()}", "go", draw.choice([None, 0, 3])),
        ]
        return draw.choice(workers)()

    async def turn(self, target: store.Store, snapshot: snapshots.Snapshot) -> None:
        batch = [self.command(snapshot) for _ in range(self.draw.choice([0, 1, 1, 1, 3]))]
        self.alone = len(batch) < 2
        token = f"{self.job_id}-{self.number()}"
        functions = {"one": POLICY, "other": POLICY}
        claim = commands.Claim("w", token, functions, frozenset({"default"}), 2, {"one": 1})
        try:
            outcome = await target.execute("default", batch, claim)
        except Exception:  # as the committer does: what is wrong with one of them is its own trouble
            if len(batch) < 2:
                raise
            for command in batch:
                await target.execute("default", [command])
        else:
            self.leases += [lease for lease in outcome.leases if lease.job_id == self.job_id]

    async def read(self) -> snapshots.Snapshot:
        found = await self.stores[0].db.read(lambda: snapshots.read("default", self.job_id))
        assert found is not None
        return found

    async def tell(self) -> None:
        await self.stores[0].execute("default", [self.submit()])
        for _ in range(TURNS):
            self.clock.now += self.draw.choice([0, 1_000_000, 6_000_000])
            snapshot = await self.read()
            both = self.draw.random() < 0.2
            writers = self.stores if both else [self.draw.choice(self.stores)]
            await asyncio.gather(*[self.turn(target, snapshot) for target in writers])
            self.alone = self.alone and not both
            self.check(await self.read())
        await self.stores[0].execute("default", [commands.CancelJob(self.job_id)])

    def check(self, snapshot: snapshots.Snapshot) -> None:
        tasks, job = snapshot.tasks, snapshot.job
        for task in tasks.values():
            ups = [looks(tasks[up], task.policy) for up in snapshot.edges.get(task.task_id, [])]
            if task.state == "blocked":
                assert not all(up == "good" or (up == "bad" and task.policy == "run") for up in ups), (task, ups)
                assert task.policy != "skip" or "bad" not in ups, (task, ups)
            if task.state == "skipped" and task.skipped_by_dependency:
                assert task.policy == "skip", (task, ups)
                assert "bad" in ups, (task, ups)
            if self.alone and self.stood.get(task.task_id) == "blocked" and task.state in ("pending", "processing"):
                assert task.policy == "run" or "bad" not in ups, (task, ups)
            if task.state == "completed":
                assert self.completed.setdefault(task.task_id, task.attempt) == task.attempt, task
        self.stood = {task.task_id: task.state for task in tasks.values()}
        assert all(tasks[task_id].state == "completed" for task_id in self.completed)
        wrong = any(
            t.state in ("blocked", "cancelled") or (t.state == "failed" and not t.optional) for t in tasks.values()
        )
        assert job.state not in ("completed", "failed") or wrong == (job.state == "failed"), job


def looks(task: rows.Task, policy: str) -> str:
    """How a task looks to one with that policy that depends on it."""
    if task.state == "completed" or (task.state == "skipped" and not task.skipped_by_dependency):
        return "good"
    if task.state in ("failed", "skipped"):
        return "good" if task.optional and policy != "skip" else "bad"
    return "bad" if task.state == "cancelled" else "open"


@pytest.mark.timeout(300)
async def test_tasks_stand_as_their_dependencies_say_whatever_happens(url: str) -> None:
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
