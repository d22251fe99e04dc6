"""A quick look for damage takes no longer than it may, and says how far it has got."""

from __future__ import annotations

from ostinato.store import connect, inspection


async def test_a_sound_database_is_looked_at_as_a_whole(url: str) -> None:
    database = connect.connect(url)
    await database.open(migrate=False)
    try:
        looked = await database.damage(60)
    finally:
        await database.close()
    assert not looked.found
    assert looked.complete or "checksums are off" in looked.looked


def test_a_look_ends_when_its_time_is_over(sqlite_url: str) -> None:
    """F-3: what was not looked at is not called sound."""
    looked = inspection.of_file(sqlite_url.removeprefix("sqlite:///"), 0)
    assert not looked.found
    assert not looked.complete
    assert looked.looked.startswith("0 of ")
