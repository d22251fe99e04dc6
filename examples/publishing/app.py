"""The steps of the publishing pipeline in an application: `ostinato dev examples/publishing/app.py`."""

from __future__ import annotations

import os

import steps

from ostinato import Ostinato

app = Ostinato(os.environ.get("OSTINATO_URL", "sqlite:///publishing.db"))
steps.register(app)
