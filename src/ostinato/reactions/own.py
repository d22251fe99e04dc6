"""All functions of the engine's own, for one engine that runs them."""

from __future__ import annotations

from ostinato import embedding, functions, outgoing
from ostinato.core.retry import Retry
from ostinato.engine import engine
from ostinato.reactions import agents, stages, steps
from ostinato.reactions import functions as triggers

RETRY = Retry(max_attempts=8, base_delay=1.0, multiplier=3.0, max_delay=600.0, jitter=0.2)
TIMEOUT = 60.0
"""For tasks that do not say themselves."""


def make(running: engine.Engine, *, embedder: embedding.Embedder) -> dict[str, functions.Function]:
    calls = outgoing.Caller(outgoing.CallOptions(allow=running.options.webhook_networks))
    own = triggers.OwnFunctions(running, calls)
    callers = agents.Agents(own, calls)
    code = (
        triggers.named(own)
        | agents.named(callers)
        | stages.named(stages.Stages(own, callers, embedder))
        | steps.named(steps.Keeping(own))
    )
    return {name: functions.Function(name, run, retry=RETRY, timeout=TIMEOUT) for name, run in code.items()}
