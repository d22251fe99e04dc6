"""Where the time goes, by pyinstrument if it is installed, else by cProfile. Both see the event loop's thread only."""

from __future__ import annotations

import cProfile
import io
import pstats
from typing import Any, Protocol, Self

TOP = 40


class Profiler(Protocol):
    """Profiles while entered, and shows the top afterwards."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def text(self) -> str: ...


def profiler() -> Profiler:
    try:
        import pyinstrument
    except ImportError:
        return _Deterministic()
    return _Sampling(pyinstrument.Profiler(interval=0.0005, async_mode="disabled"))


class _Deterministic:
    def __init__(self) -> None:
        self._profile = cProfile.Profile()

    def __enter__(self) -> Self:
        self._profile.enable()
        return self

    def __exit__(self, *exc: object) -> None:
        self._profile.disable()

    def text(self) -> str:
        out = io.StringIO()
        pstats.Stats(self._profile, stream=out).strip_dirs().sort_stats("tottime").print_stats(TOP)
        return out.getvalue()


class _Sampling:
    def __init__(self, profile: Any) -> None:
        self._profile = profile

    def __enter__(self) -> Self:
        self._profile.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._profile.stop()

    def text(self) -> str:
        return str(self._profile.output_text(unicode=True, show_all=False))
