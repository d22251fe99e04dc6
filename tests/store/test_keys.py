"""Keys are shown once, stored as a hash, and stop working when they expire or are revoked."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ostinato import errors
from ostinato.core import scopes
from ostinato.store import connect, keys, store

START = 1_700_000_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def target(url: str, clock: Clock) -> AsyncIterator[store.Store]:
    db = connect.connect(url, clock=clock)
    await db.open(migrate=True)
    yield store.Store(db)
    await db.close()


async def test_a_key_is_found_by_its_id_and_known_by_its_secret(target: store.Store) -> None:
    made = await target.create_key("acme", "ci", ["jobs:read", "jobs:write"])
    found = keys.split(made.text)
    assert found is not None
    key_id, secret = found
    assert len(secret) * 4 == 256
    stored = await target.find_key(key_id)
    assert stored == made.key
    assert (stored.tenant, stored.name, stored.scopes) == ("acme", "ci", {"jobs:read", "jobs:write"})
    assert keys.matches(stored, secret)
    assert not keys.matches(stored, secret[:-1] + ("0" if secret[-1] != "0" else "1"))
    assert not keys.matches(None, secret)
    assert secret.encode() not in stored.secret_hash


async def test_two_keys_are_never_the_same(target: store.Store) -> None:
    texts = {(await target.create_key("acme", "ci", ["admin"])).text for _ in range(5)}
    assert len(texts) == 5


@pytest.mark.parametrize("text", ["", "ost", "ost_", "ost_a", "ost_a_", "ost__b", "xyz_a_b", "Bearer ost_a_b"])
def test_what_is_not_a_key_is_not_read_as_one(text: str) -> None:
    assert keys.split(text) is None


async def test_a_key_expires(target: store.Store, clock: Clock) -> None:
    made = await target.create_key("acme", "ci", ["admin"], expires_in=60)
    assert made.key.works(clock.now + 59_999_999)
    assert not made.key.works(clock.now + 60_000_000)


async def test_a_revoked_key_stays_revoked(target: store.Store, clock: Clock) -> None:
    made = await target.create_key("acme", "ci", ["admin"])
    assert await target.revoke_key("acme", made.key.key_id) == START
    clock.now += 5
    assert await target.revoke_key("acme", made.key.key_id) == START
    stored = await target.find_key(made.key.key_id)
    assert stored is not None
    assert not stored.works(clock.now)


async def test_a_tenant_sees_and_revokes_only_its_own(target: store.Store) -> None:
    mine = await target.create_key("acme", "ci", ["admin"])
    await target.create_key("other", "ci", ["admin"])
    assert [key.key_id for key in await target.keys("acme")] == [mine.key.key_id]
    with pytest.raises(errors.KeyNotFound):
        await target.revoke_key("other", mine.key.key_id)
    assert mine.key.key_id in {key.key_id for key in await target.keys("acme") if key.revoked_at is None}


async def test_use_is_noted_at_most_once_a_minute(target: store.Store, clock: Clock) -> None:
    made = await target.create_key("acme", "ci", ["admin"])

    async def used_at() -> int | None:
        return (await target.keys("acme"))[0].last_used_at

    assert await used_at() is None
    await target.note_use("acme", made.key.key_id)
    assert await used_at() == START
    clock.now += keys.USE_NOTED_EVERY
    await target.note_use("acme", made.key.key_id)
    assert await used_at() == START
    clock.now += 1
    await target.note_use("acme", made.key.key_id)
    assert await used_at() == clock.now


async def test_a_revoked_key_still_counts_as_a_key(target: store.Store) -> None:
    assert not await target.any_key()
    made = await target.create_key("acme", "ci", ["admin"])
    await target.revoke_key("acme", made.key.key_id)
    assert await target.any_key()


@pytest.mark.parametrize("granted", [[], ["jobs:fly"], ["jobs:read", "ADMIN"]])
async def test_bad_scopes_are_refused(target: store.Store, granted: list[str]) -> None:
    with pytest.raises(errors.InvalidInput, match="scope"):
        await target.create_key("acme", "ci", granted)
    assert not await target.any_key()


def test_admin_may_do_everything_and_nobody_else() -> None:
    for wanted in scopes.SCOPES:
        assert scopes.allows(frozenset({"admin"}), wanted)
        assert scopes.allows(frozenset({wanted}), wanted)
        assert not scopes.allows(frozenset(scopes.SCOPES) - {wanted, "admin"}, wanted)
