"""A planted secret is used by functions that let it slip in every way they can; it is found nowhere."""

import base64
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostinato import Ostinato, Retry, secrets
from ostinato.core import codec
from tests.engine import support
from tests.engine.support import job, run, task
from tests.engine.test_encryption import stored

PLANTED = 'planted"secret\\4111-ünique'
PARTS = [b"4111-", b"planted"]
"""What any form of it holds, escaped or not."""


def make(url: str, **options: Any) -> Ostinato:
    app = support.make(url, **options)
    app.secret_source = {"API_KEY": PLANTED, "SHORT": "abc"}.get
    return app


async def answers(app: Ostinato, job_ids: list[str]) -> str:
    """Everything that the library says of these jobs."""
    told: list[Any] = [await app.jobs(), await app.dead_letters(), [repr(e) for e in await app.events()]]
    for job_id in job_ids:
        handle = await app.job(job_id)
        tasks = await handle.tasks()
        told += [await handle.info(), tasks, await handle.outputs(), await handle.events(most=10_000)]
        told += [await handle.task(view.task_id) for view in tasks]
    return msgspec.json.encode(told).decode() + repr(told)


async def test_a_function_gets_the_secret_and_the_database_the_reference(url: str) -> None:
    app = make(url)
    got: list[Any] = []

    @app.function
    async def use(ctx: Any, key: str, nested: dict[str, Any]) -> str:
        got.append((key, nested, ctx.input["key"]))
        return "used"

    async with app:
        given = {"key": "secret://API_KEY", "nested": {"list": ["secret://SHORT"], "text": "see secret://API_KEY"}}
        made = await app.submit(job(task("a", "use", input=given)))
        assert await made.result(support.PATIENCE) == {"a": "used"}
        assert got == [(PLANTED, {"list": ["abc"], "text": "see secret://API_KEY"}, PLANTED)]
        assert (await made.task("a")).input == given


async def test_a_reference_is_found_however_deep_it_is(url: str) -> None:
    app = make(url)
    nested: Any = "secret://API_KEY"
    for _ in range(codec.DEEPEST - 1):
        nested = [nested]

    @app.function
    async def use(nested: Any) -> Any:
        assert innermost(nested) == PLANTED
        return nested

    async with app:
        made = await app.submit(job(task("a", "use", input={"nested": nested})))
        assert innermost((await made.result(support.PATIENCE))["a"]) == secrets.HIDDEN


def innermost(value: Any) -> Any:
    while isinstance(value, list):
        (value,) = value
    return value


async def test_a_reference_in_a_large_input_is_resolved(url: str) -> None:
    app = make(url, spill_bytes=100)

    @app.function
    async def use(key: str, text: str) -> bool:
        return key == PLANTED

    async with app:
        assert await run(app, task("a", "use", input={"key": "secret://API_KEY", "text": "x" * 1000})) == {"a": True}


async def test_an_unknown_secret_fails_the_task_at_once(url: str) -> None:
    async with make(url, default_retry=Retry(max_attempts=5)) as app:
        made = await app.submit(job(task("a", input={"key": "secret://MISSING"})))
        error = (await support.failure(made)).failed["a"]
        assert error["type"] == "UnknownSecret"
        assert "secret://MISSING" in error["message"]
        assert [a.attempt for a in (await made.task("a")).attempts] == [1]


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_leaked_secret_is_found_nowhere(
    url: str, encrypted: bool, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    app = make(url)
    if encrypted:
        from ostinato import Keyring

        app.keyring = Keyring({"k": bytes(32)})

    @app.function
    async def leak(ctx: Any, key: str) -> Any:
        ctx.log.warning("logging %s", key)
        ctx.log.warning("logging a dict %s", {"key": key})
        step = await ctx.step(
            "login", lambda: {"token": f"Bearer {key}", key: [base64.b64encode(key.encode()).decode()]}
        )
        await ctx.add_tasks([task("added", input={"key": key, "url": f"https://{key}@host"})])
        await app.signal(ctx.job_id, "told", {"key": key})
        await app.submit(job(task("a", input={"key": key}), jobId="child", tags={"t": key}))
        await ctx.step("child", lambda: "submitted")
        return {"output": key, "nested": [f"x{key}x", repr(key)], "step": step}

    @app.function("leak-sync", retry=Retry(max_attempts=2, base_delay=0.01))
    def leak_sync(ctx: Any, key: str) -> None:
        ctx.log.warning("logging %s", key)
        ctx.step("sync", lambda: key)
        local = {"key": key}
        raise ValueError(f"{local} is wrong, {key}")

    @app.function("leak-long")
    async def leak_long(key: str) -> None:
        raise RuntimeError("x" * (16 * 1024 - 5) + key)  # the text is cut in the middle of it

    @app.function("leak-name")
    async def leak_name(ctx: Any, key: str) -> None:
        await ctx.step(key, lambda: 1)

    @app.function("leak-type")
    async def leak_type(key: str) -> None:
        raise type(key, (Exception,), {})("from") from ValueError(key)

    given = {"key": "secret://API_KEY"}
    with caplog.at_level(logging.DEBUG):
        async with app:
            jobs = [await app.submit(job(task("a", "leak", input=given), task("b", "join", "a")))]
            outputs = await jobs[0].result(support.PATIENCE)
            for name in ("leak-sync", "leak-long", "leak-name", "leak-type"):
                jobs.append(await app.submit(job(task("a", name, input=given))))
                await support.failure(jobs[-1])
            ids = [made.job_id for made in jobs] + ["child"]
            shown = await answers(app, ids)
            held = await stored(url)  # with the WAL as it is
    held += await stored(url)
    assert outputs["a"]["output"] == "***"
    assert outputs["a"]["nested"][0] == "x***x"
    assert outputs["added"] == {"key": "***", "url": "https://***@host"}
    assert "logging ***" in caplog.text
    for part in PARTS:
        assert part not in held
        assert part.decode() not in shown
        assert part.decode() not in caplog.text + repr([vars(record) for record in caplog.records])
        assert part.decode() not in "".join(capfd.readouterr())


async def test_the_search_finds_what_is_there(url: str) -> None:
    async with make(url) as app:
        await run(app, task("a", input={"key": PLANTED}), jobId="one")
        assert PARTS[0].decode() in await answers(app, ["one"])
        assert PARTS[0] in await stored(url)


async def test_a_task_after_it_is_not_redacted(url: str) -> None:
    """What one attempt knows is forgotten when it ends, also by tasks that were claimed ahead and start from there."""
    app = make(url, concurrency=1, default_retry=Retry(max_attempts=3))

    @app.function
    async def use(key: str) -> str:
        return secrets.hide_in_document(f"key {PLANTED}")

    async with app:
        keys = {f"t{n}": "none" if n % 2 else "secret://API_KEY" for n in range(40)}
        outputs = await run(app, *[task(task_id, "use", input={"key": key}) for task_id, key in keys.items()])
        assert outputs == {t: f"key {PLANTED}" if key == "none" else "key ***" for t, key in keys.items()}


async def test_the_environment_is_where_secrets_are_by_default(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_SECRET_TOKEN", "from-the-environment")
    monkeypatch.setenv("OSTINATO_SECRETS_DIR", str(tmp_path))
    (tmp_path / "FILE").write_text("from-a-file\n")
    app = support.make(url)

    @app.function
    async def use(token: str, file: str) -> list[bool]:
        return [token == "from-the-environment", file == "from-a-file"]

    async with app:
        given = {"token": "secret://TOKEN", "file": "secret://FILE"}
        assert await run(app, task("a", "use", input=given)) == {"a": [True, True]}
