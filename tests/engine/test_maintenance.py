"""The loops that keep things going: a row that is damaged is the trouble of its own task, and of no other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ostinato import Retry, testing
from ostinato.engine import maintenance
from tests.engine import support
from tests.engine.support import job, task

DAMAGE = "UPDATE task SET options = CAST('no JSON' AS {bytes}) WHERE job_id = $1"
MEND = "UPDATE task SET options = NULL WHERE job_id = $1"


async def damage(url: str, job_id: str) -> None:
    await support.sql(url, DAMAGE.format(bytes="BLOB" if url.startswith("sqlite") else "bytea"), job_id)


async def test_a_timer_that_cannot_be_fired_holds_up_no_other(url: str) -> None:
    waits = job(task("a", delay=5))
    async with (
        testing.open(support.make(url, tenant="a", work=False, check_functions=False)) as other,
        testing.open(support.make(url)) as kit,
    ):
        elsewhere = await other.app.submit(waits)
        bad = await kit.app.submit(waits)
        good = await kit.app.submit(waits)
        await damage(url, elsewhere.job_id)
        await damage(url, bad.job_id)
        await kit.advance(10)
        assert await good.result(0) == {"a": {}}
        assert await support.standing(bad) == await support.standing(elsewhere) == {"a": "waiting"}
        for broken in (bad, elsewhere):
            await support.sql(url, MEND, broken.job_id)
        await kit.advance(1)
        assert await bad.result(0) == {"a": {}}
        assert await support.standing(elsewhere) == {"a": "pending"}
        await kit.audit()


async def test_a_task_that_cannot_be_taken_back_holds_up_no_other(url: str) -> None:
    clock, retry = testing.Clock(), Retry(max_attempts=3, base_delay=0)
    lost = support.make(url, default_retry=retry)
    support.Gate(lost)
    async with testing.open(lost, clock) as kit:
        bad, good = [await kit.app.submit(job(task("a", "gate"))) for _ in range(2)]
        await support.reaches(bad, "a", "processing")
        await support.reaches(good, "a", "processing")
        await lost.engine.kill()
        lost.detach()
    await damage(url, bad.job_id)
    clock.advance(100)
    heir = support.make(url, default_retry=retry)
    support.Gate(heir).opened.set()
    async with testing.open(heir, clock) as kit:
        await kit.run_until_idle()
        assert await (await heir.job(good.job_id)).result(0) == {"a": {}}
        broken = await heir.job(bad.job_id)
        assert await support.standing(broken) == {"a": "processing"}
        await support.sql(url, MEND, bad.job_id)
        await kit.run_until_idle()
        assert await broken.result(0) == {"a": {}}
        await kit.audit()


async def test_a_tenant_that_cannot_be_pruned_keeps_no_other_from_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = testing.Clock()
    async with (
        testing.open(support.make(url, tenant="a"), clock) as broken,
        testing.open(support.make(url, tenant="b"), clock) as kit,
    ):
        for one in (broken, kit):
            await one.app.set_retention(jobs=60)
            made = await one.app.submit(job(task("a")))
            await one.run_until_idle()
            await made.result(0)
        clock.advance(100)
        target = kit.app.engine.store
        remove = target.remove_jobs

        async def damaged(tenant: str, job_ids: Sequence[str], before: int | None) -> int:
            if tenant == "a":
                raise ValueError("this cannot be read")
            return await remove(tenant, job_ids, before)

        monkeypatch.setattr(target, "remove_jobs", damaged)
        await maintenance.Pruner(target, 1).run_once()
        assert await kit.app.jobs() == []
        assert len(await broken.app.jobs()) == 1
