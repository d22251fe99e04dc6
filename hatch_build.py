"""What hatchling runs before it packs: the web UI is built into the package.

`OSTINATO_UI=skip` leaves it out, `OSTINATO_UI=require` fails where it cannot be built. Otherwise that is said loudly,
and the server shows how to build it later.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class UiBuildHook(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        builder = self._builder()
        return [builder.WHEEL] if builder is not None and builder.needs_wheel() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        builder = self._builder()
        if builder is None:
            return
        try:
            builder.build()
        except builder.CannotBuild as error:
            if os.environ.get("OSTINATO_UI") == "require":
                raise
            self.app.display_warning(f"The web UI was not built, and the server will say so: {error}")

    def _builder(self) -> SimpleNamespace | None:
        """`ui/build.py`; None where it is not wanted, or only what it has built is there."""
        path = Path(self.root) / "ui" / "build.py"
        if os.environ.get("OSTINATO_UI") == "skip" or not path.is_file():
            return None
        return SimpleNamespace(**runpy.run_path(str(path)))
