"""What is refused before any work is done for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ostinato import errors
from ostinato.api import access, limits, settings
from tests.api import support
from tests.api.support import Site, problem


@pytest.fixture
def url(sqlite_url: str) -> str:
    """None of this is about the database."""
    return sqlite_url


async def pieces(size: int, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b" " * size


async def test_a_body_is_too_large_by_what_it_says_before_anybody_is_asked_who_they_are(url: str) -> None:
    async with support.opened(url, max_body_bytes=1000) as site:
        await site.key()
        found = problem(await site.client().post("/v1/jobs", content=b" " * 1001), 413, "body_too_large")
        assert found["limit"] == 1000
        problem(await site.client().post("/v1/jobs", content=b" " * 1000), 401, "unauthenticated")


async def test_a_body_is_too_large_while_it_is_read(url: str) -> None:
    async with support.opened(url, max_body_bytes=1000) as site:
        headers = {"Content-Type": "application/json"}
        answer = await site.client().post("/v1/jobs", content=pieces(100, 11), headers=headers)
        problem(answer, 413, "body_too_large")
        answer = await site.client().post("/v1/jobs", content=pieces(100, 10), headers=headers)
        problem(answer, 400, "malformed_body")


async def test_headers_are_limited(site: Site) -> None:
    problem(await site.client(**{"X-Big": "x" * 17_000}).get("/v1/jobs"), 431, "headers_too_large")
    problem(await site.client().get("/v1/jobs?name=" + "x" * 17_000), 431, "headers_too_large")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_body_must_say_that_it_is_json(site: Site, kind: str) -> None:
    answer = await site.client().post("/v1/jobs", content=b'{"tasks": []}', headers={"Content-Type": kind})
    problem(answer, 415, "unsupported_media_type")


async def test_a_body_may_name_its_charset(site: Site) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    answer = await site.client().post("/v1/jobs", content=b'{"tasks": []}', headers=headers)
    problem(answer, 422, "invalid_graph")


async def test_json_is_not_nested_too_deeply(site: Site) -> None:
    def nested(levels: int) -> bytes:
        inner = '{"a":' * levels + "1" + "}" * levels
        return f'{{"tasks":[{{"taskId":"a","name":"echo","input":{inner}}}]}}'.encode()

    headers = {"Content-Type": "application/json"}
    assert (await site.client().post("/v1/jobs", content=nested(61), headers=headers)).status_code == 201
    for levels in (62, 10_000):
        problem(await site.client().post("/v1/jobs", content=nested(levels), headers=headers), 400, "malformed_body")


# --- rate ---------------------------------------------------------------------------------------------------------


def test_a_bucket_fills_up_again() -> None:
    buckets = limits.Buckets(8)
    for _ in range(8):
        buckets.take("a", 100.0)
    with pytest.raises(errors.TooManyRequests) as raised:
        buckets.take("a", 100.0)
    assert raised.value.seconds == 0.125
    buckets.take("b", 100.0)
    buckets.take("a", 100.125)
    with pytest.raises(errors.TooManyRequests):
        buckets.take("a", 100.125)
    for _ in range(8):
        buckets.take("a", 200.0)
    with pytest.raises(errors.TooManyRequests):
        buckets.take("a", 200.0)


def test_buckets_are_bounded() -> None:
    buckets = limits.Buckets(1, most_names=2)
    for name in ("a", "b", "c"):
        buckets.take(name, 0.0)
    buckets.take("a", 0.0)  # forgotten, so it is full again


async def test_each_key_has_its_own_rate(url: str) -> None:
    async with support.opened(url, requests_per_second=3) as site:
        busy, calm = site.client(await site.key()), site.client(await site.key())
        answers = [await busy.get("/v1/jobs") for _ in range(8)]
        assert [answer.status_code for answer in answers[:3]] == [200, 200, 200]
        problem(answers[-1], 429, "too_many_requests")
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert (await calm.get("/v1/jobs")).status_code == 200


async def test_guessing_keys_is_slowed_down(url: str) -> None:
    async with support.opened(url, requests_per_second=3) as site:
        known = site.client(await site.key())
        assert (await known.get("/v1/jobs")).status_code == 200
        codes = [(await site.client("ost_a_b").get("/v1/jobs")).status_code for _ in range(8)]
        assert codes[0] == 401
        assert codes[-1] == 429
        assert (await known.get("/v1/jobs")).status_code == 200


async def test_an_address_over_its_limit_costs_the_database_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-9: keys that were made up are not even looked up then, and a key that was seen before works as before."""
    monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.0)
    async with support.opened(url, requests_per_second=3) as site:
        known = site.client(await site.key())
        assert (await known.get("/v1/jobs")).status_code == 200
        read: list[str] = []
        find = site.home.engine.store.find_key

        async def counted(key_id: str) -> object:
            read.append(key_id)
            return await find(key_id)

        monkeypatch.setattr(site.home.engine.store, "find_key", counted)
        for n in range(30):
            await site.client(f"ost_{n:016x}_{'0' * 64}").get("/v1/jobs")
        assert len(read) < 6
        assert (await known.get("/v1/jobs")).status_code == 200


