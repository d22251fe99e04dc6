"""A server process to be killed while a playbook runs: `python -m tests.acceptance.killable_playbook URL CALLS STAGE`.

Every agent writes a line to the CALLS file when it is called. The process ends itself with SIGKILL when STAGE is about
to be done: the name of a stage, or of an agent; `-` lets it run.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from ostinato import EngineOptions, Ostinato
from ostinato.api import server, settings
from ostinato.reactions import stages

SCHEMA = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
AGENTS: dict[str, list[str]] = {"a": [], "b": [], "c": ["a"], "d": ["b", "c"]}
STAGES = ("load", "load_graph", "plan", "aggregate", "validate", "synthesize", "save")


def build(url: str, calls: str, victim: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(lease_seconds=1.0, poll_seconds=0.1))
    out = os.open(calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def register(name: str) -> None:
        @app.agent(f"agent-{name}")
        async def run(raw_data: Any, parent_output: Any) -> dict[str, Any]:
            if name == victim:
                die()
            os.write(out, f"{name}\n".encode())
            parents: dict[str, Any] = parent_output or {}
            told = sorted(output["value"] for output in parents.values())
            return {"value": f"{name}({raw_data}{''.join(told)})"}

    for name in AGENTS:
        register(name)
    return app


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def mine(stage: str) -> None:
    """Let the stage end the process, once it has done its work and before the engine hears of it."""
    done: Callable[..., Any] = getattr(stages.Stages, stage)

    @functools.wraps(done)
    async def run(*args: Any, **given: Any) -> Any:
        await done(*args, **given)
        die()

    setattr(stages.Stages, stage, run)


async def define(app: Ostinato) -> None:
    for name, parents in AGENTS.items():
        await app.playbooks.define_agent(
            {
                "name": name,
                "kind": "function",
                "function": f"agent-{name}",
                "outputSchema": SCHEMA,
                "dependencyParents": parents,
            }
        )
    await app.playbooks.define({"name": "p", "domain": "d", "type": "ingestion", "agents": list(AGENTS)})


async def main(url: str, calls: str, victim: str) -> None:
    if victim in STAGES:
        mine(victim)
    async with build(url, calls, victim) as app:
        await define(app)
        async with server.Server(app, settings.ServerOptions(port=0)) as running:
            listener = server.Listener(running)
            await listener.start()
            print(listener.address, flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
