"""The PostgreSQL driver: a connection for writing, some for reading, and one that hears and tells of changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import asyncpg
from asyncpg.exceptions import TargetServerAttributeNotMatched

from ostinato import errors
from ostinato.core import tables
from ostinato.store import database, hosts, inspection, migrate, queries, rights, statements, walled

T = TypeVar("T")

CHANNEL = "ostinato"
VISITOR = "ostinato_api"
"""The role that sees the rows of one tenant."""
MIGRATION_LOCK = 0x6F7374696E61746F
TRIES = 8
CALIBRATE_SECONDS = 10.0
STATEMENT_SECONDS = 12.0
"""A transaction that holds locks and is not heard of is ended by the server after 10."""
LONG_SECONDS = 300.0
"""For what an operator asks for, and what looks at all there is."""
LONG = frozenset(name for name in queries.blocks("postgres") if name.startswith(("audit_", "rotate_", "count_sealed")))
QUEUE_SECONDS = 10.0
"""How long to wait for a connection that others use."""
AGAIN_SECONDS = 2.0
"""What has failed sooner is read once more, over another connection."""
MIGRATION_SECONDS = 24 * 3600.0
"""What looks at a whole table takes as long as the table is large, and what somebody else migrates is waited for."""
ANNOUNCE_SECONDS = 0.05
STRIPES = 64
"""Jobs share this many locks, so that a large batch does not fill the server's table of locks."""
MOST_ROWS = 10_000
"""Rows that go into one statement."""
READERS = ("reader", "reader-2", "reader-3", "reader-4")
"""Readers by role, each with a connection of its own."""
VISITORS = ("visitor", "visitor-2", "visitor-3", "visitor-4")
"""Readers behind the wall, each for one tenant at a time."""
FOR_QUICK = 2
"""The first of them are for quick reads alone. Those use the others too when they are free."""
PESSIMISM = 50
"""How many transactions lock before they read after one that did not was overtaken."""

log = logging.getLogger("ostinato")

# Every statement goes through an index, however empty the statistics say that a new table is.
SETTINGS = {
    "application_name": "ostinato",
    "synchronous_commit": "on",
    "jit": "off",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_memoize": "off",
    "plan_cache_mode": "force_generic_plan",
    "random_page_cost": "1.1",  # as of memory: if it is dearer, what an index has in order is read and sorted instead
    "idle_in_transaction_session_timeout": "10000",
}

_STATE, _READY_AT = (list(tables.TASK.by_name).index(name) for name in ("state", "ready_at"))
"""Where these columns stand in a task, after the tenant."""

# Another transaction got in the way; the same script on the new state may well succeed.
_TRY_AGAIN = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.UniqueViolationError,
)
_UNAVAILABLE = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.InvalidTransactionStateError,
    ConnectionError,
    TimeoutError,
    OSError,
)
"""What a connection is thrown away for; a read then tries another one. Its transaction is not where it should be after
a value that a statement, just prepared on it, does not take: the server still waits for the rest."""

EVENTS_ARE_OF_ANOTHER_SERVER = """
WITH RECURSIVE tenants (tenant) AS (
    SELECT min(tenant) FROM event_page UNION ALL
    SELECT (SELECT min(p.tenant) FROM event_page p WHERE p.tenant > t.tenant) FROM tenants t WHERE t.tenant IS NOT NULL)
SELECT bool_or(
    (SELECT max(p.transaction) FROM event_page p WHERE p.tenant = t.tenant) >= pg_snapshot_xmax(pg_current_snapshot()))
FROM tenants t
"""
"""Tenant by tenant, as the index goes. Who sees what this server was told has begun after it."""


