"""The agents of the incidents in an application: `ostinato dev examples/incidents/app.py`.

With `INCIDENTS_MODEL=gpt-5-mini`, main.py lets a language model read the reports, at OpenAI or wherever
`INCIDENTS_BASE_URL` says; its key is `$OPENAI_API_KEY`.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from agents import register

from ostinato import EngineOptions, Ostinato

MODEL = os.environ.get("INCIDENTS_MODEL")
BASE_URL = os.environ.get("INCIDENTS_BASE_URL")


def secret(name: str) -> str | None:
    """Agents say `secret://OPENAI_API_KEY`, and get that of their own tenant: there is but one here."""
    return os.environ.get("OPENAI_API_KEY", "") if name == "default.OPENAI_API_KEY" else None


def options() -> EngineOptions:
    """Calls to the outside are off unless somebody wants them, and never reach this network unless it is named."""
    named = urlsplit(BASE_URL or "").hostname
    return EngineOptions(webhooks=MODEL is not None, webhook_networks=(named,) if named else ())


app = Ostinato(
    os.environ.get("OSTINATO_URL", f"sqlite:///incidents{'' if MODEL is None else '-llm'}.db"),
    options=options(),
    secrets=secret,
)
register(app)
