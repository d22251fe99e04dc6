"""One date through both phases: 21 processors report, the analytics run, and the precomputation knows what changed.

The processors report as they do in real life: in any order, some of them twice, one failing before it succeeds. Run it
again for the same date, and nothing is started a second time.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import uuid
from pathlib import Path

from app import app
from rich.console import Console
from rich.live import Live
from rich.table import Table

from ostinato import errors

FOLDER = Path(__file__).parent
PHASES = {"phase2-to-phase3": "phase3-analytics", "phase3-to-phase4": "phase4-precompute"}
"""The gates, and the job that each of them starts."""
COLORS = {"waiting": "yellow", "open": "green", "failed": "red", "expired": "red", "reset": "magenta"}

console = Console()


async def define() -> None:
    """As `ostinato gates apply` and `ostinato rules apply` do it. What is unchanged gets no new version."""
    for file in sorted(FOLDER.glob("*.json")):
        await app.gates.define(json.loads(file.read_text()))
    for file in sorted((FOLDER / "rules").glob("*.json")):
        await app.rules.define(json.loads(file.read_text()))


async def report(game_date: str, correlation_id: str) -> dict[str, int]:
    """All of phase 2, one message after the other. The answer is what became of them."""
    gate = app.gate("phase2-to-phase3")
    members = list((await gate.definition()).expected)
    messages = [(member, "success") for member in [*members, *random.sample(members, 5)]]
    random.shuffle(messages)
    outcomes: dict[str, int] = {}
    for member, status in [("NewsProcessor", "error"), *messages]:
        place = members.index(member)
        data = {"game_date": game_date, "record_count": 100 + place, "execution_id": f"exec-{place:02}"}
        answer = await gate.arrive(game_date, member, data, status=status, correlation_id=correlation_id)
        outcomes[answer.outcome] = outcomes.get(answer.outcome, 0) + 1
        if sum(outcomes.values()) == len(messages) // 2:
            console.print("half-way:", (await gate.status(game_date)).sentence)
        await asyncio.sleep(0.06)
    return outcomes


async def table(game_date: str) -> Table:
    """Both gates and what they have started."""
    shown = Table(title=f"games of {game_date}", title_justify="left")
    for column in ("gate", "arrived", "status", "starts", "tasks done"):
        shown.add_column(column, no_wrap=True)
    for name, job_name in PHASES.items():
        jobs = await app.jobs(name=job_name, tag=f"game_date={game_date}")
        done = ", ".join(f"{job.task_statuses.get('completed', 0)}/{job.total_tasks}" for job in jobs)
        shown.add_row(name, *await standing(name, game_date), job_name, done)
    return shown


async def standing(name: str, game_date: str) -> tuple[str, str]:
    try:
        status = await app.gate(name).status(game_date)
    except errors.GateKeyNotFound:
        return f"0/{len((await app.gate(name).definition()).expected)}", "nobody yet"
    return f"{status.completed_count}/{status.expected_count}", f"[{COLORS[status.status]}]{status.status}[/]"


async def precomputed(game_date: str) -> bool:
    jobs = await app.jobs(name="phase4-precompute", tag=f"game_date={game_date}")
    return bool(jobs) and all(job.state != "running" for job in jobs)


async def main(game_date: str) -> None:
    correlation_id = f"run-{uuid.uuid4().hex[:8]}"
    async with app:
        await define()
        console.print("before:", await table(game_date))
        reporting = asyncio.create_task(report(game_date, correlation_id))
        with Live(await table(game_date), console=console, refresh_per_second=10, transient=True) as live:
            while not reporting.done():
                await asyncio.sleep(0.1)
                live.update(await table(game_date))
            console.print("when all had reported:", await table(game_date))
            while not await precomputed(game_date):
                await asyncio.sleep(0.1)
                live.update(await table(game_date))
        console.print("at the end:", await table(game_date))
        console.print("what became of the messages:", await reporting)
        for job in await app.jobs(name="phase4-precompute", tag=f"game_date={game_date}"):
            console.print(f"phase 4 ran as job {job.job_id}, for {job.correlation_id}:")
            console.print((await (await app.job(job.job_id)).result(timeout=60))["precompute"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "2025-11-29"))
