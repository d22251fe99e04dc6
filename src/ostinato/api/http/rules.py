"""Rules: describe them, try them out, take them away."""

from __future__ import annotations

from typing import Any

from ostinato import threads
from ostinato.api import reacting, routing
from ostinato.api.calls import Client
from ostinato.api.http import definitions
from ostinato.core import codec, scopes

routes = routing.Routes()
TAG = "rules"


KIND = definitions.Kind(
    "rule",
    lambda client: client.rules.shelf,
    reacting.RuleDefinition,
    reacting.Rules,
    reacting.rule_summary,
    saved="Within a second every process goes by it.",
)
definitions.register(routes, KIND)


@routes(
    "POST",
    "/v1/rules/match",
    scope=scopes.JOBS_READ,
    tag=TAG,
    takes={routing.JSON: reacting.Event | reacting.Entry | reacting.CloudEvent},
)
async def match_rules(client: Client, body: dict[str, Any]) -> reacting.Matched:
    """Say which rules an event would concern. It is not recorded, and nothing happens."""
    return reacting.Matched(await client.rules.matching(body))


@routes("POST", "/v1/rules/check", scope=scopes.JOBS_READ, tag=TAG, takes={routing.JSON: reacting.RuleDefinition})
async def check_rule(client: Client, body: dict[str, Any]) -> reacting.Checked:
    """Check a rule without saving it. It may be without a name."""
    made = await threads.run(lambda: client.rules.shelf.check({"name": "unnamed"} | body))
    return reacting.Checked(codec.decode(codec.encode(made)))
