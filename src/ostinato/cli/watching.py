"""Following a job to its end: a live tree on a terminal, a line for each change where nothing can be drawn."""

from __future__ import annotations

import asyncio
import datetime
import sys
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from ostinato import app as app_
from ostinato import views
from ostinato.cli import events, output, session
from ostinato.core import states

TICK_SECONDS = 0.15
QUIET_SECONDS = 1.0
"""How often a large job reports on itself in a pipe."""
LARGE = 1000
"""From this many tasks on, a line for each event would be read by nobody."""
INTERESTING = (states.FAILED, states.PROCESSING, states.WAITING, states.PENDING, states.CANCELLED, states.BLOCKED)
FEW = 12
SHARE = 5
"""Looking for tasks may take one part in this of the time, so that a job of 100,000 is not slowed by being watched."""


class Snapshot(NamedTuple):
    """What there is to see of a job: its counts, and the tasks that are worth a line."""

    job: views.JobView
    tasks: list[views.TaskView]
    waits: dict[str, str]
    now: datetime.datetime


async def watch(app: app_.Ostinato, job: app_.Job, *, as_json: bool) -> views.JobView:
    """Show the job until it ends; how it ended."""
    if as_json:
        return await _watch_documents(job)
    if sys.stdout.isatty() and not output.console().is_dumb_terminal:
        from ostinato.cli import tree

        return await tree.show(Follower(app, job))
    info = await job.info()
    if info.total_tasks <= LARGE:
        async for event in events.stream(job):
            output.say(events.line(event))
        info = await job.info()
        output.say(summary(info))
        return info
    return await _watch_counts(job)


async def _watch_documents(job: app_.Job) -> views.JobView:
    info, seen = await job.info(), None
    async for info in infos(job, TICK_SECONDS):
        if info != seen:
            output.json_line(info)
        seen = info
    return info


async def _watch_counts(job: app_.Job) -> views.JobView:
    info, seen = await job.info(), ""
    async for info in infos(job, QUIET_SECONDS):
        line = summary(info)
        if line != seen:
            output.say(line)
        seen = line
    return info


def summary(info: views.JobView) -> str:
    return f"job {info.job_id} ({info.name}) is {info.state}: {output.counts(info.task_statuses)}"


async def infos(job: app_.Job, seconds: float) -> AsyncIterator[views.JobView]:
    """How the job stands, again and again, until it has ended."""
    while True:
        info = await session.patiently(job.info)
        yield info
        if info.state in states.JOB_ENDED:
            return
        await asyncio.sleep(seconds)


class Follower:
    """Takes snapshots of a job. The counts are always fresh; the tasks are looked for as often as that is cheap."""

    def __init__(self, app: app_.Ostinato, job: app_.Job) -> None:
        self.app = app
        self.job = job
        self._tasks: list[views.TaskView] = []
        self._waits: dict[str, str] = {}
        self._look_again_at = 0.0

    async def snapshots(self, room: int) -> AsyncIterator[Snapshot]:
        async for info in infos(self.job, TICK_SECONDS):
            if time.monotonic() >= self._look_again_at or info.state != states.RUNNING:
                started = time.monotonic()
                await session.patiently(lambda info=info: self._look(info, room))
                self._look_again_at = time.monotonic() + SHARE * (time.monotonic() - started)
            yield Snapshot(info, self._tasks, self._waits, session.now(self.app))

    async def _look(self, info: views.JobView, room: int) -> None:
        self._tasks = await self._find_tasks(info, room)
        self._waits = await self._find_waits()

    async def _find_tasks(self, info: views.JobView, room: int) -> list[views.TaskView]:
        """All of a small job; of a large one those that fail, run and wait, in this order."""
        if info.total_tasks <= room:
            return await self.job.tasks(most=room)
        room = min(room, FEW)
        found: list[views.TaskView] = []
        possible = _possible(info)
        for state in INTERESTING:
            if state in possible and len(found) < room:
                most = room - len(found) if state != states.FAILED else max(1, room // 2)
                found += await self.job.tasks(state=state, most=most)
        return found

    async def _find_waits(self) -> dict[str, str]:
        store, tenant = self.app.engine.store, self.app.tenant
        found: dict[str, str] = {}
        for task in self._tasks:
            if task.state == states.WAITING:
                timer = await store.timer(tenant, self.job.job_id, task.task_id)
                if timer is not None:
                    found[task.task_id] = waits_for(
                        timer.kind, timer.name, views.moment(timer.due_at), session.now(self.app)
                    )
        return found


def _possible(info: views.JobView) -> set[str]:
    """The states in which the counts say that there is a task at all."""
    return {state for state, count in info.task_statuses.items() if count}


def waits_for(kind: str, name: str, due: datetime.datetime | None, now: datetime.datetime) -> str:
    """What a waiting task waits for, in words."""
    when = output.ago(due, now)
    if kind == "wait":
        return f"signal {name}" + (f", gives up {when}" if when else "")
    if kind == "approval":
        return "approval" + (f", due {when}" if when else "")
    return f"{kind} {when}".strip()
