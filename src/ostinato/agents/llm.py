"""Asks language models behind any endpoint that speaks OpenAI's chat completions, for JSON that fits a schema.

The endpoint is a user's choice, so it is called as all users' addresses are: through `outgoing`, where the address
that was checked is the one that is connected to, and the size and the time of an answer are bounded. That is why
OpenAI's SDK is not what calls it. The SDK follows redirects, reads answers of any size, takes its timeout for each part
that is read, and brings 30 MB and a second of imports, for the one POST that is needed. A program that has a client of
the SDK all the same can pass it in: `Llm(sdk.Sdk(client))`.

Nothing is retried in here but an answer that does not fit, once. To come again is what the engine is for, and it does
so durably.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ostinato import errors, outgoing
from ostinato.agents import cost, limiter, refusals, resets, schema, wire
from ostinato.core import codec, graph
from ostinato.outgoing import targets

ROUNDS = 2
"""The answer, and one correction."""
MOST_REMEMBERED = 1024
SHORTEST_SECRET = 16
_MASK = "[secret]"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LlmSettings:
    model: str
    base_url: str | None = None
    """OpenAI's own, if there is none."""
    api_key: str = dataclasses.field(default="", repr=False)
    """The key itself. Servers on one's own machine often need none."""
    system: str = ""
    temperature: float | None = None
    price: cost.Price | None = None
    evidence: bool = True
    """Whether to ask for quotations that support the answer."""
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """Whatever else the endpoint knows, such as `max_tokens` or `seed`."""

    def __post_init__(self) -> None:
        wire.check_parameters(self.parameters, "parameters")


@dataclasses.dataclass(frozen=True)
class LlmAnswer:
    output: dict[str, Any]
    evidence: tuple[str, ...]
    usage: cost.Usage
    cost: float | None
    """None if there is no price, or the endpoint did not tell the tokens."""
    model: str
    """As the endpoint names it: often more exact than what was asked for."""
    finish_reason: str | None


class Transport(Protocol):
    """Carries one request to an endpoint. Raises TargetUnreachable if there was no answer."""

    def address(self, settings: LlmSettings) -> str:
        """Where the request goes."""
        ...

    async def post(
        self, settings: LlmSettings, body: bytes, *, idempotency_key: str | None, timeout: float
    ) -> outgoing.Answer: ...


class Guarded:
    """Calls what users name, and nothing that lies inside one's own network."""

    def __init__(self, caller: outgoing.Caller) -> None:
        self._caller = caller

    def address(self, settings: LlmSettings) -> str:
        return wire.address(settings.base_url)

    async def post(
        self, settings: LlmSettings, body: bytes, *, idempotency_key: str | None, timeout: float
    ) -> outgoing.Answer:
        key = settings.api_key.strip()  # a line end at the end of a file with a key is not part of it
        return await self._caller.post(
            self.address(settings),
            body,
            headers={"Authorization": f"Bearer {key}"} if key else None,
            idempotency_key=idempotency_key,
            timeout=timeout,
            any_status=True,
        )


class Llm:
    """Asks models. Share one in a process: it holds what is known of the limits of keys, and of endpoints."""

    def __init__(self, transport: Transport | outgoing.Caller, limits: limiter.Limiter | None = None) -> None:
        self._transport = Guarded(transport) if isinstance(transport, outgoing.Caller) else transport
        self._limits = limiter.Limiter() if limits is None else limits
        self._formats: collections.OrderedDict[tuple[str, str], int] = collections.OrderedDict()

    async def ask(
        self,
        settings: LlmSettings,
        messages: str | Sequence[wire.Message],
        output_schema: dict[str, Any],
        *,
        timeout: float = 300.0,
        idempotency_key: str | None = None,
        meter: cost.Meter | None = None,
    ) -> LlmAnswer:
        """An answer that fits the schema. `timeout` is for everything: waiting for a turn, and the correction too.

        `meter` counts what is spent as it is spent, and so knows it also if this fails. Requests with the same
        `idempotency_key` and content are the same to an endpoint that knows about them: use one for each attempt.
        """
        graph.check_seconds(timeout, "timeout")
        schema.check(output_schema)
        return await _Conversation(self, settings, output_schema, timeout, idempotency_key, meter).run(messages)

    async def send(
        self, settings: LlmSettings, body: bytes, key: str | None, within: float
    ) -> wire.Completion | refusals.Refusal:
        """One request, when it is its turn."""
        host, ends = self.host_of(settings), _now() + within
        async with self._limits.turn(self._transport.address(settings), settings.api_key, within=within) as turn:
            answer = await self._transport.post(settings, body, idempotency_key=key, timeout=max(ends - _now(), 0.001))
            status = answer.status
            if 200 <= status < 300:
                document = wire.decode(answer.body)
                status = refusals.inside(document)
                if status is None:
                    turn.answered(*resets.calls_left(answer.headers))
                    return wire.read(document, host)
            refusal = refusals.Refusal(status, answer.body, answer.headers)
            if refusal.is_for_too_many:
                wait = turn.refused(resets.wait_of(answer.headers))
                raise errors.RetryAfter(wait, f"{host} answered 429: too many calls, wait {wait:.1f} s")
            return refusal

    def host_of(self, settings: LlmSettings) -> str:
        return targets.parse(self._transport.address(settings)).host

    def format_of(self, settings: LlmSettings) -> int:
        """The place in `wire.FORMATS` of what this endpoint is known to take."""
        return self._formats.get((self._transport.address(settings), settings.model), 0)

    def remember_format(self, settings: LlmSettings, place: int) -> None:
        if not place:
            return
        self._formats[self._transport.address(settings), settings.model] = place
        if len(self._formats) > MOST_REMEMBERED:
            self._formats.popitem(last=False)


