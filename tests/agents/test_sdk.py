"""The same questions through a client of OpenAI's SDK, if it is installed."""

from collections.abc import AsyncIterator

import pytest

from ostinato import agents, errors
from ostinato.agents import sdk
from tests.agents import support
from tests.agents.support import KEY, SCHEMA, refusing, saying
from tests.outgoing import support as behaviours

openai = pytest.importorskip("openai")


@pytest.fixture
async def endpoint() -> AsyncIterator[support.Endpoint]:
    async with support.running() as endpoint:
        endpoint.plan(saying())
        yield endpoint


@pytest.fixture
async def model(endpoint: support.Endpoint) -> AsyncIterator[agents.Llm]:
    async with openai.AsyncOpenAI(base_url=endpoint.base_url, api_key=KEY) as client:
        yield agents.Llm(sdk.Sdk(client))


SETTINGS = agents.LlmSettings(model="test-model", price=agents.Price(2.5, 10), parameters={"top_k": 3})


async def test_an_answer(model: agents.Llm, endpoint: support.Endpoint) -> None:
    answer = await model.ask(SETTINGS, "?", SCHEMA, idempotency_key="k")
    assert answer.output == {"category": "fire", "severity": 2}
    assert (answer.usage, answer.cost) == (agents.Usage(100, 20, 1), 0.00045)
    [request] = endpoint.requests
    assert request.line == "POST /v1/chat/completions HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert len(request.headers["idempotency-key"]) == 64
    assert (request.format, request.body["top_k"]) == ("json_schema", 3)


async def test_a_violation_is_corrected(model: agents.Llm, endpoint: support.Endpoint) -> None:
    endpoint.plan(saying({"category": "storm"}), saying())
    assert (await model.ask(SETTINGS, "?", SCHEMA)).usage.calls == 2


@pytest.mark.parametrize(
    ("behave", "kind"),
    [
        (refusing(401), errors.CallRejected),
        (refusing(429, headers={"Retry-After": "17"}), errors.RetryAfter),
        (refusing(500), errors.CallFailed),
        (behaviours.breaking_off, errors.TargetUnreachable),
        (behaviours.talking_nonsense, errors.TargetUnreachable),
        (behaviours.dripping, errors.TargetUnreachable),
        (behaviours.endless, errors.CallRejected),
        (saying(after=30), errors.TargetUnreachable),
    ],
    ids=range(8),
)
async def test_errors_are_the_same_and_the_sdk_does_not_retry(
    model: agents.Llm, endpoint: support.Endpoint, behave: support.Behaviour, kind: type[errors.OstinatoError]
) -> None:
    endpoint.plan(behave)
    with pytest.raises(kind) as caught:
        await model.ask(SETTINGS, "?", SCHEMA, timeout=1)
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)
    assert caught.value.message.startswith(("127.0.0.1 ", "the connection to 127.0.0.1 "))
    assert len(endpoint.requests) == 1
