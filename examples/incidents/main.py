"""All reports of the city through the agents, then three questions about them.

Run it again, and no report is read a second time: each has its id as its idempotency key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import DOMAIN
from app import BASE_URL, MODEL, app

from ostinato import definition_files

FOLDER = Path(__file__).parent
QUESTIONS = (
    "How many fires were there?",
    "Where were the floods?",
    "What changed since 2026-03-04?",
)


async def define() -> None:
    """As `ostinato playbooks apply examples/incidents` does it. What is unchanged gets no new version."""
    await app.playbooks.apply(FOLDER)
    if MODEL is None:
        return
    readers = FOLDER / "llm" / "agents" / "reading.yaml"
    for found in definition_files.read(readers.read_bytes(), str(readers)):
        model = {"model": MODEL} if BASE_URL is None else {"model": MODEL, "baseUrl": BASE_URL}
        await app.playbooks.define_agent(found.document | {"llm": found.document["llm"] | model})


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
