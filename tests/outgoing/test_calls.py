"""Calls to a real server on this machine, which the caller is allowed to reach."""

import asyncio
import email.utils
import socket
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ostinato import errors, outgoing
from tests.outgoing import support

ALLOWED = outgoing.CallOptions(allow=("127.0.0.1/32",))
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
async def server() -> AsyncIterator[support.Server]:
    async with support.running() as server:
        yield server


@pytest.fixture
def caller() -> outgoing.Caller:
    return outgoing.Caller(ALLOWED)


async def test_the_body_arrives_and_the_answer_comes_back(server: support.Server, caller: outgoing.Caller) -> None:
    server.behave = support.answering(201, b"made", X_Id="7")
    answer = await caller.post(server.url + "#part", b'{"a":1}', headers={"Authorization": "Bearer x", "X-Mine": "1"})
    assert (answer.status, answer.body, answer.headers["x-id"]) == (201, b"made", "7")
    (request,) = server.requests
    assert request.line == "POST /hook?a=1 HTTP/1.1"
    assert request.body == b'{"a":1}'
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == "Bearer x"
    assert request.headers["x-mine"] == "1"
    assert request.headers["accept-encoding"] == "identity"
    assert "webhook-signature" not in request.headers


async def test_the_receiver_can_verify_who_sent_it(server: support.Server, caller: outgoing.Caller) -> None:
    await caller.post(server.url, b"body", secret=SECRET, idempotency_key="job.1:task")
    await caller.post(server.url, b"body", secret=SECRET, idempotency_key="job.1:task")
    first, second = server.requests
    outgoing.verify(SECRET, first.headers, first.body, time.time())
    assert first.headers["idempotency-key"] == "job.1:task"
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    with pytest.raises(errors.InvalidSignature):
        outgoing.verify(SECRET, first.headers, b"Body", time.time())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(server: support.Server, caller: outgoing.Caller, status: int) -> None:
    server.behave = support.answering(status, Location=f"http://127.0.0.1:{server.port}/other")
    with pytest.raises(errors.CallRejected, match="redirects are not followed"):
        await caller.post(server.url, b"")
    assert len(server.requests) == 1


async def test_an_answer_that_drips_ends_in_time(server: support.Server, caller: outgoing.Caller) -> None:
    server.behave = support.dripping
    started = time.monotonic()
    with pytest.raises(errors.TargetUnreachable, match=r"did not answer within 0\.5 s"):
        await caller.post(server.url, b"", timeout=0.5)
    assert time.monotonic() - started < 3


async def test_a_resolver_that_hangs_ends_in_time() -> None:
    over = threading.Event()

    def hang(host: str, port: int) -> list[str]:
        over.wait()
        return []

    started = time.monotonic()
    with pytest.raises(errors.TargetUnreachable):
        await outgoing.Caller(resolver=hang).post("https://hooks.example/", b"", timeout=0.2)
    assert time.monotonic() - started < 1.5
    over.set()


async def test_an_answer_without_end_is_cut_off(server: support.Server, caller: outgoing.Caller) -> None:
    server.behave = support.endless
    with pytest.raises(errors.CallRejected, match="more than 1,048,576 bytes"):
        await caller.post(server.url, b"")


async def test_an_answer_of_just_the_limit_is_read(server: support.Server, caller: outgoing.Caller) -> None:
    server.behave = support.answering(200, b"x" * 1024 * 1024)
    assert len((await caller.post(server.url, b"")).body) == 1024 * 1024


async def test_a_compressed_answer_is_not_unpacked(server: support.Server, caller: outgoing.Caller) -> None:
    server.behave = support.answering(200, b"\x1f\x8b not gzip", Content_Encoding="gzip")
    assert (await caller.post(server.url, b"")).body == b"\x1f\x8b not gzip"


async def wait_asked_for(server: support.Server, caller: outgoing.Caller, status: int, value: str) -> float:
    server.behave = support.answering(status, Retry_After=value)
    with pytest.raises(errors.RetryAfter) as caught:
        await caller.post(server.url, b"")
    return caught.value.seconds


@pytest.mark.parametrize("status", [429, 503])
async def test_an_answer_says_when_to_come_back(server: support.Server, caller: outgoing.Caller, status: int) -> None:
    assert await wait_asked_for(server, caller, status, "120") == 120
    assert await wait_asked_for(server, caller, status, "999999") == 3600
    assert await wait_asked_for(server, caller, status, "0") == 1
    in_a_minute = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert await wait_asked_for(server, caller, status, in_a_minute) == pytest.approx(60, abs=5)
    assert await wait_asked_for(server, caller, status, "Wed, 21 Oct 2015 07:28:00 GMT") == 1


@pytest.mark.parametrize("value", ["soon", "-5", "1e9", "Wed, 99 Foo 2015"])
async def test_a_wait_that_makes_no_sense_is_left_to_the_policy(
    server: support.Server, caller: outgoing.Caller, value: str
) -> None:
    server.behave = support.answering(429, Retry_After=value)
    with pytest.raises(errors.CallFailed, match="answered 429"):
        await caller.post(server.url, b"")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
async def test_what_may_pass_is_tried_again(server: support.Server, caller: outgoing.Caller, status: int) -> None:
    server.behave = support.answering(status, b"secret stack trace")
    with pytest.raises(errors.CallFailed) as caught:
        await caller.post(server.url, b"")
    assert not isinstance(caught.value, errors.TerminalError)
    assert caught.value.message == f"127.0.0.1 answered {status}"
    assert caught.value.details == {"status": status}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 422, 451])
