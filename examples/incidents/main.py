"""All reports of the city through the agents, then three questions about them.

Run it again, and no report is read a second time: each has its id as its idempotency key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from app import DOMAIN, app

FOLDER = Path(__file__).parent
QUESTIONS = (
    "How many fires were there?",
    "Where were the floods?",
    "What changed since 2026-03-04?",
)


async def define() -> None:
    """As `ostinato playbooks apply examples/incidents` does it. What is unchanged gets no new version."""
    save = {"agents": app.playbooks.agents, "graphs": app.playbooks.graphs, "playbooks": app.playbooks.shelf}
    for folder, shelf in save.items():
        for file in sorted((FOLDER / folder).glob("*.json")):
            await shelf.save(json.loads(file.read_text()))


async def ingest() -> int:
    """Send in every report, and wait until all were read; how many there are."""
    reports = json.loads((FOLDER / "reports.json").read_text())
    jobs = [
        await app.ingest(
            DOMAIN, {"text": one["text"], "reportedAt": one["reportedAt"]}, idempotency_key=f"incidents:{one['id']}"
        )
        for one in reports
    ]
    await asyncio.gather(*[job.result() for job in jobs])
    return len(jobs)


async def answers() -> AsyncIterator[tuple[str, Any]]:
    for question in QUESTIONS:
        outputs = await (await app.query(DOMAIN, {"question": question})).result()
        yield question, outputs["$synthesize"]


async def main() -> None:
    async with app:
        await define()
        print(f"read: {await ingest()} reports")
        async for question, answer in answers():
            print(json.dumps({"question": question, **answer}, indent=2))


if __name__ == "__main__":
    asyncio.run(main())
