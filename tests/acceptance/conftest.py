"""Acceptance begins with nothing: what is started on a database makes its schema."""

import contextlib
import socket
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(f"empty_{request.param}_url")


@pytest.fixture
def new_port() -> Iterator[Callable[[], int]]:
    """Finds ports for servers that come and go. They stay bound until the test ends, so that nobody else gets one while
    no server listens there, and may be bound again by those who reuse addresses, as servers do."""
    with contextlib.ExitStack() as held:

        def find() -> int:
            port = held.enter_context(socket.socket())
            port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port.bind(("127.0.0.1", 0))
            return port.getsockname()[1]

        yield find
