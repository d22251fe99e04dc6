"""A server that listens on each database."""

import dataclasses
from collections.abc import AsyncIterator

import pytest

from ostinato.api import server
from tests.api import support


@dataclasses.dataclass
class Office:
    """A server that runs nothing itself, its address, and the key of the workers."""

    site: support.Site
    listener: server.Listener
    key: str

    @property
    def address(self) -> str:
        return self.listener.address


@pytest.fixture
async def office(url: str) -> AsyncIterator[Office]:
    async with support.opened(url, port=0, engine={"work": False}) as site:
        listener = server.Listener(site.server)
        await listener.start()
        yield Office(site, listener, await site.key("tasks:work"))
        await listener.stop()
