"""Rules: describe them, try them out, take them away."""

from __future__ import annotations

from typing import Any

from ostinato.api import reacting, routing
from ostinato.api.calls import Client, Principal
from ostinato.api.http.gates import AtVersion, Expected, Name, named
from ostinato.core import codec, scopes

routes = routing.Routes()
TAG = "rules"


@routes(
    "PUT",
    "/v1/rules/{name}",
    scope=scopes.CONFIG_WRITE,
    problems=(409,),
    tag=TAG,
    takes={routing.JSON: reacting.RuleDefinition},
)
async def define_rule(
    client: Client, principal: Principal, name: Name, body: dict[str, Any], expected: Expected = None
) -> reacting.Defined:
    """Save a rule. Within a second every process goes by it."""
    version = await client.rules.define(named(body, name), actor=principal.actor, expected=expected)
    return reacting.Defined(name, version)


@routes("GET", "/v1/rules", scope=scopes.JOBS_READ, tag=TAG)
async def list_rules(client: Client) -> reacting.Rules:
    """List the rules, by name."""
    return reacting.Rules([reacting.rule_summary(found) for found in await client.rules.shelf.all()])


@routes("GET", "/v1/rules/{name}", scope=scopes.JOBS_READ, problems=(404,), tag=TAG)
async def show_rule(client: Client, name: Name, version: AtVersion = None) -> reacting.StoredDefinition:
    """Show the definition of a rule."""
    return reacting.definition(await client.rules.shelf.stored(name, version))


@routes("DELETE", "/v1/rules/{name}", scope=scopes.CONFIG_WRITE, problems=(404,), tag=TAG)
async def remove_rule(client: Client, principal: Principal, name: Name) -> reacting.Removed:
    """Take a rule away. Its versions stay."""
    await client.rules.remove(name, actor=principal.actor)
    return reacting.Removed(name)


@routes("GET", "/v1/rules/{name}/versions", scope=scopes.JOBS_READ, problems=(404,), tag=TAG)
async def list_rule_versions(client: Client, name: Name) -> reacting.Versions:
    """List the versions of a rule, newest first."""
    return reacting.versions(await client.rules.shelf.versions(name))


@routes("POST", "/v1/rules/{name}/rollback", scope=scopes.CONFIG_WRITE, problems=(404, 409), tag=TAG)
async def roll_back_rule(client: Client, principal: Principal, name: Name, body: reacting.RollBack) -> reacting.Defined:
    """Make an earlier version of a rule the newest one."""
    saved = await client.rules.shelf.roll_back(name, body.version, actor=principal.actor)
    return reacting.Defined(name, saved.version)


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
