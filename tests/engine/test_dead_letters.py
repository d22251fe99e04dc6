"""What failed for good: listed with its story, and run again with its policy."""

from tests.engine import support
from tests.engine.support import job, task


async def test_a_dead_letter_tells_what_failed_and_why(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break", input={"message": "no"})))
        await support.failure(made)
        [letter] = await app.dead_letters()
        assert (letter.job_id, letter.task_id, letter.name, letter.attempts) == (made.job_id, "a", "break", 1)
        assert letter.error == {"type": "TerminalError", "message": "no"}
        assert letter.input == {"message": "no"}
        assert letter.failed_at > 0


async def test_dead_letters_are_found_by_name_and_job_newest_first(url: str) -> None:
    app = support.make(url)
    support.Flaky(app, failures=99)
    async with app:
        first = await app.submit(job(task("a", "break")))
        await support.failure(first)
        second = await app.submit(job(task("b", "flaky"), task("c", "break", "b", onDependencyFailure="run")))
        await support.failure(second)
        assert [letter.task_id for letter in await app.dead_letters()] == ["c", "b", "a"]
        assert [letter.task_id for letter in await app.dead_letters(name="break")] == ["c", "a"]
        assert [letter.task_id for letter in await app.dead_letters(job_id=first.job_id)] == ["a"]
        assert [letter.task_id for letter in await app.dead_letters(most=1)] == ["c"]


async def test_dead_letters_come_in_pages(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(*[task(f"t{n}", "break") for n in range(7)]))
        await support.failure(made)
        seen: list[str] = []
        before = None
        while page := await app.dead_letters(most=3, before=before):
            seen += [letter.task_id for letter in page]
            before = (page[-1].failed_at, page[-1].job_id, page[-1].task_id)
        assert sorted(seen) == [f"t{n}" for n in range(7)]


async def test_only_what_failed_for_good_is_a_dead_letter(url: str) -> None:
    app = support.make(url)
    support.Flaky(app, failures=1)
    gate = support.Gate(app)
    async with app:
        await support.run(app, task("a", "flaky", retry={"maxAttempts": 2, "baseDelay": 0}))
        made = await app.submit(job(task("a", "gate")))
        await support.soon(gate.started.wait())
        await made.cancel()
        assert await app.dead_letters() == []


async def test_an_optional_task_that_failed_is_a_dead_letter_too(url: str) -> None:
    async with support.opened(url) as app:
        await support.run(app, task("a", "break", optional=True))
        assert len(await app.dead_letters()) == 1


async def test_redrive_keeps_policy_and_history(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app, failures=3)
    async with app:
        made = await app.submit(
            job(task("a", "flaky", input={"x": 1}, retry={"maxAttempts": 2, "baseDelay": 0}, timeout=60))
        )
        await support.failure(made)
        [letter] = await app.dead_letters()
        assert letter.attempts == 2
        assert await app.redrive([(letter.job_id, letter.task_id)], actor="me") == 1
        assert await made.result(support.PATIENCE) == {"a": {"x": 1}}
        assert await app.dead_letters() == []
        assert [a.outcome for a in (await made.task("a")).attempts] == ["failed", "failed", "failed", "completed"]
    assert len(flaky.calls) == 4


async def test_redrive_many_of_many_jobs(url: str) -> None:
    app = support.make(url)
    support.Flaky(app, failures=30)
    async with app:
        jobs = await app.submit_many(
            [job(task("a", "flaky"), task("b", "flaky"), task("c", "flaky")) for _ in range(10)]
        )
        for made in jobs:
            await support.failure(made)
        letters = await app.dead_letters(most=100)
        assert await app.redrive([(letter.job_id, letter.task_id) for letter in letters]) == 30
        for made in jobs:
            await made.result(support.PATIENCE)


async def test_redriven_in_vain_it_is_a_dead_letter_again(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break")))
        await support.failure(made)
        await app.redrive([(made.job_id, "a")])
        await support.failure(made)
        [letter] = await app.dead_letters()
        assert letter.attempts == 2
        assert (await support.told(made)).count("Job Failure Detected") == 2


async def test_skipping_takes_it_from_the_dead_letters(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("a", "break")))
        await support.failure(made)
        await made.skip_task("a")
        await made.result(support.PATIENCE)
        assert await app.dead_letters() == []
