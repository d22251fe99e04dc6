"""Questions to a real server on this machine that speaks the protocol, well and badly."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ostinato import agents, errors, outgoing
from ostinato.agents import llm, wire
from tests.agents import support
from tests.agents.support import KEY, SCHEMA, refusing, saying, sending
from tests.outgoing import support as behaviours

PRICE = agents.Price(input=2.5, output=10)
BAD = {"category": "storm", "severity": 0}


@pytest.fixture
async def endpoint() -> AsyncIterator[support.Endpoint]:
    async with support.running() as endpoint:
        endpoint.plan(saying())
        yield endpoint


@pytest.fixture
def model() -> agents.Llm:
    return agents.Llm(outgoing.Caller(outgoing.CallOptions(allow=("127.0.0.1/32",))))


def settings(endpoint: support.Endpoint, **changes: Any) -> agents.LlmSettings:
    given = {
        "model": "test-model",
        "base_url": endpoint.base_url,
        "api_key": KEY,
        "system": "You sort.",
        "price": PRICE,
    }
    return agents.LlmSettings(**({"price": PRICE} | given | changes))


async def ask(model: agents.Llm, endpoint: support.Endpoint, **options: Any) -> agents.LlmAnswer:
    return await model.ask(settings(endpoint), "Smoke over the roof.", SCHEMA, **options)


async def failure(model: agents.Llm, endpoint: support.Endpoint, **options: Any) -> errors.OstinatoError:
    """How asking fails. Nothing of it may hold the key."""
    with pytest.raises(errors.OstinatoError) as caught:
        await ask(model, endpoint, **({"timeout": 5} | options))
    error = caught.value
    assert KEY not in f"{error!r} {error} {error.details} {error.__cause__!r}"
    assert error.__cause__ is None
    return error


def is_final(error: errors.OstinatoError) -> bool:
    """As the worker decides it."""
    return isinstance(error, (errors.TerminalError, errors.InvalidInput))


# --- a good answer -----------------------------------------------------------------------------------------------


async def test_an_answer_with_its_evidence_tokens_and_cost(model: agents.Llm, endpoint: support.Endpoint) -> None:
    assert await ask(model, endpoint) == agents.LlmAnswer(
        output={"category": "fire", "severity": 2},
        evidence=("smoke over the roof",),
        usage=agents.Usage(100, 20, 1),
        cost=0.00045,
        model="test-model-2026-11-01",
        finish_reason="stop",
    )


async def test_what_is_sent(model: agents.Llm, endpoint: support.Endpoint) -> None:
    wanted = settings(endpoint, temperature=0.2, parameters={"max_tokens": 50, "seed": 7})
    await model.ask(wanted, "Smoke?", SCHEMA, idempotency_key="job:task:1")
    [request] = endpoint.requests
    assert request.line == "POST /v1/chat/completions HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    body = request.body
    assert (body["model"], body["temperature"], body["max_tokens"], body["seed"]) == ("test-model", 0.2, 50, 7)
    system, user = body["messages"]
    assert user == {"role": "user", "content": "Smoke?"}
    assert system["role"] == "system"
    assert system["content"].startswith("You sort.\n")
    described = body["response_format"]["json_schema"]
    assert json.dumps(described["schema"], separators=(",", ":")) in system["content"]
    assert described["strict"] is True
    assert list(described["schema"]["properties"]) == ["category", "severity", "evidence"]
    assert described["schema"]["required"] == ["category", "severity", "evidence"]


async def test_messages_may_be_given_one_by_one(model: agents.Llm, endpoint: support.Endpoint) -> None:
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    await model.ask(settings(endpoint), said, SCHEMA)
    assert endpoint.requests[0].body["messages"][1:] == said


async def test_a_schema_that_leaves_something_open_is_not_strict(model: agents.Llm, endpoint: support.Endpoint) -> None:
    await model.ask(settings(endpoint), "?", {"type": "object", "properties": {"category": {"type": "string"}}})
    assert endpoint.requests[0].body["response_format"]["json_schema"]["strict"] is False


async def test_evidence_need_not_be_asked_for(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(saying({"category": "fire", "severity": 1}))
    answer = await model.ask(settings(endpoint, evidence=False), "?", SCHEMA)
    assert (answer.output, answer.evidence) == ({"category": "fire", "severity": 1}, ())
    assert endpoint.requests[0].body["response_format"]["json_schema"]["schema"] == SCHEMA


async def test_evidence_that_the_schema_has_itself_stays_in_the_output(
    model: agents.Llm, endpoint: support.Endpoint
) -> None:
    own = {"type": "object", "properties": {"evidence": {"type": "array"}}, "required": ["evidence"]}
    endpoint.plan(saying({"evidence": ["a", 1, "b"]}))
    answer = await model.ask(settings(endpoint), "?", own)
    assert (answer.output, answer.evidence) == ({"evidence": ["a", 1, "b"]}, ("a", "b"))


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(support.GOOD),
        f"```json\n{json.dumps(support.GOOD, indent=2)}\n```",
        f"Here it is:\n```\n{json.dumps(support.GOOD)}\n```\nAnything else?",
        f"Sure! {json.dumps(support.GOOD)} I hope this helps.",
        f"\n\n  {json.dumps(support.GOOD)}  \n",
    ],
)
async def test_json_is_found_wherever_it_stands(model: agents.Llm, endpoint: support.Endpoint, content: str) -> None:
    endpoint.plan(saying(content))
    answer = await ask(model, endpoint)
    assert answer.output == {"category": "fire", "severity": 2}
    assert answer.usage.calls == 1


async def test_content_may_come_in_parts(model: agents.Llm, endpoint: support.Endpoint) -> None:
    text = json.dumps(support.GOOD)
    parts = [{"type": "text", "text": text[:9]}, {"type": "text", "text": text[9:]}]
    endpoint.plan(sending({"choices": [{"message": {"content": parts}}]}))
    answer = await ask(model, endpoint)
    assert answer.output == {"category": "fire", "severity": 2}
    assert (answer.model, answer.finish_reason) == ("test-model", None)


@pytest.mark.parametrize(
    "usage", [None, {}, "many", {"prompt_tokens": -1, "completion_tokens": 2}, {"prompt_tokens": 1}]
)
async def test_tokens_that_are_not_told_cost_nothing_known(
    model: agents.Llm, endpoint: support.Endpoint, usage: Any
) -> None:
    endpoint.plan(saying(usage=usage))
    answer = await ask(model, endpoint)
    assert (answer.usage, answer.cost) == (agents.Usage(0, 0, 1), None)


async def test_no_key_no_header(model: agents.Llm, endpoint: support.Endpoint) -> None:
    await model.ask(settings(endpoint, api_key=""), "?", SCHEMA)
    assert "authorization" not in endpoint.requests[0].headers


async def test_a_line_end_after_the_key_does_not_matter(model: agents.Llm, endpoint: support.Endpoint) -> None:
    await model.ask(settings(endpoint, api_key=f"{KEY}\n"), "?", SCHEMA)
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_addresses() -> None:
    assert wire.address(None) == "https://api.openai.com/v1/chat/completions"
    assert wire.address("http://localhost:11434/v1/") == "http://localhost:11434/v1/chat/completions"
    assert wire.address("https://a.example/x?api-version=1") == "https://a.example/x/chat/completions?api-version=1"


# --- other ways to ask for JSON ----------------------------------------------------------------------------------


def knowing(*formats: str) -> support.Choosing:
    def choose(request: support.Request) -> support.Behaviour:
        if request.format in formats:
            return saying()
        return refusing(400, f"response_format.type {request.format} is unavailable")

    return choose


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (("json_schema",), ["json_schema"]),
        (("json_object", "text"), ["json_schema", "json_object"]),
        (("text",), ["json_schema", "json_object", "text"]),
    ],
)
async def test_the_best_format_that_the_endpoint_knows_is_found_and_remembered(
    model: agents.Llm, endpoint: support.Endpoint, known: tuple[str, ...], asked: list[str]
) -> None:
    endpoint.choose = knowing(*known)
    answer = await ask(model, endpoint)
    assert [request.format for request in endpoint.requests] == asked
    assert answer.usage == agents.Usage(100, 20, 1)
    await ask(model, endpoint)
    assert [request.format for request in endpoint.requests] == [*asked, asked[-1]]


async def test_an_error_without_words_may_be_about_the_format(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(sending(b"", 400), saying())
    assert (await ask(model, endpoint)).output["category"] == "fire"


async def test_other_servers_name_the_field_elsewhere(model: agents.Llm, endpoint: support.Endpoint) -> None:
    detail = [{"loc": ["body", "response_format", "type"], "msg": "Input should be 'text'"}]
    endpoint.plan(sending({"detail": detail}, 422), saying())
    assert (await ask(model, endpoint)).output["category"] == "fire"


async def test_an_error_about_something_else_is_not(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(refusing(400, "too long", code="context_length_exceeded"))
    error = await failure(model, endpoint)
    assert len(endpoint.requests) == 1
    assert is_final(error)
    assert error.message.startswith("127.0.0.1 answered 400 (context_length_exceeded): check the model")


# --- answers that do not fit -------------------------------------------------------------------------------------


async def test_a_violation_is_corrected_in_a_second_round(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(saying(BAD, usage=(100, 20)), saying(usage=(150, 25)))
    answer = await ask(model, endpoint, idempotency_key="k")
    assert answer.output == {"category": "fire", "severity": 2}
    assert answer.usage == agents.Usage(250, 45, 2)
    assert answer.cost == 0.001075
    first, second = endpoint.requests
    assert second.body["messages"][:2] == first.body["messages"]
    assistant, user = second.body["messages"][2:]
    assert assistant == {"role": "assistant", "content": json.dumps(BAD)}
    assert "- severity: 0 is less than the minimum of 1" in user["content"]
    assert "- category: " in user["content"]
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]


@pytest.mark.parametrize("content", ["I cannot say.", '{"category": "fire", "sev', "[1]", "", None, "{]}", '{"a":NaN}'])
async def test_what_is_no_json_object_is_corrected_too(
    model: agents.Llm, endpoint: support.Endpoint, content: str | None
) -> None:
    endpoint.plan(saying(content), saying())
    assert (await ask(model, endpoint)).output["severity"] == 2
    assert "- the answer is" in endpoint.requests[1].body["messages"][-1]["content"]


async def test_two_violations_are_an_error_that_names_them_and_may_be_tried_again(
    model: agents.Llm, endpoint: support.Endpoint
) -> None:
    endpoint.plan(saying(BAD))
    meter = agents.Meter()
    error = await failure(model, endpoint, meter=meter)
    assert isinstance(error, errors.AnswerInvalid)
    assert not is_final(error)
    assert len(endpoint.requests) == 2
    assert {found["path"] for found in error.details["violations"]} == {"category", "severity"}
    assert "and 1 more" in error.message
    assert (meter.usage, meter.cost) == (agents.Usage(200, 40, 2), 0.0009)


async def test_a_key_that_the_endpoint_plays_back_is_masked(model: agents.Llm, endpoint: support.Endpoint) -> None:
    long = KEY * 5
    open_schema = {"type": "object", "properties": {"a": {"maxLength": 40}}}
    endpoint.plan(saying({"a": long, long: 1}, usage=None))
    with pytest.raises(errors.AnswerInvalid, match=r"\[secret\]") as caught:
        await model.ask(settings(endpoint, api_key=long), "?", {**open_schema, "additionalProperties": False})
    assert KEY not in f"{caught.value} {caught.value.details}"
    endpoint.plan(saying({"a": f"it is {long}", "evidence": [long]}))
    answer = await model.ask(settings(endpoint, api_key=long), "?", open_schema)
    assert (answer.output, answer.evidence) == ({"a": "it is [secret]"}, ("[secret]",))


async def test_a_key_that_is_only_a_word_is_no_secret(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(saying({"category": "fire", "severity": 1, "evidence": ["on fire"]}))
    answer = await model.ask(settings(endpoint, api_key="fire"), "?", SCHEMA)
    assert answer.output["category"] == "fire"


async def test_an_answer_cut_off_is_an_error_that_says_so(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(saying('{"category": "fi', finish="length"))
    meter = agents.Meter()
    error = await failure(model, endpoint, meter=meter)
    assert isinstance(error, errors.AnswerTruncated)
    assert is_final(error)
    assert "max_tokens" in error.message
    assert meter.usage == agents.Usage(100, 20, 1)


@pytest.mark.parametrize(
    "behave",
    [
        saying(None, refusal="I will not."),
        saying("", finish="content_filter"),
        refusing(400, "response_format or so", code="content_filter"),
    ],
)
async def test_a_refusal_of_the_model_is_final(
    model: agents.Llm, endpoint: support.Endpoint, behave: support.Behaviour
) -> None:
    endpoint.plan(behave)
    error = await failure(model, endpoint)
    assert isinstance(error, errors.ModelRefused)
    assert len(endpoint.requests) == 1


async def test_a_huge_output_is_not_taken(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(saying({"category": "fire", "severity": 1, "evidence": ["x" * 300_000]}), saying())
    assert (await ask(model, endpoint)).usage.calls == 2
    assert "more than 262,144 bytes" in endpoint.requests[1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    "text",
    ["```\n" + " " * 250_000, "```" * 80_000, "```\n" * 60_000, "{" * 250_000, "[" * 250_000, "{}" * 120_000],
    ids=range(6),
)
def test_no_text_takes_long_to_read(text: str) -> None:
    started = time.thread_time()
    assert wire.parse(text)[0] is None
    assert time.thread_time() - started < 0.5


# --- errors of every class ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (400, "check the model"),
        (401, "check apiKey"),
        (402, "paid"),
        (403, "check apiKey"),
        (404, "check baseUrl"),
        (405, "check baseUrl"),
        (413, "too long"),
        (422, "check the model"),
        (301, "redirects are not followed"),
        (418, "does not want this"),
    ],
)
async def test_what_will_not_pass_is_final_and_says_what_to_check(
    model: agents.Llm, endpoint: support.Endpoint, status: int, hint: str
) -> None:
    endpoint.plan(refusing(status, "bad", headers={"Location": "/elsewhere"}))
    error = await failure(model, endpoint)
    assert isinstance(error, errors.CallRejected)
    assert error.message.startswith(f"127.0.0.1 answered {status}")
    assert hint in error.message
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [408, 409, 425, 500, 502, 503, 504, 529])
async def test_what_may_pass_is_tried_again_later(model: agents.Llm, endpoint: support.Endpoint, status: int) -> None:
    endpoint.plan(refusing(status))
    error = await failure(model, endpoint)
    assert isinstance(error, errors.CallFailed)
    assert not is_final(error)
    assert len(endpoint.requests) == 1


async def test_a_server_that_is_down_may_say_when_it_is_back(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(refusing(503, headers={"Retry-After": "30"}), saying())
    error = await failure(model, endpoint)
    assert isinstance(error, errors.RetryAfter)
    assert error.seconds == 30
    assert (await ask(model, endpoint)).usage.calls == 1  # it was not about the key, so nobody else waits


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "17"}, 17),
        ({"retry-after-ms": "2500"}, 2.5),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 360),
        ({"x-ratelimit-reset-tokens": "1.5s"}, 1.5),
        ({}, 1),
    ],
)
async def test_too_many_calls_are_retried_when_the_endpoint_says(
    model: agents.Llm, endpoint: support.Endpoint, headers: dict[str, str], seconds: float
) -> None:
    endpoint.plan(refusing(429, code="rate_limit_exceeded", headers=headers))
    error = await failure(model, endpoint)
    assert isinstance(error, errors.RetryAfter)
    assert error.seconds == pytest.approx(seconds)


async def test_too_many_calls_hold_back_the_next_one_without_asking(
    model: agents.Llm, endpoint: support.Endpoint
) -> None:
    endpoint.plan(refusing(429, headers={"Retry-After": "60"}), saying())
    await failure(model, endpoint)
    error = await failure(model, endpoint)
    assert isinstance(error, errors.RetryAfter)
    assert error.seconds == pytest.approx(60, abs=2)
    assert len(endpoint.requests) == 1
    other = settings(endpoint, api_key="another")
    assert (await model.ask(other, "?", SCHEMA)).output["severity"] == 2


async def test_models_may_share_a_limiter(endpoint: support.Endpoint) -> None:
    caller, limits = outgoing.Caller(outgoing.CallOptions(allow=("127.0.0.1/32",))), agents.Limiter()
    endpoint.plan(refusing(429, headers={"Retry-After": "60"}), saying())
    await failure(agents.Llm(caller, limits), endpoint)
    assert isinstance(await failure(agents.Llm(caller, limits), endpoint), errors.RetryAfter)
    assert len(endpoint.requests) == 1


async def test_an_account_with_nothing_left_is_not_too_many_calls(
    model: agents.Llm, endpoint: support.Endpoint
) -> None:
    endpoint.plan(refusing(429, code="insufficient_quota"), saying())
    error = await failure(model, endpoint)
    assert is_final(error)
    assert "nothing left" in error.message
    assert (await ask(model, endpoint)).output["severity"] == 2


@pytest.mark.parametrize(
    "document",
    [b"<html>", b"", b"\x01", b"\xff\xfe", b"[" * 100_000, {}, [], {"choices": []}, {"choices": [{"message": 1}]}],
    ids=range(9),
)
async def test_what_is_no_completion_is_tried_again_with_a_hint(
    model: agents.Llm, endpoint: support.Endpoint, document: Any
) -> None:
    endpoint.plan(sending(document))
    error = await failure(model, endpoint)
    assert isinstance(error, errors.CallFailed)
    assert "check baseUrl" in error.message


@pytest.mark.parametrize(
    ("code", "kind"), [(401, errors.CallRejected), (503, errors.CallFailed), ("x", errors.CallFailed)]
)
async def test_an_error_inside_an_answer_of_200_is_one(
    model: agents.Llm, endpoint: support.Endpoint, code: Any, kind: type[errors.OstinatoError]
) -> None:
    endpoint.plan(sending({"error": {"message": f"bad {KEY}", "code": code}}))
    assert isinstance(await failure(model, endpoint), kind)


@pytest.mark.parametrize(
    "behave", [behaviours.breaking_off, behaviours.talking_nonsense], ids=["half an answer", "another protocol"]
)
async def test_a_cut_connection_is_tried_again(
    model: agents.Llm, endpoint: support.Endpoint, behave: support.Behaviour
) -> None:
    endpoint.plan(behave)
    error = await failure(model, endpoint)
    assert isinstance(error, errors.TargetUnreachable)
    assert not is_final(error)


async def test_an_answer_without_end_is_cut_off(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(behaviours.endless)
    error = await failure(model, endpoint)
    assert is_final(error)
    assert "more than 1,048,576 bytes" in error.message


@pytest.mark.parametrize("behave", [behaviours.dripping, saying(after=30)], ids=["dripping", "slow"])
async def test_a_slow_answer_ends_in_time(
    model: agents.Llm, endpoint: support.Endpoint, behave: support.Behaviour
) -> None:
    endpoint.plan(behave)
    started = time.monotonic()
    error = await failure(model, endpoint, timeout=0.4)
    assert isinstance(error, errors.TargetUnreachable)
    assert not is_final(error)
    assert time.monotonic() - started < 15


async def test_the_time_is_for_the_correction_too(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(saying(BAD), saying(after=30))
    started = time.monotonic()
    meter = agents.Meter()
    await failure(model, endpoint, timeout=2, meter=meter)
    assert time.monotonic() - started < 15
    assert meter.usage.calls == 1


async def test_what_is_cancelled_has_counted_what_it_spent(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(saying(BAD), saying(after=30))
    meter = agents.Meter()
    task = asyncio.create_task(ask(model, endpoint, meter=meter))
    while len(endpoint.requests) < 2:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert meter.usage == agents.Usage(100, 20, 1)


# --- what must not be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:9/v1", "http://169.254.169.254/v1", "https://[::1]/v1", "file:///etc", "nonsense"]
)
async def test_an_endpoint_inside_the_network_is_not_called(base_url: str) -> None:
    guarded = agents.Llm(outgoing.Caller())
    with pytest.raises(errors.TargetRefused):
        await guarded.ask(agents.LlmSettings(model="m", base_url=base_url, api_key=KEY), "?", SCHEMA)


async def test_a_schema_that_is_none_is_refused_before_anything_is_sent(
    model: agents.Llm, endpoint: support.Endpoint
) -> None:
    with pytest.raises(errors.InvalidInput, match=r"outputSchema\.type"):
        await model.ask(settings(endpoint), "?", {"type": "array"})
    assert not endpoint.requests


@pytest.mark.parametrize("name", ["messages", "model", "stream", "response_format", "n"])
def test_parameters_do_not_replace_what_is_ours(name: str) -> None:
    with pytest.raises(errors.InvalidInput, match=f"parameters.{name}"):
        agents.LlmSettings(model="m", parameters={name: 1})


async def test_the_key_is_in_no_log_and_no_representation(
    model: agents.Llm, endpoint: support.Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert KEY not in repr(settings(endpoint))
    for behave in (saying(), saying(BAD), refusing(401), refusing(500), behaviours.breaking_off):
        endpoint.plan(behave)
        with contextlib.suppress(errors.OstinatoError):
            await ask(model, endpoint)
    endpoint.plan(refusing(429))
    await failure(model, endpoint)
    assert caplog.records
    assert KEY not in caplog.text
    assert KEY not in "".join(str(record.__dict__) for record in caplog.records)


async def test_a_key_that_cannot_be_sent_is_not_told(model: agents.Llm, endpoint: support.Endpoint) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        await model.ask(settings(endpoint, api_key="schlüssel"), "?", SCHEMA)
    assert "schlüssel" not in caught.value.message


async def test_few_formats_are_remembered(model: agents.Llm, endpoint: support.Endpoint) -> None:
    for number in range(llm.MOST_REMEMBERED + 50):
        model.remember_format(settings(endpoint, model=f"m{number}"), 1)
    assert len(model._formats) == llm.MOST_REMEMBERED
