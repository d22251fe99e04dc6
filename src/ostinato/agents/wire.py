"""The chat completions protocol: what is sent, and what may be believed of what comes back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from ostinato import errors
from ostinato.agents import cost, schema
from ostinato.core import codec

DEFAULT_BASE_URL = "https://api.openai.com/v1"
EVIDENCE = "evidence"
MOST_EVIDENCE = 20
LONGEST_EVIDENCE = 1000
LONGEST_OUTPUT = 256 * 1024
"""In bytes."""
MOST_TOKENS = 10**9
FORMATS = ("json_schema", "json_object", "text")
"""Ways to ask for JSON, the best first: not every endpoint knows all of them."""
RESERVED = ("messages", "model", "n", "response_format", "stream", "stream_options", "tools")
"""Parameters that are ours."""

_FENCE = "```"
_INSTRUCTIONS = "Answer with one JSON object and nothing else, no markdown. It must be valid against this JSON Schema:"
_ABOUT_EVIDENCE = "Short quotations from the input, word for word, that support the answer; empty if there are none."

Message = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Completion:
    text: str
    finish_reason: str | None
    usage: cost.Usage | None
    """None if the endpoint did not say."""
    model: str | None
    refused: bool


def address(base_url: str | None) -> str:
    """Where to POST; a query, as some gateways want it, is kept."""
    base, mark, query = (base_url or DEFAULT_BASE_URL).partition("?")
    return f"{base.rstrip('/')}/chat/completions{mark}{query}"


def check_parameters(parameters: Mapping[str, Any], field: str) -> None:
    """Refuse those that are ours."""
    for name in parameters:
        if name in RESERVED:
            raise errors.InvalidInput(f"{field}.{name} is set by Ostinato: leave it out", field=f"{field}.{name}")


def asked_for(output_schema: dict[str, Any], evidence: bool) -> dict[str, Any]:
    """The schema that the model is given. The evidence is one more property, if the schema has none of that name."""
    if not evidence or EVIDENCE in output_schema["properties"]:
        return output_schema
    quotations = {"type": "array", "items": {"type": "string"}, "description": _ABOUT_EVIDENCE}
    return output_schema | {
        "properties": output_schema["properties"] | {EVIDENCE: quotations},
        "required": [*output_schema.get("required", []), EVIDENCE],
    }


def opening(system: str, wanted: dict[str, Any], messages: str | Sequence[Message]) -> list[Message]:
    """The schema is in the prompt too: there are endpoints that take `response_format` and do nothing about it."""
    instructions = f"{_INSTRUCTIONS}\n{codec.encode(wanted, 'outputSchema').decode()}"
    prompt = f"{system}\n\n{instructions}" if system else instructions
    given = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
    return [{"role": "system", "content": prompt}, *given]


def correction(text: str, violations: Sequence[schema.Violation]) -> list[Message]:
    """What was answered, and what is wrong with it."""
    wrong = "\n".join(f"- {violation}" for violation in violations)
    again = (
        f"Your answer does not fit the JSON Schema:\n{wrong}\nSend the whole corrected JSON object and nothing else."
    )
    return [{"role": "assistant", "content": text[:LONGEST_OUTPUT]}, {"role": "user", "content": again}]


def response_format(format_: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """The part of the request that asks for JSON; nothing at all for plain text, which every endpoint knows."""
    if format_ == "json_schema":
        described = {"name": "output", "schema": wanted, "strict": schema.is_closed(wanted)}
        return {"response_format": {"type": "json_schema", "json_schema": described}}
    return {"response_format": {"type": "json_object"}} if format_ == "json_object" else {}


def decode(body: bytes) -> Any:
    """The document in a body from outside; None if it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def read(document: Any, host: str) -> Completion:
    """The first choice of an answer."""
    try:
        choice = document["choices"][0]
        message = choice["message"]
        text = _text(message.get("content"))
        reason, refusal = choice.get("finish_reason"), message.get("refusal")
    except (AttributeError, IndexError, KeyError, TypeError):
        raise errors.CallFailed(
            f"{host} answered with something that is no chat completion: check baseUrl, which usually ends in /v1"
        ) from None
    given = cast("dict[str, Any]", document)
    return Completion(
        text,
        reason if isinstance(reason, str) else None,
        _usage(given.get("usage")),
        given["model"] if isinstance(given.get("model"), str) else None,
        bool(refusal),
    )


def parse(text: str) -> tuple[dict[str, Any] | None, schema.Violation | None]:
    """The object in the text, also if it stands in a fence or between words; or why there is none."""
    if len(text.encode("utf-8", "replace")) > LONGEST_OUTPUT:
        return None, schema.Violation("", f"has more than {LONGEST_OUTPUT:,} bytes: answer more briefly")
    problem = "is empty"
    for candidate in filter(str.strip, (text, _fenced(text), text[text.find("{") : text.rfind("}") + 1])):
        try:
            value = codec.decode(candidate)
            codec.encode(value)  # what cannot be written again cannot be stored
        except (msgspec.DecodeError, errors.InvalidPayload, UnicodeEncodeError, RecursionError):
            problem = _what_is_wrong(candidate)
            continue
        if isinstance(value, dict):
            return cast("dict[str, Any]", value), None
        problem = "is JSON, but not an object"
    return None, schema.Violation("", f"the answer {problem}")


def take_evidence(output: dict[str, Any], output_schema: dict[str, Any]) -> tuple[str, ...]:
    """The evidence of an answer. It is taken out of the output, unless the schema itself has such a property."""
    given = output.get(EVIDENCE) if EVIDENCE in output_schema["properties"] else output.pop(EVIDENCE, None)
    listed = cast("list[Any]", given if isinstance(given, list) else [given])
    return tuple(item[:LONGEST_EVIDENCE] for item in listed if isinstance(item, str) and item)[:MOST_EVIDENCE]


def _fenced(text: str) -> str:
    """What stands in the first fence of a markdown text."""
    opened = text.find(_FENCE)
    begin = text.find("\n", opened)
    end = text.find(_FENCE, begin)
    return text[begin:end] if opened >= 0 and 0 <= begin < end else ""


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part["text"] for part in cast("list[Any]", content) if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def _usage(given: Any) -> cost.Usage | None:
    if not isinstance(given, dict):
        return None
    counts = [cast("dict[str, Any]", given).get(name) for name in ("prompt_tokens", "completion_tokens")]
    if not all(type(count) is int and 0 <= count <= MOST_TOKENS for count in counts):
        return None
    return cost.Usage(cast(int, counts[0]), cast(int, counts[1]), 1)


def _what_is_wrong(text: str) -> str:
    try:
        json.loads(text)  # its errors have lines and columns
    except json.JSONDecodeError as error:
        return f"is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        pass
    return "is not valid JSON: it is nested too deeply, or has text or numbers that are not allowed"
