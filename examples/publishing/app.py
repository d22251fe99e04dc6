"""The steps of the publishing pipeline in an application: `ostinato dev examples/publishing/app.py`."""

from __future__ import annotations

import os

import steps

from ostinato import EngineOptions, Ostinato

# A short lease, so that after a `kill -9` you do not wait long for the next run to take over.
app = Ostinato(os.environ.get("OSTINATO_URL", "sqlite:///publishing.db"), options=EngineOptions(lease_seconds=3))
steps.register(app)
