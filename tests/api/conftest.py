"""The databases of the engine's tests, and a server on each."""

from collections.abc import AsyncIterator

import pytest

from tests.api import support
from tests.engine.conftest import postgres_url, shared_postgres_url

__all__ = ["postgres_url", "shared_postgres_url"]


@pytest.fixture
async def site(url: str) -> AsyncIterator[support.Site]:
    """A server on a fresh database, with a worker for the tenant `default`."""
    async with support.opened(url) as made:
        yield made
