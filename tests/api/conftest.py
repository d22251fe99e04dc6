"""A server on each database."""

from collections.abc import AsyncIterator

import pytest

from tests.api import support


@pytest.fixture
async def site(url: str) -> AsyncIterator[support.Site]:
    """A server on a fresh database, with a worker for the tenant `default`."""
    async with support.opened(url) as made:
        yield made
