"""The store report: five tasks, two of them roots, run to the end on a SQLite file with live progress.

Stop it with Ctrl-C or `kill -9` wherever you like and start it again: it goes on where it was, and nothing that had
completed runs a second time. A `kill -9` costs what was running one of its attempts; a task that has none left
fails, and the next start runs it again.
"""

from __future__ import annotations

import asyncio
import os
import sys

from rich.console import Console
from rich.live import Live
from rich.table import Table

from ostinato import Context, EngineOptions, Job, Ostinato, Retry, errors

# A short lease, so that after a `kill -9` you do not wait long for the next run to take over.
app = Ostinato(os.environ.get("OSTINATO_URL", "sqlite:///store-report.db"), options=EngineOptions(lease_seconds=3))


async def fetch(store_id: str) -> list[str]:
    """Stands for a slow call to somebody else's service."""
    await asyncio.sleep(0.6)
    return [f"{store_id}/jacket", f"{store_id}/scarf", f"{store_id}/boots"]


@app.function("scrape-store", retry=Retry(max_attempts=10, base_delay=2, multiplier=2), timeout=300)
async def scrape_store(ctx: Context, storeId: str) -> dict[str, list[str]]:
    products = await ctx.step("fetch", fetch, storeId)  # not repeated after a crash
    return {"products": products}


@app.function("analyze-competitors", retry=Retry(max_attempts=10, base_delay=0.5))
async def analyze_competitors(ctx: Context, market: str) -> dict[str, object]:
    await asyncio.sleep(0.4)
    if ctx.attempt == 1:
        raise ConnectionError("the market service is busy")  # shows a retry
    return {"market": market, "competitors": 7}


@app.function("color-tags")
async def color_tags(ctx: Context, style: str) -> dict[str, str]:
    await ctx.sleep(0.5)  # waits durably: no slot, no memory
    products = ctx.dependency_outputs["task-A"]["products"]
    return {product: f"{style}-{index}" for index, product in enumerate(products)}


@app.function("font-pairing")
def font_pairing() -> dict[str, str]:  # a plain function runs in a thread
    return {"heading": "Lora", "text": "Inter"}


@app.function("compile-result")
async def compile_result(ctx: Context) -> dict[str, object]:
    return {"colors": ctx.dependency_outputs["task-C"], "fonts": ctx.dependency_outputs["task-D"]}


JOB = {
    "name": "store-report",
    "requestId": "req-789",
    "tasks": [
        {"taskId": "task-A", "name": "scrape-store", "dependsOn": [], "input": {"storeId": "store-123"}},
        {"taskId": "task-B", "name": "analyze-competitors", "dependsOn": [], "input": {"market": "fashion"}},
        {"taskId": "task-C", "name": "color-tags", "dependsOn": ["task-A"], "input": {"style": "modern"}},
        {"taskId": "task-D", "name": "font-pairing", "dependsOn": ["task-A"], "input": {}},
        {"taskId": "task-E", "name": "compile-result", "dependsOn": ["task-C", "task-D"], "input": {}},
    ],
}

COLORS = {"completed": "green", "processing": "cyan", "waiting": "yellow", "failed": "red", "pending": "blue"}


async def table(job: Job) -> Table:
    shown = Table(title=f"job {job.job_id}", title_justify="left")
    for column in ("task", "function", "state", "attempt"):
        shown.add_column(column)
    for task in await job.tasks():
        color = COLORS.get(task.state, "white")
        shown.add_row(task.task_id, task.name, f"[{color}]{task.state}[/]", str(task.attempt or ""))
    return shown


async def begin(console: Console) -> Job:
    """The job of the run before, if that has not completed; else a new one."""
    before = await app.jobs(name="store-report", state=["running", "failed"], most=1)
    job = await app.job(before[0].job_id) if before else await app.submit(JOB)
    if before and before[0].state == "failed":
        plan = await job.resume()
        console.print(f"running again what failed: {', '.join(plan.rerun)}")
    else:
        console.print("going on with the unfinished job" if before else "submitted a new job")
    return job


async def main() -> None:
    console = Console()
    async with app:
        job = await begin(console)
        with Live(await table(job), console=console, refresh_per_second=10) as live:
            while (await job.info()).state == "running":
                await asyncio.sleep(0.1)
                live.update(await table(job))
        try:
            console.print("result:", await job.result(timeout=60))
        except errors.JobFailed as failure:
            sys.exit(f"{failure}\nrun me again: what failed runs again, and nothing that has completed")
        console.print(f"{len(await job.events())} events recorded in {app.url}; run me again, or kill me half-way")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit("stopped: run me again, and I go on")
