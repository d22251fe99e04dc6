"""Submitting twice: the same key and body are the same job."""

import asyncio

import pytest

from ostinato import Context, errors
from tests.engine import support
from tests.engine.support import job, task


async def test_x7_the_same_key_and_body_give_the_same_job(url: str) -> None:
    async with support.opened(url) as app:
        first = await app.submit(job(task("a", input={"x": 1, "y": 2}), idempotencyKey="k"))
        await first.result(support.PATIENCE)
        second = await app.submit(job(task("a", input={"y": 2, "x": 1}), idempotencyKey="k"))
        assert first.job_id == second.job_id
        assert (first.created, second.created) == (True, False)
        assert len(await app.jobs()) == 1
        assert (await support.told(first)).count("Job Created") == 1


@pytest.mark.parametrize(
    "other",
    [
        job(task("b"), idempotencyKey="k"),
        job(task("a", input={"x": 1}), idempotencyKey="k"),
        job(task("a"), idempotencyKey="k", priority=1),
        job(task("a"), task("b"), idempotencyKey="k"),
        job(task("a"), idempotencyKey="k", name="other"),
        job(task("a", optional=True), idempotencyKey="k"),
    ],
)
async def test_the_same_key_with_another_body_is_a_conflict(url: str, other: dict[str, object]) -> None:
    async with support.opened(url) as app:
        first = await app.submit(job(task("a"), idempotencyKey="k"))
        with pytest.raises(errors.IdempotencyConflict, match="another body") as caught:
            await app.submit(other)
        assert caught.value.details["jobId"] == first.job_id
        assert len(await app.jobs()) == 1


async def test_of_many_jobs_all_are_entered_or_none(url: str) -> None:
    async with support.opened(url, max_tasks=10) as app:
        await app.submit(job(task("a"), idempotencyKey="k"))
        other = job(task("a"), idempotencyKey="k", priority=1)
        for batch in (
            [job(task("a")), other, job(task("a"))],
            [other | {"idempotencyKey": "new"}, job(task("z"), idempotencyKey="new")],
        ):
            with pytest.raises(errors.IdempotencyConflict, match="another body"):
                await app.submit_many(batch)
            assert len(await app.jobs()) == 1
        with pytest.raises(errors.InvalidGraph, match="11 tasks together"):
            await app.submit_many([job(task("a"))] * 11)
        again = await app.submit_many([job(task("a"), idempotencyKey="k"), job(task("a"))])
        assert [made.created for made in again] == [False, True]
        assert len(await app.jobs()) == 2
        assert await app.submit_many([]) == []


async def test_x7_no_two_tasks_have_the_same_key_whatever_their_ids_are(url: str) -> None:
    app = support.make(url)

    @app.function
    async def key(ctx: Context) -> str:
        return ctx.idempotency_key

    async with app:
        one = await app.submit(job(task("c", "key"), jobId="a:b"))
        other = await app.submit(job(task("b:c", "key"), jobId="a"))
        keys = [*(await one.result(support.PATIENCE)).values(), *(await other.result(support.PATIENCE)).values()]
        assert keys == ["a%3Ab:c", "a:b:c"]


async def test_other_keys_and_no_key_give_other_jobs(url: str) -> None:
    async with support.opened(url) as app:
        made = [
            await app.submit(job(task("a")) | extra)
            for extra in ({}, {}, {"idempotencyKey": "1"}, {"idempotencyKey": "2"})
        ]
        assert len({one.job_id for one in made}) == 4


async def test_keys_are_exact(url: str) -> None:
    async with support.opened(url) as app:
        keys = ["k", "K", "k ", "ключ", "é", "e\u0301", "k" * 255]
        made = [await app.submit(job(task("a"), idempotencyKey=key)) for key in keys]
        assert len({one.job_id for one in made}) == len(keys)


async def test_a_chosen_job_id_is_a_key_too(url: str) -> None:
    async with support.opened(url) as app:
        first = await app.submit(job(task("a"), jobId="order-1"))
        second = await app.submit(job(task("a"), jobId="order-1"))
        assert (first.job_id, second.job_id, second.created) == ("order-1", "order-1", False)
        with pytest.raises(errors.IdempotencyConflict, match="order-1"):
            await app.submit(job(task("b"), jobId="order-1"))


async def test_fifty_submissions_at_once_with_one_key_are_one_job(url: str) -> None:
    async with support.opened(url) as app:
        made = await asyncio.gather(*[app.submit(job(task("a"), idempotencyKey="k")) for _ in range(50)])
        assert len({one.job_id for one in made}) == 1
        assert sum(one.created for one in made) == 1
        await made[0].result(support.PATIENCE)
        assert (await support.told(made[0])).count("Task Processing") == 1


async def test_submissions_at_once_from_two_processes_are_one_job(url: str) -> None:
    async with support.opened(url) as one, support.opened(url) as other:
        for n in range(10):
            apps = [one, other] * 5
            made = await asyncio.gather(*[app.submit(job(task("a"), idempotencyKey=f"k{n}")) for app in apps])
            assert len({m.job_id for m in made}) == 1
            assert sum(m.created for m in made) == 1
        assert len(await one.jobs(most=100)) == 10


async def test_conflicting_submissions_at_once_from_two_processes_have_one_winner(url: str) -> None:
    async with support.opened(url) as one, support.opened(url) as other:
        for n in range(10):
            answers = await asyncio.gather(
                one.submit(job(task("a"), idempotencyKey=f"k{n}")),
                other.submit(job(task("b"), idempotencyKey=f"k{n}")),
                return_exceptions=True,
            )
            assert sorted(type(a).__name__ for a in answers) == ["IdempotencyConflict", "Job"]


async def test_a_key_is_remembered_across_processes(url: str) -> None:
    async with support.opened(url) as app:
        first = await app.submit(job(task("a"), idempotencyKey="k"))
        await first.result(support.PATIENCE)
    async with support.opened(url) as app:
        again = await app.submit(job(task("a"), idempotencyKey="k"))
        assert (again.job_id, again.created) == (first.job_id, False)


async def test_the_same_key_twice_in_one_call(url: str) -> None:
    async with support.opened(url) as app:
        one, other = await app.submit_many([job(task("a"), idempotencyKey="k")] * 2)
        assert one.job_id == other.job_id
