"""The hub: it reads the feed of each tenant once, and gives it to everybody who follows it here.

A follower starts from a cursor, reads from the database what happened since, and joins the tail where it is: nothing
is lost between the two and nothing comes twice. From then on events wait in a buffer of its own, which is bounded: who
reads too slowly is told where to go on from, and costs nothing more.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
from collections.abc import AsyncGenerator
from types import TracebackType

from ostinato import errors
from ostinato.api.live import messages
from ostinato.core import rows
from ostinato.engine import bell, engine
from ostinato.store import stream

MOST_MESSAGES = 1_000
MOST_BYTES = 1024 * 1024
"""How much waits for one follower. One message may be larger than this, if it is the only one."""
TURN_MESSAGES = 64
TURN_BYTES = 256 * 1024
"""How much is handed out before the readers get a turn."""
MOST_FOLLOWERS = 1_000
"""For each tenant."""
LONGEST_PAUSE = 2.0

log = logging.getLogger("ostinato")


class Hub:
    """All tails of one process. A tail runs while somebody follows it."""

    def __init__(self, running: engine.Engine) -> None:
        self.engine = running
        self._tails: dict[str, Tail] = {}
        self._followers: dict[str, set[Subscription]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    async def subscribe(self, tenant: str, wanted: messages.Wanted, cursor: str | None = None) -> Subscription:
        """Follow a tenant's feed from a cursor, or from now on. Use it as `async with await hub.subscribe(…)`."""
        if self._closed:
            raise errors.ServerStopping()
        followers = self._followers.setdefault(tenant, set())
        if len(followers) >= MOST_FOLLOWERS:
            raise errors.TooManyRequests(5.0, f"there are already {MOST_FOLLOWERS:,} open streams: close some")
        made = Subscription(self, tenant, wanted)
        followers.add(made)
        try:
            if wanted.job_id is not None:
                await self.engine.store.job(tenant, wanted.job_id)
            end = await self.engine.store.feed_end(tenant)
            made.position = end if cursor is None else min(await self.engine.store.place_of(tenant, cursor), end)
        except BaseException:
            self.leave(made)
            raise
        return made

    def join(self, follower: Subscription) -> stream.Place:
        """From here on the tail feeds this follower. The answer is where it stands; the first follower says where."""
        tail = self._tails.get(follower.tenant)
        if tail is None:
            tail = self._tails[follower.tenant] = Tail(self.engine, follower.tenant, follower.position)
        tail.add(follower)
        return tail.position

    def leave(self, follower: Subscription) -> None:
        followers = self._followers.get(follower.tenant, set())
        followers.discard(follower)
        if not followers:
            self._followers.pop(follower.tenant, None)
        tail = self._tails.get(follower.tenant)
        if tail is not None:
            tail.remove(follower)
            if tail.empty:
                del self._tails[follower.tenant]
                tail.stop()
                self._ending.add(tail.task)
                tail.task.add_done_callback(self._ending.discard)

    @property
    def tails(self) -> int:
        return len(self._tails)

    async def close(self) -> None:
        """Tell all followers to go on elsewhere, and take no new ones."""
        self._closed = True
        for followers in list(self._followers.values()):
            for follower in list(followers):
                follower.end(errors.ServerStopping(cursor=follower.cursor))
        for tail in self._tails.values():
            tail.stop()
        ending = [*self._ending, *(tail.task for tail in self._tails.values())]
        self._tails.clear()
        await asyncio.gather(*ending, return_exceptions=True)


