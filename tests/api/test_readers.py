"""S-5: what takes long for one tenant does not hold up what is quick for another."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ostinato.store import queries
from tests.api import support

SLOWLY = """ AND (
    SELECT count(*) FROM (
        WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {n}) SELECT n FROM c) x) > 0
GROUP BY"""
"""As if there were a long history to be counted."""


COUNT = "count_jobs_of_users_by_state"


def make_counts_slow(database: Any, rows: int) -> None:
    block: queries.Block = database._blocks[COUNT]
    slow = block.sql.replace("GROUP BY", SLOWLY.format(n=rows))
    assert slow != block.sql
    database._blocks = {**database._blocks, COUNT: block._replace(sql=slow)}


async def test_counts_of_one_tenant_do_not_hold_up_reads_of_another(url: str) -> None:
    """S-5: a count is running all the time, and more of them wait; a job is shown as ever."""
    async with support.opened(url) as site:
        loud, calm = await site.admin("loud"), await site.admin("calm")
        made = await support.submitted(calm)
        await support.submitted(loud)
        make_counts_slow(site.home.engine.db, 400_000)
        assert (await calm.get(f"/v1/jobs/{made}")).status_code == 200
        counting = [asyncio.create_task(loud.get("/v1/executions/counts?by=hour")) for _ in range(6)]
        taken: list[float] = []
        while not all(count.done() for count in counting):
            began = time.perf_counter()
            assert (await calm.get(f"/v1/jobs/{made}")).status_code == 200
            taken.append(time.perf_counter() - began)
            await asyncio.sleep(0.01)
        assert {count.result().status_code for count in counting} == {200}
        began = time.perf_counter()
        await loud.get("/v1/executions/counts?by=hour")
        alone = time.perf_counter() - began
        taken.sort()
        assert len(taken) >= 5
        assert taken[len(taken) * 9 // 10] < alone / 2
