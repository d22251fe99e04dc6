"""Bodies and answers about agents, graphs and playbooks. OpenAPI shows them all."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ostinato.api import reacting
from ostinato.api.models import Answer, Id
from ostinato.playbooks import definition
from ostinato.store import definitions

# --- definitions -------------------------------------------------------------------------------------------------


class AgentDefinition(definition.Agent, frozen=True, kw_only=True):
    """An agent as its author writes it. The name is that of the path."""

    name: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class GraphDefinition(definition.Graph, frozen=True, kw_only=True):
    """Who needs whose output, as its author writes it. The name is that of the path."""

    name: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class PlaybookDefinition(definition.Playbook, frozen=True, kw_only=True):
    """A playbook as its author writes it. The name is that of the path."""

    name: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class AgentSummary(reacting.GateSummary):
    """An agent without the rest of its definition."""

    kind: definition.Kind
    tags: dict[str, str]


class GraphSummary(reacting.GateSummary):
    """A graph without its edges."""


class PlaybookSummary(reacting.GateSummary):
    """A playbook without the rest of its definition."""

    domain: str
    type: str
    agents: list[str]


class Agents(Answer):
    agents: list[AgentSummary]


class Graphs(Answer):
    graphs: list[GraphSummary]


class Playbooks(Answer):
    playbooks: list[PlaybookSummary]


def agent_summary(found: definitions.Definition) -> AgentSummary:
    document = reacting.document(found)
    return AgentSummary(**_common(found), kind=document["kind"], tags=document.get("tags", {}))


def graph_summary(found: definitions.Definition) -> GraphSummary:
    return GraphSummary(**_common(found))


def playbook_summary(found: definitions.Definition) -> PlaybookSummary:
    document = reacting.document(found)
    return PlaybookSummary(
        **_common(found), domain=document["domain"], type=document["type"], agents=document["agents"]
    )


def _common(found: definitions.Definition) -> dict[str, Any]:
    return msgspec.structs.asdict(reacting.gate_summary(found))


# --- running -----------------------------------------------------------------------------------------------------


class Given(msgspec.Struct, forbid_unknown_fields=True):
    """Data for the playbook of a domain, or a question to it. `playbook` says which one, if there are several."""

    domain_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
    data: Any
    playbook: Annotated[str, msgspec.Meta(pattern=reacting.NAME_PATTERN + r"(?!\n)")] | None = None
    correlation_id: Id | None = msgspec.field(default=None, name="correlationId")
    job_id: Id | None = None
    """Of the job; without it, one is made."""


class Accepted(msgspec.Struct):
    """The job that works on it, and which version of which playbook it goes by."""

    job_id: str
    playbook: str
    version: int