class Tail:
    """Reads the feed of one tenant from a place on and hands each event to those who want it."""

    def __init__(self, running: engine.Engine, tenant: str, position: stream.Place) -> None:
        self.position = position
        """Everything up to here was handed out."""
        self._engine = running
        self._tenant = tenant
        self._by_job: dict[str | None, set[Subscription]] = {}
        self._by_function = 0
        """How many of them want events by function: as long as there are none, nobody needs to look it up."""
        self.task = asyncio.create_task(self._run(), name="ostinato-tail")

    @property
    def empty(self) -> bool:
        return not self._by_job

    def add(self, follower: Subscription) -> None:
        self._by_job.setdefault(follower.wanted.job_id, set()).add(follower)
        self._by_function += follower.wanted.function is not None

    def remove(self, follower: Subscription) -> None:
        group = self._by_job.get(follower.wanted.job_id, set())
        if follower in group:
            group.remove(follower)
            self._by_function -= follower.wanted.function is not None
        if not group:
            self._by_job.pop(follower.wanted.job_id, None)

    def stop(self) -> None:
        self.task.cancel()

    async def _run(self) -> None:
        """Whatever happens to the database, followers stay and get all of it once it is back."""
        pause = 0.05
        while True:
            try:
                follow = bell.follow(self._engine, self._tenant, self.position)
                async with contextlib.aclosing(follow) as pages:
                    async for page in pages:
                        await self._hand_out(page)
                        pause = 0.05
            except errors.OstinatoError as error:
                log.warning("the feed cannot be read, trying again in %.2f s: %s", pause, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _hand_out(self, page: stream.FeedPage) -> None:
        """A little at a time, with a turn for the readers in between: only those who do not take it fall behind."""
        count = size = 0
        functions: dict[rows.TaskKey, str] | None = None
        for item in page.events:
            if functions is None and self._by_function:  # somebody may have come while this page was handed out
                functions = await self._engine.store.functions_of(self._tenant, page.events)
            message: messages.Message | None = None
            for group in (self._by_job.get(None), self._by_job.get(item.event.job_id)):
                for follower in group or ():
                    if follower.wanted.matches(item, functions or {}):
                        if message is None:
                            message = messages.Message(item)
                        follower.offer(message)
            self.position = item.place
            count, size = count + 1, size + len(item.event.data)
            if count >= TURN_MESSAGES or size >= TURN_BYTES:
                count = size = 0
                await asyncio.sleep(0)
        self.position = page.place


class Subscription:
    """One follower: iterate over it for its messages. It raises why it ended: SlowReader, say, with the cursor."""

    def __init__(self, hub: Hub, tenant: str, wanted: messages.Wanted) -> None:
        self.tenant = tenant
        self.wanted = wanted
        self.position: stream.Place = (0, 0, 0)
        self.waiting: collections.deque[messages.Message] = collections.deque()
        self.waiting_bytes = 0
        self.ended: errors.OstinatoError | None = None
        self._hub = hub
        self._joined_at: stream.Place | None = None
        self._skip_until: stream.Place = (0, 0, 0)
        self._arrived = asyncio.Event()

    @property
    def cursor(self) -> str:
        """Where to go on after what was read so far."""
        return self._hub.engine.store.feed_cursors.write(self.tenant, self.position)

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        self._hub.leave(self)

    def offer(self, message: messages.Message) -> None:
        """Called by the tail. Never waits: without room the follower is ended."""
        if self.ended is not None or message.place <= self._skip_until:
            return
        size = self.waiting_bytes + message.size
        if self.waiting and (size > MOST_BYTES or len(self.waiting) >= MOST_MESSAGES):
            self.end(errors.SlowReader(cursor=self.cursor))
            return
        self.waiting.append(message)
        self.waiting_bytes = size
        self._arrived.set()

    def end(self, reason: errors.OstinatoError) -> None:
        """Let go of everything that waits; the reader gets the reason instead."""
        if self.ended is None:
            self.ended = reason
            self.waiting.clear()
            self.waiting_bytes = 0
            self._arrived.set()

    async def __aiter__(self) -> AsyncGenerator[messages.Message]:
        async for message in self._past():
            yield message
        while True:
            while self.waiting:
                message = self.waiting.popleft()
                self.waiting_bytes -= message.size
                self.position = message.place
                yield message
            self._check()
            self._arrived.clear()
            await self._arrived.wait()

    async def _past(self) -> AsyncGenerator[messages.Message]:
        """What is in the database already, up to where the tail stands when it takes over."""
        while self._joined_at is None:  # far behind: nothing is kept meanwhile, however long this takes
            page = await self._read()
            for message in await self._matching(page):
                self.position = message.place
                yield message
                self._check()
            self.position = page.place
            if not page.full:
                self._joined_at = self._hub.join(self)
                self._skip_until = max(self._joined_at, self.position)
        until = self._joined_at
        while self.position < until:
            page = await self._read()
            for message in await self._matching(page):
                if message.place <= until:
                    self.position = message.place
                    yield message
                    self._check()
            self.position = min(page.place, until)

    async def _read(self) -> stream.FeedPage:
        self._check()
        target = self._hub.engine.store
        return await target.feed_page(self.tenant, self.position, bell.PAGE, job_id=self.wanted.job_id)

    async def _matching(self, page: stream.FeedPage) -> list[messages.Message]:
        functions: dict[rows.TaskKey, str] = {}
        if self.wanted.function is not None:
            functions = await self._hub.engine.store.functions_of(self.tenant, page.events)
        return [messages.Message(item) for item in page.events if self.wanted.matches(item, functions)]

    def _check(self) -> None:
        if self.ended is not None:
            raise self.ended
