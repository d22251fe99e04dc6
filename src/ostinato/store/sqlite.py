"""The SQLite driver: one writer thread that runs whole transactions, and readers on connections of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from ostinato import errors, threads
from ostinato.core import codec, tables
from ostinato.store import chunks, database, guards, inspection, migrate, queries, vectors
from ostinato.store import clock as clock_

T = TypeVar("T")
Connection = Cursor = Any
"""An apsw.Connection and its cursor, whose own types are too loose to check against."""

BUSY_SECONDS = 10
LOOK_SECONDS = 0.05
"""How often to look for what other processes have committed."""
EAGER_SECONDS = 0.01
KEEP_TIME_SECONDS = 1.0
"""How often to look whether the clock of the machine was set, or others have found that it was."""
APPLICATION_ID = 0x4F535449
"""Written into our files, so that no other program's file is taken for one."""
QUICK_READERS = 3
QUICK_READ = 0.03
QUEUED = 8
"""There is another reader when all have been at one read for longer, or have more of them to do."""
QUICK_COMMIT = 0.001
"""If commits take less, a brief transaction is done where it is asked for: two thread hops would take as long."""
CHECKPOINT_PAGES = 1000
"""How long the log may grow before it is copied into the file, after which it begins anew."""
INTRUDED = (
    "another copy of SQLite in this process, such as Python's sqlite3, opens {!r} too, and has dropped the lock of a "
    "transaction: look into the file from another process"
)
OLDEST_SAFE_SQLITE = (3, 51, 3)
"""Before it, two processes that write and checkpoint at once can corrupt a WAL file."""