async def test_made_up_keys_do_not_push_out_real_ones(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """S-9"""
    monkeypatch.setattr(access, "MOST_REMEMBERED", 5)
    async with support.opened(url) as site:
        key = await site.key()
        await site.client(key).get("/v1/jobs")
        for n in range(20):
            await site.client(f"ost_{n:016x}_{'0' * 64}").get("/v1/jobs")
        assert site.server.access.knows(key)
        assert len(site.server.access._made_up) == 5  # pyright: ignore[reportPrivateUsage]


# --- host and origin ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST:1"])
async def test_it_answers_under_the_names_of_this_machine(site: Site, host: str) -> None:
    assert (await site.client(Host=host).get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[", ""]
)
async def test_it_answers_under_no_other_name(site: Site, host: str) -> None:
    problem(await site.client(Host=host).get("/healthz"), 400, "host_not_allowed")


async def test_other_names_can_be_allowed(url: str) -> None:
    async with support.opened(url, host="0.0.0.0", allowed_hosts=("jobs.example",)) as site:
        for host in ("jobs.example", "jobs.example:443", "10.0.0.1", "[fd00::1]:8080"):
            assert (await site.client(Host=host).get("/healthz")).status_code == 200
        problem(await site.client(Host="evil.example").get("/healthz"), 400, "host_not_allowed")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost.evil.example", "file://localhost"]
)
async def test_pages_of_others_cannot_write(site: Site, origin: str) -> None:
    client = site.client(Origin=origin)
    problem(await client.post("/v1/jobs", json=support.ONE), 403, "origin_not_allowed")
    assert (await client.get("/v1/jobs")).status_code == 200
    assert "access-control-allow-origin" not in (await client.get("/v1/jobs")).headers


async def test_its_own_pages_and_allowed_ones_can(url: str) -> None:
    async with support.opened(url, allowed_origins=("https://ops.example",)) as site:
        for origin in ("http://localhost", "https://ops.example"):
            assert (await site.client(Origin=origin).post("/v1/jobs", json=support.ONE)).status_code == 201


OPS = "https://ops.example"


async def test_b3_what_an_allowed_page_is_told(url: str) -> None:
    """B3: a preflight needs no key, all other answers say who may read them, and nothing is said of credentials."""
    async with support.opened(url, allowed_origins=(OPS + "/",)) as site:
        await site.key()
        wanted = {"Origin": OPS, "Access-Control-Request-Method": "PUT"}
        headers = {"Access-Control-Request-Headers": "authorization,content-type"}
        found = await site.client(**wanted, **headers).options("/v1/gates/g")
        assert (found.status_code, found.content) == (204, b"")
        assert found.headers["access-control-allow-origin"] == OPS
        assert "PUT" in found.headers["access-control-allow-methods"]
        assert found.headers["access-control-allow-headers"] == "authorization,content-type"
        assert {"Origin", "Access-Control-Request-Headers"} <= set(found.headers["vary"].split(", "))
        for path, status in (("/healthz", 200), ("/v1/jobs", 401)):
            answer = await site.client(Origin=OPS).get(path)
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, OPS)
            assert "access-control-allow-credentials" not in answer.headers
            assert "Origin" in answer.headers["vary"]
        for origin in ("https://evil.example", "https://ops.example.evil.example", "http://ops.example", "null"):
            for answer in (
                await site.client(Origin=origin, **{"Access-Control-Request-Method": "PUT"}).options("/v1/gates/g"),
                await site.client(Origin=origin).get("/healthz"),
            ):
                assert "access-control-allow-origin" not in answer.headers
                assert "Origin" in answer.headers["vary"]


@pytest.mark.parametrize(
    "origin",
    ["*", "https://*.example", "ops.example", "https://ops.example/path", "null", "", "https://a@b", "file://x"],
)
def test_what_is_no_origin_cannot_be_allowed(origin: str) -> None:
    with pytest.raises(errors.InvalidInput, match="such as https") as raised:
        settings.ServerOptions(allowed_origins=(origin,))
    assert raised.value.details["field"] == "allowed_origins"


# --- the envelope ---------------------------------------------------------------------------------------------------


async def test_every_answer_has_an_id_and_careful_headers(site: Site) -> None:
    for path in ("/healthz", "/v1/jobs", "/nothing"):
        found = (await site.client().get(path)).headers
        assert found["x-content-type-options"] == "nosniff"
        assert found["x-frame-options"] == "DENY"
        assert found["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in found["content-security-policy"]
        assert len(found["x-request-id"]) == 36


async def test_a_sane_request_id_is_kept(site: Site) -> None:
    assert (await site.client(**{"X-Request-Id": "mine-1"}).get("/healthz")).headers["x-request-id"] == "mine-1"
    for bad in ("a b", "<script>", "x" * 129):
        assert (await site.client(**{"X-Request-Id": bad}).get("/healthz")).headers["x-request-id"] != bad
