"""What failed for good: listed with its story, and run again with its policy."""

import asyncio
import datetime

import pytest

from ostinato import errors, testing, views
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
        cursor = None
        while True:
            page = await app.dead_letters(most=3, cursor=cursor)
            seen += [letter.task_id for letter in page]
            cursor = page.cursor
            if cursor is None:
                break
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
        assert await app.redrive([(letter.job_id, letter.task_id)], actor="me") == views.Redriven(
            False, 1, [views.LetterKey(made.job_id, "a")]
        )
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
        assert (await app.redrive([(letter.job_id, letter.task_id) for letter in letters])).count == 30
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


async def test_dead_letters_are_found_by_error_type_and_time(url: str) -> None:
    app = support.make(url)
    support.Flaky(app, failures=99)
    async with testing.open(app) as kit:
        made = {}
        for name in ("break", "flaky", "break"):
            made[name] = await app.submit(job(task("a", name)))
            await kit.run_until_idle()
            await kit.advance(60)
        assert [x.name for x in await app.dead_letters(error_type="ValueError")] == ["flaky"]
        assert [x.name for x in await app.dead_letters(error_type="TerminalError")] == ["break", "break"]
        assert await app.dead_letters(error_type="TerminalError", name="flaky") == []
        second = datetime.datetime.fromtimestamp(testing.START + 60, datetime.UTC)
        third = second + datetime.timedelta(seconds=60)
        assert [x.name for x in await app.dead_letters(failed_from=second)] == ["break", "flaky"]
        assert [x.name for x in await app.dead_letters(failed_until=third)] == ["flaky", "break"]
        assert [x.name for x in await app.dead_letters(failed_from=second, failed_until=third)] == ["flaky"]
        [one] = await app.dead_letters(job_id=made["flaky"].job_id, error_type="ValueError")
        assert await app.dead_letter(one.job_id, "a") == one
        assert await app.dead_letter(one.job_id, "b") is None


async def test_the_depth_alarms_above_its_threshold(url: str) -> None:
    async with support.opened(url) as app:
        for size, alarm in ((10, False), (1, True)):
            await support.failure(await app.submit(job(*[task(f"t{n}", "break") for n in range(size)])))
            depth = await app.dead_letter_depth()
            assert (depth.threshold, depth.alarm) == (10, alarm)
        assert depth.depth == 11
    async with support.opened(url, dead_letter_alarm=11) as app:
        assert not (await app.dead_letter_depth()).alarm


async def test_a_preview_counts_all_names_some_and_changes_nothing(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(*[task(f"t{n}", "break") for n in range(130)], task("ok")))
        await support.failure(made)
        before = await made.events(most=5000)
        foreseen = await app.redrive_matching(name="break", dry_run=True)
        assert (foreseen.dry_run, foreseen.count, len(foreseen.letters)) == (True, 130, 100)
        some = await app.redrive([(made.job_id, "t1"), (made.job_id, "ok"), ("none", "t1")], dry_run=True)
        assert (some.count, [x.task_id for x in some.letters]) == (1, ["t1"])
        assert await made.events(most=5000) == before


async def test_redrive_by_filter_runs_what_matches_once(url: str) -> None:
    app = support.make(url)
    flaky = support.Flaky(app, failures=620)
    async with app:
        jobs = await app.submit_many([job(*[task(f"t{n}", "flaky") for n in range(310)]) for _ in range(2)])
        other = await app.submit(job(task("a", "break")))
        for made in (*jobs, other):
            await support.failure(made)
        answers = await asyncio.gather(*[app.redrive_matching(name="flaky", actor="me") for _ in range(2)])
        assert sum(answer.count for answer in answers) == 620
        for made in jobs:
            await made.result(support.PATIENCE)
        assert len(flaky.calls) == 2 * 620
        assert [letter.name for letter in await app.dead_letters()] == ["break"]


async def test_redrive_refuses_what_is_no_dead_letter(url: str) -> None:
    async with support.opened(url) as app:
        made = await app.submit(job(task("ok"), task("bad", "break")))
        await support.failure(made)
        await made.skip_task("bad")
        for task_id in ("ok", "bad"):
            with pytest.raises(errors.NotPossible, match="not a dead letter"):
                await app.redrive([(made.job_id, task_id)])
