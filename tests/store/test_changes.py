"""A change wakes the other processes, and not the one that made it: that one knows already."""

from __future__ import annotations

import asyncio

from ostinato.core import commands, graph
from ostinato.store import connect, store


async def test_what_a_process_commits_wakes_the_others_only(url: str) -> None:
    here, there = connect.connect(url), connect.connect(url)
    await here.open(migrate=True)
    await there.open(migrate=True)
    try:
        for db in (here, there):  # each has seen everything so far
            while await db.changed(0.2):
                pass
        heard_there = asyncio.create_task(there.changed(10, eager=True))
        spec = graph.read_job({"tasks": [{"taskId": "t", "name": "f"}]})
        await store.Store(here).execute("default", [commands.Submit("job", spec, [b"{}"])])
        here.announce()
        assert await heard_there
        assert not await here.changed(0.3)
    finally:
        here.announce()
        await there.close()  # a word that comes too late for it is no harm
        await here.close()
