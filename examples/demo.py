"""What `make run` serves: the store report, functions that try again, give up and wait for an answer, a gate, the
playbooks of the incidents, and the pipeline of the articles.

`demo.json` has a job for each. Its keys say that starting again submits nothing twice.
"""

from __future__ import annotations

import json
from pathlib import Path

from incidents import agents
from publishing import steps
from store_report.main import app

from ostinato import Context, Retry, TerminalError

__all__ = ["app"]


@app.function("import-prices", retry=Retry(max_attempts=5, base_delay=0.5, multiplier=2))
async def import_prices(ctx: Context, shop: str) -> dict[str, object]:
    if ctx.attempt < 3:
        raise ConnectionError(f"{shop} does not answer")  # twice; then it does
    ctx.log.info("prices arrived at last")
    return {"shop": shop, "prices": 120}


@app.function("charge-card")
async def charge_card(ctx: Context, order: str) -> None:
    raise TerminalError(f"the card for order {order} has expired")  # trying again would not help


@app.function("ask-for-approval")
async def ask_for_approval(ctx: Context, order: str) -> dict[str, object]:
    answer = await ctx.wait_for("approval")  # for as long as it takes, holding no slot and no memory
    return {"order": order, "approved": answer}


SHOPS_CLOSED = {
    "name": "shops-closed",
    "key": "day",
    "members": ["north", "south", "west"],
    "aggregate": {"takings": {"how": "sum"}},
    "trigger": [
        {
            "job": {
                "name": "day-end",
                "tasks": [{"taskId": "book", "name": "book-takings", "input": {"takings": "{% aggregate.takings %}"}}],
            }
        }
    ],
}


@app.function("close-shops")
async def close_shops(ctx: Context, day: str) -> str:
    await app.gates.define(SHOPS_CLOSED)
    gate = app.gate("shops-closed")
    await gate.arrive(day, "north", {"takings": 1200})
    await gate.arrive(day, "south", {"takings": 950})
    return (await gate.status(day)).sentence  # west is missing: `ostinato gates arrive shops-closed DAY west` opens it


@app.function("book-takings")
async def book_takings(takings: int) -> dict[str, int]:
    return {"booked": takings}


INCIDENTS = Path(__file__).parent / "incidents"
agents.register(app)


@app.function("read-reports")
async def read_reports(ctx: Context, most: int) -> list[str]:
    await app.playbooks.apply(INCIDENTS)  # as `ostinato playbooks apply examples/incidents`
    reports = json.loads((INCIDENTS / "reports.json").read_text())[:most]
    jobs = [
        await app.ingest(
            agents.DOMAIN, {"text": one["text"], "reportedAt": one["reportedAt"]}, idempotency_key=f"demo:{one['id']}"
        )
        for one in reports
    ]
    return [job.job_id for job in jobs]  # five agents read each report; README.md has the lines to send in another


steps.register(app)  # articles are discovered, and wait for a person: approve them, or not