class PostgresDatabase:
    dialect = "postgres"

    def __init__(self, url: str, *, clock: Callable[[], int] | None = None) -> None:
        self.url = url
        self._hosts = hosts.Hosts(url)
        self._clock = clock
        self._blocks = queries.blocks(self.dialect)
        self._connections: dict[str, asyncpg.Connection[Any]] = {}
        self._locks = {role: asyncio.Lock() for role in ("writer", "listener", *READERS, *VISITORS)}
        self._visiting: dict[str, str] = {}
        """The tenants whose rows the visitors see now."""
        self._wall: bool | None = None
        """Whether rows of other tenants are hidden from visitors; None if that was not tried yet."""
        self._offset = 0
        self._calibrated_at = -CALIBRATE_SECONDS
        self._change = asyncio.Event()
        self._own_pid = 0
        """As whom the server knows the listener, which also announces."""
        self._announcing: asyncio.Task[None] | None = None
        self._announced_at = -ANNOUNCE_SECONDS
        self._unannounced = False
        self._open = False
        self._pessimism = 0
        self.before_commit: Callable[[], None] | None = None
        self.after_commit: Callable[[], None] | None = None

    def now(self) -> int:
        """The server's clock, by way of our monotonic one: never ahead of it, at most a round trip behind."""
        if self._clock is not None:
            return self._clock()
        return time.monotonic_ns() // 1000 + self._offset

    async def open(self, *, migrate: bool) -> None:
        self._open = True
        try:
            async with self._connection("writer") as connection:
                await self._migrate(connection, migrate)
                if migrate:
                    await self._take_over_events(connection)
                await self._calibrate(connection)
            async with self._connection("listener"):
                pass
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._open = False
        if self._announcing is not None:
            self._announcing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._announcing
        for role in list(self._connections):
            await self._drop(role)

    async def write(
        self,
        script: Callable[[], database.Script[T]],
        *,
        optimistic: bool = False,
        brief: bool = False,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        for again in range(TRIES):
            hope = optimistic and self._pessimism <= 0
            try:
                result = await (self._try(script) if hope else self._transact(script))
                self._pessimism -= 1
                if committed is not None:
                    committed(result)
                return result
            except _TRY_AGAIN:
                # Others work on the same jobs: for a while it is cheaper to lock them first.
                self._pessimism = PESSIMISM
                if again == TRIES - 1:
                    raise errors.DatabaseUnavailable("too many others changed the same rows: try again") from None
                if again:
                    await asyncio.sleep(0.002 * 2**again)
        raise AssertionError

    async def read(
        self,
        script: Callable[[], database.Script[T]],
        *,
        snapshot: bool = True,
        brief: bool = False,
        long: bool = False,
    ) -> T:
        async def look() -> T:
            async with self._connection(self._free_reader(long=long)) as connection:
                return await self._look(connection, script, snapshot=snapshot)

        return await _twice(look)

    async def read_as(
        self, tenant: str, script: Callable[[], database.Script[T]], *, snapshot: bool, long: bool = False
    ) -> T:
        """Read what a tenant may see. Without the wall, which is then said in the log, what the script asks for."""
        if not await self._is_walled():
            return await self.read(script, snapshot=snapshot, long=long)

        async def look() -> T:
            visitor = self._free_visitor(tenant, long=long)
            async with self._connection(visitor) as connection:
                if self._visiting.get(visitor) != tenant:
                    self._visiting.pop(visitor, None)
                    await connection.fetchval("SELECT set_config('ostinato.tenant', $1, false)", tenant)
                    self._visiting[visitor] = tenant
                return await self._look(connection, script, snapshot=snapshot)

        return await _twice(look)

    async def _look(
        self, connection: asyncpg.Connection[Any], script: Callable[[], database.Script[T]], *, snapshot: bool
    ) -> T:
        if not snapshot:
            return await self._drive(connection, script())
        async with _transaction(connection, "ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            return await self._drive(connection, script())

    def seen_by(self, tenant: str) -> database.Database:
        return walled.WalledDatabase(self, tenant)

    async def _is_walled(self) -> bool:
        if self._wall is None:
            async with self._connection("reader") as connection:
                self._wall = await _may_visit(connection)
            if not self._wall:
                log.warning(
                    "row-level security is not in use: tenants are kept apart by the statements alone. Let somebody "
                    "who may create roles call ostinato_raise_wall() in this database"
                )
        return self._wall

    async def _visitor_is_walled(self) -> bool:
        """As the connection itself says on which tenants are shown what is theirs."""
        async with self._connection(VISITORS[0]) as connection:
            return await connection.fetchval("SELECT current_user = $1 AND row_security_active('job')", VISITOR)

    def _free_reader(self, *, long: bool = False) -> str:
        return self._free(READERS[FOR_QUICK:] if long else READERS)

    def _free_visitor(self, tenant: str, *, long: bool = False) -> str:
        """One that sees this tenant already, so that nothing needs to be said first; else a new one, else the one that
        has seen another tenant for longest."""
        allowed = VISITORS[FOR_QUICK:] if long else VISITORS
        seen = [role for role in self._visiting if role in allowed]
        there = [role for role in seen if self._visiting[role] == tenant and not self._locks[role].locked()]
        unused = [role for role in allowed if role not in self._visiting]
        return self._free((*there, *unused, *seen))

    def _free(self, roles: Sequence[str]) -> str:
        """One that nobody uses. Connections are made when they are needed: most programs only have the first."""
        free = [role for role in roles if not self._locks[role].locked()]
        return free[0] if free else random.choice(roles)

    async def changed(self, timeout: float, *, eager: bool = False) -> bool:
        try:
            if "listener" not in self._connections or self._connections["listener"].is_closed():
                async with self._connection("listener"):
                    pass
            async with asyncio.timeout(timeout):
                await self._change.wait()
        except TimeoutError:
            return False
        except errors.DatabaseError:
            await asyncio.sleep(timeout)
            return False
        self._change.clear()
        return True

    def announce(self) -> None:
        self._unannounced = True
        if self._open and (self._announcing is None or self._announcing.done()):
            self._announcing = asyncio.get_running_loop().create_task(self._announce())

    async def settings(self) -> dict[str, Any]:
        names = ["server_version", "fsync", "synchronous_commit", "full_page_writes"]
        async with self._connection(self._free_reader()) as connection:
            values = {name: await connection.fetchval("SELECT current_setting($1)", name) for name in names}
            standby = await connection.fetchval("SELECT pg_is_in_recovery()")
            schema = await self._version(connection)
            may_visit = await _may_visit(connection)
            vectors = await connection.fetchval(
                "SELECT format_type(atttypid, NULL) FROM pg_attribute "
                "WHERE attrelid = to_regclass('result_vector') AND attname = 'embedding'"
            )
        row_security = may_visit and await self._visitor_is_walled()
        return {
            "database": "PostgreSQL",
            "version": values.pop("server_version"),
            "schema": schema,
            "row_security": "on" if row_security else "off",
            "vector_search": "SQL (install pgvector for more speed)" if vectors == "real[]" else "pgvector",
            "durable": values["fsync"] == "on" and values["synchronous_commit"] != "off" and not standby,
            "clock_ahead_seconds": round((time.time_ns() // 1000 - self.now()) / 1e6, 3),
        } | values

    async def damage(self, seconds: float) -> inspection.Damage:
        async with self._connection("reader") as connection:
            return await inspection.of_server(connection)

    # --- connections -------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _connection(self, role: str) -> AsyncGenerator[asyncpg.Connection[Any]]:
        """The connection of that role, for one caller at a time; a broken one is thrown away and the error named."""
        await self._turn(role)
        try:
            try:
                connection = self._connections.get(role)
                if connection is None or connection.is_closed():
                    connection = self._connections[role] = await self._connect(role)
                    if role == "listener":  # whoever made the connection, it listens; something may have been missed
                        self._own_pid = connection.get_server_pid()
                        await connection.add_listener(CHANNEL, self._heard)
                        self._change.set()
                yield connection
            except UnicodeEncodeError:
                raise errors.InvalidInput("the text has a lone surrogate, which is not valid Unicode") from None
            except (asyncpg.ReadOnlySQLTransactionError, TargetServerAttributeNotMatched):
                await self._drop(role)
                raise errors.DatabaseReadOnly() from None
            except asyncpg.InsufficientPrivilegeError as error:
                raise await rights.missing(self._connections.get(role), error) from None
            except (asyncpg.DiskFullError, asyncpg.OutOfMemoryError):
                raise errors.DatabaseFull() from None
            except (asyncpg.InvalidCatalogNameError, asyncpg.InvalidAuthorizationSpecificationError) as error:
                raise errors.DatabaseUnavailable(f"the server refused the connection: {error}") from None
            except asyncpg.DataError as error:
                raise errors.InvalidInput(f"the database does not take the value: {error}") from None
            except _UNAVAILABLE as error:
                await self._drop(role)
                raise errors.DatabaseAway(
                    f"PostgreSQL cannot be reached ({type(error).__name__}): check the URL, and that the server is up"
                ) from None
            except asyncpg.IntegrityConstraintViolationError as error:
                if isinstance(error, _TRY_AGAIN):
                    raise
                raise errors.DatabaseError(f"the database refused the change: {error}") from None
            except asyncio.CancelledError:
                await self._drop(role)  # a statement may still be under way on it
                raise
        finally:
            self._locks[role].release()

    async def _turn(self, role: str) -> None:
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await self._locks[role].acquire()
        except TimeoutError:
            raise errors.DatabaseUnavailable(
                f"others have used the connection for {QUEUE_SECONDS:g} s: the database is silent or very busy"
            ) from None

    async def _connect(self, role: str) -> asyncpg.Connection[Any]:
        if not self._open:
            raise errors.NotRunning()
        settings = SETTINGS
        if role in VISITORS:
            self._visiting.pop(role, None)
            settings = SETTINGS | {"role": VISITOR}
        return await self._hosts.connect(settings, STATEMENT_SECONDS)

    async def _drop(self, role: str) -> None:
        connection = self._connections.pop(role, None)
        if connection is not None and not connection.is_closed():
            connection.terminate()

    # --- transactions ------------------------------------------------------------------------------------------

    async def _transact(self, script: Callable[[], database.Script[T]]) -> T:
        async with self._connection("writer") as connection:
            await self._keep_up(connection)
            async with _transaction(connection):
                result = await self._drive(connection, script())
                if self.before_commit is not None:
                    self.before_commit()
        if self.after_commit is not None:
            self.after_commit()
        return result

    async def _try(self, script: Callable[[], database.Script[T]]) -> T:
        """Without locks: read, decide, and write in one statement that fails if a job has changed since."""
        async with self._connection("writer") as connection:
            await self._keep_up(connection)
            if self.before_commit is None:
                result = await self._drive(connection, script(), locking=False)
            else:
                async with connection.transaction():
                    result = await self._drive(connection, script(), locking=False)
                    self.before_commit()
        if self.after_commit is not None:
            self.after_commit()
        return result

    async def _drive(
        self, connection: asyncpg.Connection[Any], script: database.Script[T], *, locking: bool = True
    ) -> T:
        answer: Any = None
        while True:
            try:
                request = script.send(answer)
            except StopIteration as stop:
                return stop.value
            if isinstance(request, database.Fetch):
                answer = await self._fetch(connection, request.block, request.args)
            elif isinstance(request, database.Load):
                load = self._load_locked if locking else self._load_at_once
                answer = await load(connection, request)
            else:
                await self._run(connection, request)
                answer = None

    async def _fetch(self, connection: asyncpg.Connection[Any], name: str, args: dict[str, Any]) -> list[database.Row]:
        block = self._blocks[name]
        timeout = LONG_SECONDS if name in LONG else None
        return await connection.fetch(block.sql, *_bind(block, args), timeout=timeout)

    async def _load_at_once(self, connection: asyncpg.Connection[Any], wanted: database.Load) -> database.Loaded:
        candidates: list[tuple[int, int, tuple[str, str]]] = []
        jobs: list[database.Row] = []
        tasks: list[database.Row] = []
        edges: list[database.Row] = []
        for job, task, ups, rank, ready_at in await self._fetch(connection, "load_at_once", wanted._asdict()):
            if job is not None:
                jobs.append(tuple(job)[1:])
                continue
            if task is None:
                candidates.append((rank, ready_at, (ups[0], ups[1])))
                continue
            row = tuple(task)[1:]
            tasks.append((*row, row[_STATE], row[_READY_AT]))
            if ups is not None:
                edges += [(row[0], up, row[1]) for up in ups]
            elif rank is not None:
                candidates.append((rank, ready_at, (row[0], row[1])))
        candidates.sort()
        return database.Loaded([key for _, _, key in candidates], jobs, tasks, edges)

    async def _load_locked(self, connection: asyncpg.Connection[Any], wanted: database.Load) -> database.Loaded:
        """Only one at a time claims, and only one at a time works on the same jobs; then read what there is."""
        tenant = wanted.tenant
        candidates: list[tuple[str, str]] = []
        job_ids, keys = set(wanted.job_ids), wanted.keys
        if wanted.most > 0:
            await self._fetch(connection, "lock_stripes", {"stripes": [STRIPES + _stripe(tenant)]})
            found = await self._fetch(connection, "load_candidates", wanted._asdict())
            candidates = [(row[0], row[1]) for row in found]
            job_ids |= {key[0] for key in candidates}
            known = frozenset(wanted.known)
            keys = [*keys, *[key for key in candidates if key[0] not in known]]
        jobs: list[database.Row] = []
        edges: list[database.Row] = []
        if job_ids:
            stripes = sorted({_stripe(job_id) for job_id in job_ids})
            await self._fetch(connection, "lock_stripes", {"stripes": stripes})
            jobs = await self._fetch(connection, "load_jobs", {"tenant": tenant, "job_ids": sorted(job_ids)})
        if wanted.ups:
            edges = await self._fetch(connection, "load_dependants", {"tenant": tenant, "ups": wanted.ups})
            keys = [*keys, *{(job_id, down) for job_id, _, down in edges}]
        tasks = await self._fetch(connection, "load_tasks", {"tenant": tenant, "keys": keys}) if keys else []
        return database.Loaded(candidates, jobs, tasks, edges)

    async def _run(self, connection: asyncpg.Connection[Any], request: database.Run) -> None:
        writes = [(name, rows) for name, rows in request.writes if rows]
        if all(len(rows) <= MOST_ROWS for _, rows in writes):
            await self._run_together(connection, writes)
            return
        # A very large job: in pieces, so that its rows are not all held as arrays and on the wire at once.
        begun = connection.is_in_transaction()
        async with contextlib.nullcontext() if begun else connection.transaction():
            for name, rows in writes:
                for start in range(0, len(rows), MOST_ROWS):
                    await self._run_together(connection, [(name, rows[start : start + MOST_ROWS])])

    async def _run_together(
        self, connection: asyncpg.Connection[Any], writes: list[tuple[str, list[tuple[Any, ...]]]]
    ) -> None:
        if writes:
            sql, args = statements.together(writes)
            await connection.execute(sql, *args)

    async def _migrate(self, connection: asyncpg.Connection[Any], migrate_schema: bool) -> None:
        if not migrate.pending(self.dialect, await self._version(connection), migrate=migrate_schema):
            return
        async with rights.to_migrate(connection), connection.transaction():
            await connection.execute(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})", timeout=MIGRATION_SECONDS)
            await connection.execute("CREATE TABLE IF NOT EXISTS ostinato_schema (version integer PRIMARY KEY)")
            for migration in migrate.pending(self.dialect, await self._version(connection), migrate=True):
                await connection.execute(migration.sql, timeout=MIGRATION_SECONDS)
                await connection.execute("INSERT INTO ostinato_schema VALUES ($1)", migration.number)

    async def _take_over_events(self, connection: asyncpg.Connection[Any]) -> None:
        """Transactions that are still to come have written what another server was told, from whose dump this database
        was restored: the feed would not show it until then. It comes before everything else, in the order it had."""
        if await connection.fetchval(EVENTS_ARE_OF_ANOTHER_SERVER):
            await connection.execute(
                "UPDATE event_page SET transaction = '0' WHERE transaction <> '0'", timeout=MIGRATION_SECONDS
            )

    @staticmethod
    async def _version(connection: asyncpg.Connection[Any]) -> int:
        if await connection.fetchval("SELECT to_regclass('ostinato_schema')") is None:
            return 0
        try:
            return await connection.fetchval("SELECT COALESCE(max(version), 0) FROM ostinato_schema")
        except rights.SOMEBODY_ELSES as error:
            raise rights.another_program(error) from None

    async def _keep_up(self, connection: asyncpg.Connection[Any]) -> None:
        if time.monotonic() - self._calibrated_at > CALIBRATE_SECONDS:
            await self._calibrate(connection)
            await connection.execute("DISCARD PLANS")  # tables grow, and plans made for small ones with them

    async def _calibrate(self, connection: asyncpg.Connection[Any]) -> None:
        server = await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8")
        self._offset = server - time.monotonic_ns() // 1000
        self._calibrated_at = time.monotonic()

    # --- changes -----------------------------------------------------------------------------------------------

    def _heard(self, _connection: object, sender: int, *_: object) -> None:
        """What this process has announced itself it knows already."""
        if sender != self._own_pid:
            self._change.set()

    async def _announce(self) -> None:
        """At once, then one wake-up for all that is committed within a moment: NOTIFY locks the whole server."""
        while self._unannounced:
            await asyncio.sleep(self._announced_at + ANNOUNCE_SECONDS - time.monotonic())
            self._announced_at = time.monotonic()
            self._unannounced = False
            with contextlib.suppress(errors.OstinatoError):
                async with self._connection("listener") as connection:
                    await connection.execute(f"NOTIFY {CHANNEL}")


@contextlib.asynccontextmanager
async def _transaction(connection: asyncpg.Connection[Any], mode: str = "") -> AsyncGenerator[None]:
    await connection.execute(f"BEGIN {mode}")
    try:
        yield
    except (TimeoutError, asyncio.CancelledError):
        raise  # the connection is thrown away: it would take as long again to say so on it
    except BaseException:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")


async def _twice(look: Callable[[], Awaitable[T]]) -> T:
    """A connection may have been lost while nobody used it. One that was silent has taken enough time."""
    began = time.monotonic()
    try:
        return await look()
    except errors.DatabaseUnavailable:
        if time.monotonic() - began > AGAIN_SECONDS:
            raise
    return await look()


async def _may_visit(connection: asyncpg.Connection[Any]) -> bool:
    """Whether the role is there, we may take it on, and the wall stands in this database."""
    try:
        async with connection.transaction(readonly=True):
            await connection.execute(f"SET LOCAL ROLE {VISITOR}")
            return await connection.fetchval(
                "SELECT has_table_privilege('job', 'SELECT') AND row_security_active('job')"
            )
    except (
        asyncpg.InvalidParameterValueError,
        asyncpg.UndefinedObjectError,
        asyncpg.UndefinedTableError,
        asyncpg.InsufficientPrivilegeError,
    ):
        return False


def _stripe(name: str) -> int:
    return zlib.crc32(name.encode()) % STRIPES


def _bind(block: queries.Block, args: dict[str, Any]) -> list[Any]:
    return [args[name] if column is None else [row[column] for row in args[name]] for name, column in block.parameters]