class _Conversation:
    """One question, up to its answer."""

    def __init__(
        self,
        llm: Llm,
        settings: LlmSettings,
        output_schema: dict[str, Any],
        timeout: float,
        idempotency_key: str | None,
        meter: cost.Meter | None,
    ) -> None:
        self._llm = llm
        self._settings = settings
        self._schema = output_schema
        self._wanted = wire.asked_for(output_schema, settings.evidence)
        self._ends = _now() + timeout
        self._key = idempotency_key
        self._meters = [own := cost.Meter(), *([meter] if meter is not None else [])]
        self._spent = own
        self._host = llm.host_of(settings)

    async def run(self, messages: str | Sequence[wire.Message]) -> LlmAnswer:
        said = wire.opening(self._settings.system, self._wanted, messages)
        violations: list[schema.Violation] = []
        for _ in range(ROUNDS):
            completion = await self._complete(said)
            output, evidence, violations = self._judge(completion)
            if not violations:
                return LlmAnswer(
                    output,
                    evidence,
                    self._spent.usage,
                    self._spent.cost,
                    completion.model or self._settings.model,
                    completion.finish_reason,
                )
            said = [*said, *wire.correction(completion.text, violations)]
        raise self._invalid(violations)

    async def _complete(self, said: list[wire.Message]) -> wire.Completion:
        """The next answer of the model, by the best format that the endpoint knows."""
        place = self._llm.format_of(self._settings)
        while True:
            body = self._request(said, wire.FORMATS[place])
            answer = await self._llm.send(self._settings, body, self._key_for(body), self._left())
            if isinstance(answer, wire.Completion):
                self._llm.remember_format(self._settings, place)
                return self._counted(answer)
            if not answer.is_for_the_format or place + 1 == len(wire.FORMATS):
                raise answer.error(self._host)
            place += 1

    def _request(self, said: list[wire.Message], format_: str) -> bytes:
        settings = self._settings
        body: dict[str, Any] = {**settings.parameters, "model": settings.model, "messages": said}
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        return codec.encode(body | wire.response_format(format_, self._wanted), "the request")

    def _counted(self, completion: wire.Completion) -> wire.Completion:
        """Paid for, whatever becomes of it."""
        for meter in self._meters:
            if completion.usage is None:
                meter.add(cost.Usage(calls=1), None)
            else:
                meter.add(completion.usage, self._settings.price)
        return completion

    def _judge(self, completion: wire.Completion) -> tuple[dict[str, Any], tuple[str, ...], list[schema.Violation]]:
        """The output and the evidence, or what is wrong; errors are what no correction could change."""
        if completion.refused or completion.finish_reason == "content_filter":
            why = "refused to answer" if completion.refused else "was stopped by the provider's filter"
            raise errors.ModelRefused(f"the model {why}: change the system prompt or the input")
        if completion.finish_reason == "length":
            raise errors.AnswerTruncated(
                "the answer was cut off at the limit of tokens: raise max_tokens in the parameters, or ask for less"
            )
        output, problem = wire.parse(self._masked(completion.text))
        if output is None:
            return {}, (), [problem] if problem else []
        evidence = wire.take_evidence(output, self._schema) if self._settings.evidence else ()
        return output, evidence, schema.validate(self._schema, output)

    def _invalid(self, violations: list[schema.Violation]) -> errors.AnswerInvalid:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        return errors.AnswerInvalid(
            f"the answer does not fit the output schema, and neither does its correction: {violations[0]}{more}",
            violations=[dataclasses.asdict(violation) for violation in violations],
        )

    def _masked(self, text: str) -> str:
        """Who answers knows the key, and outputs and violations are stored. A short one is a word: `none`, `ollama`."""
        key = self._settings.api_key.strip()
        return text.replace(key, _MASK) if len(key) >= SHORTEST_SECRET else text

    def _key_for(self, body: bytes) -> str | None:
        """A correction is another request than the first one, and must not get its answer."""
        if self._key is None:
            return None
        return hashlib.sha256(self._key.encode() + b"\0" + body).hexdigest()

    def _left(self) -> float:
        left = self._ends - _now()
        if left <= 0:
            raise errors.TargetUnreachable(f"{self._host} did not answer in time")
        return left


def _now() -> float:
    return asyncio.get_running_loop().time()
