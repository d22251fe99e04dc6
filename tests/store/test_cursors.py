"""S-7: the cursor of a tenant's feed tells nothing of other tenants."""

from __future__ import annotations

import base64

import pytest

from ostinato import errors
from ostinato.api.live import messages
from ostinato.store import connect, store
from tests.api import support as api_support
from tests.engine import support
from tests.engine.support import job, task


async def test_cursors_do_not_change_with_what_others_do(url: str) -> None:
    """S-7: neither that of an event nor the one at which a stream begins, and neither has a number in it."""
    async with api_support.opened(url) as site:
        calm, busy = await site.admin("calm"), await site.admin("busy")
        live = site.server.hub
        for _ in range(2):
            await api_support.submitted(calm)
        seen: set[str] = set()
        for _ in range(3):
            async with await live.subscribe("calm", messages.Wanted()) as subscription:
                seen.add(subscription.cursor)
            await api_support.submitted(busy)
        assert len(seen) == 1
        found = await site.home.engine.store.feed("calm")
        assert seen == {found[-1].cursor}
        sizes = {len(base64.urlsafe_b64decode(item.cursor + "==")) for item in found}
        assert sizes == {40}
        with pytest.raises(errors.InvalidInput, match="another database or tenant"):
            await site.home.engine.store.feed("busy", found[0].cursor)


async def test_a_cursor_in_clear_is_refused_and_nothing_can_be_learned_by_trying(url: str) -> None:
    """Those of an earlier version are; and else a tenant could search for the end of the feed of all."""
    async with support.opened(url) as app:
        await support.run(app, task("a"))
        for cursor in ("1.0.0", "1.1.1", "999999999.0.0"):
            with pytest.raises(errors.InvalidInput, match="earlier version of Ostinato: begin without one"):
                await app.events(cursor=cursor)
        assert await app.events(cursor="0.0.0") == await app.events() == await app.events(cursor="")
        events = await app.events()
        assert await app.events(cursor=events[2].cursor) == events[3:]


@pytest.mark.parametrize("cursor", ["x", "1.2", "a.b.c", "ä", "A" * 54, "A" * 5000, "-1.0.0", "\0", " 0.0.0"])
async def test_what_was_never_handed_out_is_refused(url: str, cursor: str) -> None:
    async with support.opened(url, work=False) as app:
        with pytest.raises(errors.InvalidInput, match="not a cursor of this feed"):
            await app.events(cursor=cursor)


async def test_a_cursor_of_another_database_is_refused(url: str) -> None:
    """Each has a secret of its own, and here this one gets another."""
    async with support.opened(url) as app:
        await support.run(app, task("a"))
        cursor = (await app.events())[0].cursor
    await support.sql(url, "UPDATE feed_secret SET secret = $1", bytes(range(32)))
    async with support.opened(url) as other:
        with pytest.raises(errors.InvalidInput, match="the cursor is of another database"):
            await other.events(cursor=cursor)


async def test_who_begins_now_gets_all_that_comes_after(url: str) -> None:
    """Also a tenant that has nothing yet, beside one that is busy."""
    database = connect.connect(url)
    await database.open(migrate=False)
    kept = store.Store(database)
    async with support.opened(url) as busy, support.opened(url, tenant="new") as new:
        await support.run(busy, task("a"))
        begin = await kept.feed_end("new")
        assert begin == (0, 0, 0)
        made = await new.submit(job(task("a")))
        await made.result(support.PATIENCE)
        page = await kept.feed_page("new", begin)
        assert page.events[0].event.type == "Job Created"
        assert (await kept.feed_page("new", await kept.feed_end("new"))).events == []
    await database.close()
