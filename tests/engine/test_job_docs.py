"""The page about jobs names every field there is, and its example ends as the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from ostinato import Context, EngineOptions, TerminalError, errors
from ostinato.api.settings import ServerOptions
from ostinato.core import codec, graph, retry
from tests.engine import support

PAGE = (Path(__file__).parents[2] / "docs/reference/jobs.md").read_text()


@pytest.mark.parametrize(("heading", "kind"), [("A job", graph.JobSpec), ("A task", graph.TaskSpec)])
def test_every_field_is_named_with_its_default(heading: str, kind: type[msgspec.Struct]) -> None:
    (section,) = re.findall(rf"^## {heading}\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
    told = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.MULTILINE))
    fields = {field.encode_name: field.default for field in msgspec.structs.fields(kind)}
    assert told.keys() == fields.keys()
    for name, default in fields.items():
        if isinstance(default, (bool, int, str)):
            assert told[name].strip("`") == json.dumps(default).strip('"'), name


def test_the_defaults_of_retries_are_those_that_are_told() -> None:
    (told,) = re.findall(r"^\| `retry` \|.*$", PAGE, re.MULTILINE)
    policy = retry.Retry()
    assert f"`maxAttempts` (all of them, {policy.max_attempts})" in told
    for name, value in (
        ("baseDelay", policy.base_delay),
        ("multiplier", policy.multiplier),
        ("maxDelay", policy.max_delay),
    ):
        assert re.search(rf"`{name}`[^`]*\({value:g}\)", told), name


def test_the_limits_of_payloads_are_those_that_are_told() -> None:
    (section,) = re.findall(r"^## What inputs and outputs may be\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
    engine, server = EngineOptions(), ServerOptions()
    assert f"{codec.DEEPEST} levels ({server.max_json_depth} over HTTP)" in section
    assert f"{engine.max_payload_bytes >> 20} MiB (`EngineOptions(max_payload_bytes=…)`" in section
    assert f"{server.max_body_bytes >> 20} MiB for a whole request over HTTP" in section


async def test_the_example_ends_as_the_page_says(url: str) -> None:
    example, _ = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    app = support.make(url)

    @app.function("scrape-store")
    async def scrape(storeId: str) -> str:
        return storeId

    @app.function("compare-prices")
    async def compare() -> None:
        raise ConnectionError("closed")

    @app.function("draw-chart")
    async def draw() -> str:
        return "never"

    @app.function("write-report")
    async def write(ctx: Context) -> dict[str, object]:
        return dict(ctx.dependency_outputs)

    async with app:
        made = await app.submit(json.loads(example))
        assert (await made.result(support.PATIENCE))["report"] == {"scrape": "store-123", "chart": None}
        assert await support.standing(made) == {
            "scrape": "completed",
            "prices": "failed",
            "chart": "skipped",
            "report": "completed",
        }


async def test_the_saga_ends_as_the_page_says(url: str) -> None:
    """B7: what was refunded is not shipped."""
    _, saga = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    app = support.make(url)

    @app.function("charge")
    async def charge() -> None: ...

    @app.function("ship")
    async def ship() -> None:
        raise TerminalError("the parcel was lost")

    @app.function("refund")
    async def refund() -> None: ...

    async with app:
        made = await app.submit(json.loads(saga))
        await support.failure(made)
        assert await support.standing(made) == {"charge": "completed", "ship": "failed", "refund": "completed"}
        with pytest.raises(errors.NotPossible, match="submit a new job"):
            await made.resume()
