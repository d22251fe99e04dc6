"""What a playbook says of itself while it runs, under the names that those who watch it know."""

from __future__ import annotations

LOADING = "loading_agents"
VALIDATING = "validating"
SYNTHESIZING = "synthesizing"
COMPLETE = "complete"
ERROR = "error"


def invoking(agent: str) -> str:
    return f"invoking_{agent}"


def agent_complete(agent: str) -> str:
    return f"agent_complete_{agent}"


def agent_failed(agent: str) -> str:
    """For good: it will not be invoked again by itself."""
    return f"agent_failed_{agent}"