class SqliteDatabase:
    dialect = "sqlite"

    def __init__(self, path: str, *, clock: Callable[[], int] | None = None) -> None:
        self.path = path
        self._time = None if clock is not None else clock_.of_file(path)
        """The clock of the file, unless it is given another one."""
        self._clock = clock or clock_.of_file(path).now
        self._time_kept_at = 0.0
        self._blocks = queries.blocks(self.dialect)
        self._writer: _Thread | None = None
        self._readers: _Readers | None = None
        self._copier: _Thread | None = None
        self._log_pages = 0
        self._log_copied = False
        """Most of the log has been copied, or is being copied, since it grew too long."""
        self._on_the_spot: Connection = None
        self._seen_version = -1
        self._names = ("", "")
        self._files: list[guards.Identity | None] = []
        """Which file and log these are, whatever name they have by now."""
        self._guard: guards.Guard | None = None
        self._commit_seconds: float | None = None
        """How long commits take lately, once one has been seen."""
        self.before_commit: Callable[[], None] | None = None
        self.after_commit: Callable[[], None] | None = None

    def now(self) -> int:
        return self._clock()

    async def open(self, *, migrate: bool) -> None:
        _check_library()
        self._writer = _Thread("ostinato-writer")
        self._readers = _Readers()
        self._copier = _Thread("ostinato-checkpoints")
        try:
            await self._writer.call(lambda thread: self._open_writer(thread, migrate))
            await self._readers.quick().call(self._connected)
            await self._copier.call(self._open_copier)
            self._on_the_spot = self._open_to_read()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        if self._guard is not None:
            guards.leave(self._guard)
            self._guard = None
        if self._on_the_spot is not None:
            self._on_the_spot.close()
            self._on_the_spot = None
        readers = self._readers.threads if self._readers is not None else []
        closing = [thread for thread in (self._copier, *readers, self._writer) if thread is not None]
        self._copier = self._readers = self._writer = None
        for thread in closing:
            await thread.close()
        guards.close_unused()

    async def write(
        self,
        script: Callable[[], database.Script[T]],
        *,
        optimistic: bool = False,
        brief: bool = False,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        if self._writer is None:
            raise errors.NotRunning()

        def work(thread: _Thread, *, begun: bool = False) -> T:
            try:
                result = self._transact(thread.connection, script, begun=begun)
            except _Overtaken:  # the script relied on what is no longer so; what it reads now stays so until it ends
                result = self._transact(thread.connection, script)
            except _Intruded:
                self._renew(thread)
                result = self._transact(thread.connection, script)
            if committed is not None:
                committed(result)
            return result

        if brief and self._commits_are_quick and self._writer.idle:
            with _typed_errors:
                begun = _begin(self._writer.connection)
            if begun:
                return work(self._writer, begun=True)
        return await self._writer.call(work)

    async def read(
        self,
        script: Callable[[], database.Script[T]],
        *,
        snapshot: bool = True,
        brief: bool = False,
        long: bool = False,
    ) -> T:
        if self._readers is None:
            raise errors.NotRunning()
        if brief:
            with _typed_errors:
                return self._drive(self._on_the_spot, script())
        reader = self._readers.long() if long else self._readers.quick()
        return await reader.call(lambda thread: self._snapshot(self._connected(thread), script))

    def seen_by(self, tenant: str) -> database.Database:
        return self

    async def changed(self, timeout: float, *, eager: bool = False) -> bool:
        """The writer's `data_version` moves when another connection has committed, and not when it has itself."""
        if time.monotonic() - self._time_kept_at > KEEP_TIME_SECONDS and self._writer is not None:
            self._time_kept_at = time.monotonic()
            await self._writer.call(lambda thread: self._keep_time(thread.connection))
        until = time.monotonic() + timeout
        pause = min(EAGER_SECONDS if eager else LOOK_SECONDS, timeout)
        while time.monotonic() < until:
            await asyncio.sleep(pause)
            if self._writer is None:
                return False
            version = await self._writer.call(lambda thread: _pragma(thread.connection, "data_version"))
            if version != self._seen_version:
                self._seen_version = version
                return True
        return False

    def announce(self) -> None:
        """Other processes look at `data_version` themselves."""

    async def settings(self) -> dict[str, Any]:
        if self._readers is None or self._writer is None:
            raise errors.NotRunning()
        reader = self._readers.quick()
        version = await reader.call(lambda thread: _pragma(self._connected(thread), "user_version"))
        journal = await reader.call(lambda thread: _pragma(self._connected(thread), "journal_mode"))
        synchronous = await self._writer.call(lambda thread: _pragma(thread.connection, "synchronous"))
        return {
            "database": "SQLite",
            "version": apsw.sqlite_lib_version(),
            "schema": version,
            "vector_search": vectors.described(),
            "durable": journal == "wal" and synchronous == 2,
            "journal_mode": journal,
            "synchronous": {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}.get(synchronous, "?"),
        }

    async def damage(self, seconds: float) -> inspection.Damage:
        with _typed_errors:
            return await asyncio.to_thread(inspection.of_file, self.path, seconds)

    # --- on the threads ----------------------------------------------------------------------------------------

    def _open_writer(self, thread: _Thread, migrate_schema: bool) -> None:
        folder = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(folder):
            raise errors.DatabaseUnavailable(f"the folder {folder!r} does not exist: create it, or change the URL")
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise errors.DatabaseUnavailable(f"{self.path!r} is not a file: change the URL")
        if not migrate_schema and not os.path.exists(self.path):
            raise errors.SchemaMissing(f"there is no database {self.path!r}: check the URL, or run a worker first")
        with _typed_errors:
            new = not os.path.exists(self.path)
            connection = thread.connection = _connect(self.path)
            if connection.readonly("main"):
                raise errors.DatabaseReadOnly(
                    f"{self.path!r} is read-only: check the permissions of the file and its folder"
                )
            todo = self._pending(connection, migrate_schema)
            if new:
                os.chmod(self.path, 0o600)
            _use_log(connection)
            self._tune(connection)
            connection.pragma("user_version")  # the log is there when something was read
            self._guard = guards.hold(connection.filename)
            self._names = (connection.filename, connection.filename_wal)
            self._files = [guards.identity(name) for name in self._names]
            if todo:
                self._migrate(connection)
            self._keep_time(connection)

    def _keep_time(self, connection: Connection) -> None:
        """Go by the clock of the file as others have left it, and have it follow the clock of the machine."""
        boot = clock_.start()
        if self._time is None or boot is None:
            return
        found = self._fetch(connection, "read_clock", {})
        known = bool(found) and found[0][0] == boot
        if known:
            self._time.line = clock_.Line(*found[0][1:])
        line = self._time.corrected() if known else clock_.Line(clock_.elapsed(), self._time.now(), 0)
        if line is None:
            return
        args = {"boot": boot, "seen": self._time.line.since} | line._asdict()

        def script() -> database.Script[bool]:
            return bool((yield database.Fetch("set_clock", args)))

        if self._transact(connection, script):
            self._time.line = line

    def _tune(self, connection: Connection) -> None:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA cache_size=-65536")
        connection.set_wal_hook(self._note_log)

    def _renew(self, thread: _Thread) -> None:
        """A connection does not notice what others commit during its transaction: its pages are of before."""
        with _typed_errors:
            former = thread.connection
            thread.connection = _connect(former.filename)
            self._tune(thread.connection)
            former.close()

    def _open_copier(self, thread: _Thread) -> None:
        with _typed_errors:
            thread.connection = apsw.Connection(self.path)
            thread.connection.set_busy_timeout(BUSY_SECONDS * 1000)
            thread.connection.pragma("user_version")  # a connection that has read nothing knows of no log to copy

    def _connected(self, thread: _Thread) -> Connection:
        """Most programs never need the second reader, or the one for long reads."""
        if not hasattr(thread, "connection"):
            thread.connection = self._open_to_read()
        return thread.connection

    def _open_to_read(self) -> Connection:
        with _typed_errors:
            connection = _connect(self.path)
            connection.execute("PRAGMA query_only=ON")
            return connection

    def _pending(self, connection: Connection, migrate_schema: bool) -> list[migrate.Migration]:
        """What is to be migrated; a file that belongs to another program is refused before anything is written."""
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]
        used = tables or _pragma(connection, "user_version")
        mark = _pragma(connection, "application_id")  # last: whoever migrates meanwhile commits it with the rest
        if mark != APPLICATION_ID and (used or mark):
            raise errors.DatabaseError(f"{self.path!r} belongs to another program: choose another file")
        return migrate.pending(self.dialect, _pragma(connection, "user_version"), migrate=migrate_schema)

    def _migrate(self, connection: Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for migration in self._pending(connection, True):
                connection.execute(migration.sql)
                connection.execute(f"PRAGMA user_version={migration.number}")
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:  # a trigger may have taken it back already
                connection.execute("ROLLBACK")
            if isinstance(error, apsw.SQLError):
                raise errors.DatabaseError(
                    f"the schema in {self.path!r} is not that of its version ({error}): restore the file from a backup"
                ) from None
            raise

    def _transact(self, connection: Connection, script: Callable[[], database.Script[T]], *, begun: bool = False) -> T:
        with _typed_errors:
            if not begun:
                connection.execute("BEGIN IMMEDIATE")
            before = connection.total_changes()
            guard = self._guard
            commits = guard.commits() if guard is not None else b""
            try:
                result = self._drive(connection, script())
                if self.before_commit is not None:
                    self.before_commit()
                self._check_place(connection)
                if guard is not None and not guard.writes_alone(commits):
                    raise _Intruded(INTRUDED.format(self.path))
                began = time.perf_counter()
                connection.execute("COMMIT")
                if connection.total_changes() != before:  # one that has nothing to sync says nothing of the disk
                    self._note_commit(time.perf_counter() - began)
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self._shorten_log(connection)
        if self.after_commit is not None:
            self.after_commit()
        return result

    def _check_place(self, connection: Connection) -> None:
        """What is written into a file that was removed or replaced would be gone when it is closed."""
        file, log = guards.identity(self._names[0]), guards.identity(self._names[1])
        if file != self._files[0]:
            raise errors.DatabaseUnavailable(
                f"the file {self.path!r} was removed or replaced while it was open, or cannot be reached any more: "
                "put it back, or start again"
            )
        if log != self._files[1]:
            raise errors.DatabaseUnavailable(
                f"the log {self.path + '-wal'!r} was removed or replaced while it was open, so nothing more would be "
                "kept: start again, and look into the file from another process only"
            )

    @property
    def _commits_are_quick(self) -> bool:
        return self._commit_seconds is not None and self._commit_seconds < QUICK_COMMIT

    def _note_commit(self, seconds: float) -> None:
        lately = self._commit_seconds
        self._commit_seconds = seconds if lately is None else lately + (seconds - lately) / 8

    def _note_log(self, _connection: Connection, _schema: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _shorten_log(self, connection: Connection) -> None:
        """Have a long log copied in another thread, where it takes nobody's time: SQLite alone would do it in a commit.
        What was written meanwhile is little, and copied here, so that the log can begin anew."""
        copier = self._copier  # which may be let go of meanwhile
        if self._log_pages < CHECKPOINT_PAGES:
            self._log_copied = False
        elif copier is not None and copier.idle:
            if self._log_copied:
                copy_log(connection)
            else:
                copier.post(lambda thread: copy_log(thread.connection))
            self._log_copied = not self._log_copied

    def _snapshot(self, connection: Connection, script: Callable[[], database.Script[T]]) -> T:
        with _typed_errors:
            connection.execute("BEGIN")
            try:
                return self._drive(connection, script())
            finally:
                connection.execute("ROLLBACK")

    def _drive(self, connection: Connection, script: database.Script[T]) -> T:
        answer: Any = None
        while True:
            try:
                request = script.send(answer)
            except StopIteration as stop:
                return stop.value
            if isinstance(request, database.Fetch):
                answer = self._fetch(connection, request.block, request.args)
            elif isinstance(request, database.Load):
                answer = self._load(connection, request)
            else:
                self._run(connection, request)
                answer = None

    def _run(self, connection: Connection, request: database.Run) -> None:
        blocks = self._blocks
        cursor = connection.cursor()
        for name, rows in request.writes:
            if not rows:
                continue
            sql = blocks[name].sql
            if name not in tables.GUARDED:
                _write(cursor, sql, rows)
                continue
            before = connection.total_changes()
            changed = _write(cursor, sql, rows) or connection.total_changes() - before
            if changed != len(rows):
                raise _Overtaken

    def _fetch(self, connection: Connection, name: str, args: dict[str, Any]) -> list[database.Row]:
        block = self._blocks[name]
        return connection.execute(block.sql, [_bind(args[p.name]) for p in block.parameters]).fetchall()

    def _load(self, connection: Connection, wanted: database.Load) -> database.Loaded:
        """The write lock is held, so it does not matter in how many statements this is read."""
        candidates: list[tuple[str, str]] = []
        job_ids, keys = wanted.job_ids, wanted.keys
        if wanted.most > 0:
            candidates = self._candidates(connection, wanted)
            known = frozenset(wanted.known)
            unknown = [key for key in candidates if key[0] not in known]
            job_ids = [*job_ids, *{key[0] for key in unknown}]
            keys = [*keys, *unknown]
        tenant = wanted.tenant
        jobs = self._fetch(connection, "load_jobs", {"tenant": tenant, "job_ids": job_ids}) if job_ids else []
        edges: list[database.Row] = []
        if wanted.ups:
            edges = self._fetch(connection, "load_dependants", {"tenant": tenant, "ups": wanted.ups})
            keys = [*keys, *{(job_id, down) for job_id, _, down in edges}]
        tasks = self._fetch(connection, "load_tasks", {"tenant": tenant, "keys": keys}) if keys else []
        return database.Loaded(candidates, jobs, tasks, edges)

    def _candidates(self, connection: Connection, wanted: database.Load) -> list[tuple[str, str]]:
        """Function by function, which is a short look at the queue for each; the first of all of them come first."""
        found: list[database.Row] = []
        for queue_ in wanted.queues:
            for name in wanted.names:
                args = {"tenant": wanted.tenant, "queue": queue_, "name": name, "most": wanted.most}
                found += self._fetch(connection, "load_candidates", args)
        if len(wanted.queues) * len(wanted.names) > 1:
            found.sort(key=lambda row: (row[0], row[1]))
        return [(row[2], row[3]) for row in found[: wanted.most]]


class _Overtaken(Exception):
    """Somebody else has changed a job since the script came to know it."""


class _Intruded(errors.DatabaseUnavailable):
    """Another copy of SQLite in this process has dropped the lock of a transaction, or written beside it."""


class _Thread:
    """A thread that owns one connection and runs functions on it, in order."""

    connection: Connection

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._asked = 0
        self._done = 0
        self._began = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def idle(self) -> bool:
        """It has done all that it was asked for, also what nobody waits for any more: its connection is not in use."""
        return self._asked == self._done

    @property
    def waiting(self) -> int:
        return self._asked - self._done

    @property
    def held_up(self) -> bool:
        """Whether what comes next would wait for something long, or for many."""
        return self.waiting > QUEUED or (not self.idle and time.monotonic() - self._began > QUICK_READ)

    async def call(self, function: Callable[[_Thread], T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            threads.answer(loop, future, lambda: function(self))

        self._asked += 1
        self._work.put(work)
        return await future

    def post(self, function: Callable[[_Thread], None]) -> None:
        """The same, for what nobody waits for."""
        self._asked += 1
        self._work.put(lambda: function(self))

    async def close(self) -> None:
        self._work.put(None)
        await threads.run(self._thread.join)

    def _run(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                while not self._work.empty():  # handed in at the last moment: answer, do not leave them waiting
                    late = self._work.get()
                    if late is not None:
                        late()
                if hasattr(self, "connection"):
                    self.connection.close()
                return
            self._began = time.monotonic()
            work()
            self._done += 1


class _Readers:
    """Threads that read: several for what is quick, and one for what is long, so that nobody who is quick waits for it.

    While one that is quick takes its time all the same, the others go on."""

    def __init__(self) -> None:
        self.threads: list[_Thread] = []
        self._quick = [self._made("ostinato-reader")]
        self._long: _Thread | None = None

    def quick(self) -> _Thread:
        for thread in self._quick:
            if thread.idle:
                return thread
        if len(self._quick) < QUICK_READERS and all(thread.held_up for thread in self._quick):
            self._quick.append(self._made(f"ostinato-reader-{len(self._quick) + 1}"))
            return self._quick[-1]
        return min(self._quick, key=lambda thread: thread.waiting)

    def long(self) -> _Thread:
        if self._long is None:
            self._long = self._made("ostinato-long-reader")
        return self._long

    def _made(self, name: str) -> _Thread:
        self.threads.append(_Thread(name))
        return self.threads[-1]


def _connect(path: str) -> Connection:
    connection: Connection = apsw.Connection(path)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # keep plans, whatever the parameters are
    connection.set_busy_timeout(BUSY_SECONDS * 1000)
    vectors.equip(connection)
    return connection


def _write(cursor: Cursor, sql: str, rows: list[tuple[Any, ...]]) -> int:
    """Run a write over rows; the answer is how many rows came back."""
    if len(rows) == 1:
        return len(cursor.execute(sql, rows[0]).fetchall())
    if len(rows) < chunks.ROWS:
        return len(cursor.executemany(sql, rows).fetchall())
    return sum(len(cursor.executemany(*part).fetchall()) for part in chunks.statements(sql, rows))


def _use_log(connection: Connection) -> None:
    """Of a file that another process makes at this moment SQLite says at once that it is locked, and does not wait."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
            return
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def copy_log(connection: Connection) -> None:
    with contextlib.suppress(apsw.Error):  # another process is at it, or the disk is full: what is in the log is safe
        connection.wal_checkpoint()


def _begin(connection: Connection) -> bool:
    """Begin a transaction, if nobody else is writing."""
    connection.set_busy_timeout(0)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(BUSY_SECONDS * 1000)
    return True


def _bind(value: Any) -> Any:
    return codec.encode_own(value).decode() if isinstance(value, list) else value


def _pragma(connection: Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchall()[0][0]


def _check_library() -> None:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < OLDEST_SAFE_SQLITE:
        raise errors.DatabaseError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt files that several processes write: upgrade `apsw`"
        )


class _TypedErrors:
    """Turns what SQLite says into errors of our own. (A generator would take four times as long to enter and leave.)"""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and (typed := _typed(error)) is not None:
            raise typed from None


_typed_errors = _TypedErrors()


def _typed(error: BaseException) -> errors.OstinatoError | None:
    match error:
        case apsw.FullError():
            return errors.DatabaseFull()
        case apsw.ReadOnlyError():
            return errors.DatabaseReadOnly()
        case apsw.CantOpenError():
            return errors.DatabaseUnavailable(
                f"the database file cannot be opened ({error}): check the path, and the permissions of the file and "
                "its folder"
            )
        case UnicodeEncodeError():
            return errors.InvalidInput("the text has a lone surrogate, which is not valid Unicode")
        case apsw.NotADBError():
            return errors.DatabaseUnavailable("the file is not a SQLite database: check the path")
        case apsw.BusyError():
            return errors.DatabaseAway(
                f"another process has held the write lock for more than {BUSY_SECONDS} s: find and stop it"
            )
        case apsw.IOError():
            return errors.DatabaseFull(f"the disk refused a write ({error}): free some room or check the disk")
        case apsw.ConstraintError():
            return errors.DatabaseError(f"the database refused the change: {error}")
        case apsw.CorruptError():
            return errors.DatabaseError(f"the database file is damaged ({error}): restore it from a backup")
        case OverflowError():
            return errors.InvalidInput(f"the database does not take the value: {error}")
        case _:
            return None