async def test_what_will_not_pass_is_final(server: support.Server, caller: outgoing.Caller, status: int) -> None:
    server.behave = support.answering(status)
    with pytest.raises(errors.TerminalError, match=f"answered {status}"):
        await caller.post(server.url, b"")


@pytest.mark.parametrize("status", [204, 302, 400, 429, 503])
async def test_a_caller_may_want_to_see_every_answer(
    server: support.Server, caller: outgoing.Caller, status: int
) -> None:
    server.behave = support.answering(status, b"why", Retry_After="5", Location="/elsewhere")
    answer = await caller.post(server.url, b"", any_status=True)
    assert (answer.status, answer.headers["retry-after"]) == (status, "5")
    assert len(server.requests) == 1
    server.behave = support.endless
    with pytest.raises(errors.CallRejected, match="more than"):
        await caller.post(server.url, b"", any_status=True)


@pytest.mark.parametrize("behave", [support.breaking_off, support.talking_nonsense])
async def test_a_broken_answer_is_tried_again(
    server: support.Server, caller: outgoing.Caller, behave: support.Behaviour
) -> None:
    server.behave = behave
    with pytest.raises(errors.TargetUnreachable, match="broke off"):
        await caller.post(server.url, b"")


async def test_a_closed_port_is_unreachable_and_no_address_is_told() -> None:
    with socket.socket() as held:  # bound and not listening: nobody else gets the port meanwhile
        held.bind(("127.0.0.1", 0))
        caller = outgoing.Caller(ALLOWED, resolver=lambda host, port: ["127.0.0.1"])
        with pytest.raises(errors.TargetUnreachable) as caught:
            await caller.post(f"http://inside.example:{held.getsockname()[1]}/token", b"")
    assert caught.value.message == "inside.example could not be reached"
    assert caught.value.__suppress_context__


async def test_the_next_address_is_tried_if_one_is_down(server: support.Server) -> None:
    options = outgoing.CallOptions(allow=("127.0.0.0/8",))
    caller = outgoing.Caller(options, resolver=lambda host, port: ["127.0.0.2", "127.0.0.1"])
    await caller.post(f"http://twice.example:{server.port}/", b"")
    assert server.requests[0].headers["host"] == f"twice.example:{server.port}"


async def test_the_name_is_resolved_once_and_the_checked_address_is_called(server: support.Server) -> None:
    """DNS rebinding: whoever asks again gets another answer."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.9"]

    caller = outgoing.Caller(ALLOWED, resolver=rebinding)
    await caller.post(f"http://rebind.example:{server.port}/", b"")
    assert asked == ["rebind.example"]
    assert len(server.requests) == 1
    with pytest.raises(errors.TargetRefused):
        await caller.post(f"http://rebind.example:{server.port}/", b"")
    assert server.connections == 1


async def test_no_proxy_is_taken_from_the_environment(
    server: support.Server, caller: outgoing.Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await caller.post(server.url, b"")).status == 200


async def test_tls_is_checked_against_the_name(tmp_path: Path) -> None:
    context, trusted = support.self_signed(tmp_path, "hooks.example")
    async with support.running(context) as server:

        def caller(ca_file: str | None) -> outgoing.Caller:
            options = outgoing.CallOptions(allow=("127.0.0.1/32",), ca_file=ca_file)
            return outgoing.Caller(options, resolver=lambda host, port: ["127.0.0.1"])

        url = f"https://hooks.example:{server.port}/"
        assert (await caller(trusted).post(url, b"")).status == 200
        assert server.requests[0].headers["host"] == f"hooks.example:{server.port}"
        with pytest.raises(errors.TargetUnreachable, match=r"certificate of hooks\.example could not be verified"):
            await caller(None).post(url, b"")
        with pytest.raises(errors.TargetUnreachable, match=r"certificate of other\.example could not be verified"):
            await caller(trusted).post(f"https://other.example:{server.port}/", b"")
        with pytest.raises(errors.TargetUnreachable, match=r"certificate of 127\.0\.0\.1"):
            await caller(trusted).post(f"https://127.0.0.1:{server.port}/", b"")
        assert len(server.requests) == 1


async def test_tls_to_a_server_without_it_is_no_success(server: support.Server, caller: outgoing.Caller) -> None:
    with pytest.raises(errors.TargetUnreachable):
        await caller.post(server.url.replace("http:", "https:"), b"", timeout=2)
    assert not server.requests


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host", "evil.example"),
        ("content-length", "5"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "keep-alive"),
        ("Proxy-Authorization", "x"),
        ("Webhook-Id", "x"),
        ("Idempotency-Key", "x"),
        ("X-A\r\nX-B", "x"),
        ("X A", "x"),
        ("", "x"),
        ("X-A", "x\r\nX-B: y"),
        ("X-A", "x\ny"),
        ("X-A", "x\0"),
        ("X-A", "grüße"),
    ],
)
async def test_headers_that_users_may_not_set(
    server: support.Server, caller: outgoing.Caller, name: str, value: str
) -> None:
    with pytest.raises(errors.InvalidInput):
        await caller.post(server.url, b"", headers={name: value})
    assert server.connections == 0


async def test_an_idempotency_key_cannot_smuggle_a_header(server: support.Server, caller: outgoing.Caller) -> None:
    with pytest.raises(errors.InvalidInput, match="idempotency key"):
        await caller.post(server.url, b"", idempotency_key="a\r\nX-B: c")
    assert server.connections == 0


async def test_many_calls_at_once(server: support.Server, caller: outgoing.Caller) -> None:
    bodies = [str(number).encode() for number in range(50)]
    await asyncio.gather(*(caller.post(server.url, body) for body in bodies))
    assert sorted(request.body for request in server.requests) == sorted(bodies)
