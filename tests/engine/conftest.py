"""What the tests of the engine have in common."""

import pytest

from ostinato.store import sqlite


@pytest.fixture(autouse=True)
def slow_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that takes its time: all transactions go to the thread that writes. The files of tests are in
    memory, where brief ones are done on the spot, as they are in the tests of other folders."""
    monkeypatch.setattr(sqlite, "QUICK_COMMIT", 0.0)
