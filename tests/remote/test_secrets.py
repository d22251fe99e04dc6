"""A remote worker has the secrets, the server the references; what the server encrypts, its workers never notice."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Keyring
from ostinato.api import server
from ostinato.remote import engine
from tests.api import support as site_support
from tests.engine.support import PATIENCE, job, task
from tests.engine.test_encryption import stored
from tests.remote.test_remote import make

PLANTED = "pl4nted-at-the-worker"


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_secret_stays_with_the_worker(url: str, encrypted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if encrypted:
        monkeypatch.setenv("OSTINATO_ENCRYPTION_KEYS", "k:" + "A" * 43 + "=")
    app = make()
    seen: list[str] = []

    @app.function
    async def use(ctx: Any, key: str, large: str) -> dict[str, Any]:
        seen.append(key)
        step = await ctx.step("login", lambda: f"token of {key}")
        return {"leaked": key, "step": step, "size": len(large)}

    async with site_support.opened(url, port=0, engine={"work": False}) as site:
        assert (site.home.keyring is not None) == encrypted
        listener = server.Listener(site.server)
        await listener.start()
        key = await site.key("tasks:work")
        source = {"API_KEY": PLANTED}.get
        async with engine.RemoteEngine(app.functions, app.options, listener.address, key, secret_source=source):
            given = {"key": "secret://API_KEY", "large": "x" * 100_000}
            made = await site.home.submit(job(task("a", "use", input=given), task("b", "join", "a")))
            outputs = await made.result(timeout=PATIENCE)
        await listener.stop()
    assert seen == [PLANTED]
    assert outputs["a"] == {"leaked": "***", "step": "token of ***", "size": 100_000}
    assert outputs["b"] == {"a": outputs["a"]}
    held = await stored(url)
    assert PLANTED.encode() not in held
    assert (b"x" * 1000 in held) != encrypted


def test_the_key_in_the_test_is_one() -> None:
    assert Keyring.parse("k:" + "A" * 43 + "=").ids == ("k",)
