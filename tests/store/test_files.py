"""SQLite files that are not what they should be: refused with a sentence, and not changed."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import apsw
import pytest

from ostinato import errors
from ostinato.store import connect
from tests.engine import support


async def opened(path: Path, *, migrate: bool) -> None:
    database = connect.connect(f"sqlite:///{path}")
    await database.open(migrate=migrate)
    await database.close()


async def test_looking_does_not_create_a_file(tmp_path: Path) -> None:
    with pytest.raises(errors.SchemaMissing, match="no database"):
        await opened(tmp_path / "none.db", migrate=False)
    assert not (tmp_path / "none.db").exists()


async def test_looking_does_not_change_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(errors.SchemaMissing):
        await opened(path, migrate=False)
    assert path.stat().st_size == 0


@pytest.mark.parametrize("version", [0, 1, 99])
async def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    other.execute(f"CREATE TABLE theirs (a); PRAGMA user_version={version}")
    other.close()
    before = path.read_bytes()
    for migrate in (True, False):
        with pytest.raises(errors.DatabaseError, match="another program"):
            await opened(path, migrate=migrate)
    assert path.read_bytes() == before


@pytest.mark.parametrize("mark", ["user_version=5", "application_id=7", "user_version=-1"])
async def test_a_file_that_another_program_has_only_marked_is_left_alone_too(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    other.execute(f"PRAGMA {mark}")
    other.close()
    before = path.read_bytes()
    assert before
    for migrate in (True, False):
        with pytest.raises(errors.DatabaseError, match="another program"):
            await opened(path, migrate=migrate)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["other.db"]


async def test_an_empty_database_without_any_mark_is_nobodys(tmp_path: Path) -> None:
    for name, statement in (("empty.db", "SELECT 1"), ("vacuumed.db", "VACUUM")):
        other = apsw.Connection(str(tmp_path / name))
        other.execute(statement)
        other.close()
        await opened(tmp_path / name, migrate=True)
        await opened(tmp_path / name, migrate=False)


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("this is not a database, but long enough to have been one\n" * 100)
    with pytest.raises(errors.DatabaseUnavailable, match="not a SQLite database"):
        await opened(path, migrate=True)


async def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null"), Path("/dev/full")):
        for migrate in (True, False):
            with pytest.raises(errors.DatabaseUnavailable, match="is not a file"):
                await opened(path, migrate=migrate)


@pytest.mark.parametrize("version", [1, -1])
async def test_a_schema_that_is_newer_than_it_says_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "mine.db"
    await opened(path, migrate=True)
    link = apsw.Connection(str(path))
    link.execute(f"PRAGMA user_version={version}; PRAGMA wal_checkpoint(TRUNCATE)")
    link.close()
    before = path.read_bytes()
    with pytest.raises(errors.DatabaseError, match="not that of its version"):
        await opened(path, migrate=True)
    assert path.read_bytes() == before


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.DatabaseUnavailable, match="does not exist"):
        await opened(tmp_path / "nowhere" / "x.db", migrate=True)


async def test_a_file_that_cannot_be_opened_may_want_permissions(tmp_path: Path) -> None:
    with pytest.raises(errors.DatabaseUnavailable, match="the permissions of the file and its folder"):
        await opened(tmp_path / ("x" * 300), migrate=True)


async def test_files_are_private(tmp_path: Path) -> None:
    await opened(tmp_path / "mine.db", migrate=True)
    assert (tmp_path / "mine.db").stat().st_mode & 0o777 == 0o600


async def test_who_makes_the_same_file_at_the_same_moment_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "both.db"
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    opening = asyncio.create_task(opened(path, migrate=True))
    await asyncio.sleep(0.2)
    other.execute("COMMIT")
    other.close()
    await opening


@pytest.mark.parametrize("what", ["removed", "replaced"])
async def test_nothing_is_acknowledged_that_went_into_a_file_that_is_gone(
    sqlite_url: str, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    monkeypatch.chdir(path.parent)
    async with support.opened(f"sqlite:///{path.name}") as app:
        monkeypatch.chdir("/")  # its name means another place now, and it is where it was
        await support.run(app, support.task("a"))
        path.rename(tmp_path / "aside.db")
        if what == "replaced":
            shutil.copy(tmp_path / "aside.db", path)
        with pytest.raises(errors.DatabaseUnavailable, match="removed or replaced"):
            await app.submit(support.job(support.task("a")))
        (tmp_path / "aside.db").rename(path)
        assert await support.run(app, support.task("a")) == {"a": {}}
        assert len(await app.jobs()) == 2


@pytest.mark.parametrize(
    "url", ["mysql://x/y", "sqlite://", "sqlite:", "", "shop.db", "postgresql://h:notaport/x", "postgresql://h:99999/x"]
)
def test_a_bad_url_says_what_a_good_one_is(url: str) -> None:
    with pytest.raises(errors.InvalidUrl):
        connect.connect(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://[::1/x", "the host in the URL"),
        ("postgresql://[zz]/x", "the host in the URL"),
        ("postgresql://h:notaport/x", "the port in the URL"),
        ("postgresql://h:99999/x", "the port in the URL"),
        ("postgresql://u:1@h:5432,other:notaport/x", "the port in the URL"),
        ("postgresql://h/x?port=one", "the port in the URL"),
        ("postgresql://h/a%00b", "NUL"),
        ("postgresql://h/x?port=5432,99999", "the port in the URL"),
        ("postgresql://h/x?sslmode", "what stands behind the [?] in the URL"),
    ],
)
def test_a_bad_url_of_postgresql_says_which_part_is_wrong(url: str, said: str) -> None:
    with pytest.raises(errors.InvalidUrl, match=said):
        connect.connect(url)


@pytest.mark.parametrize(
    "hosts", ["h1:5432,h2:5433", "h1,h2:5433", "u:p@h1:5432,h2", "[::1]:5432,[::2]:5433", "%2Ftmp:5432,h:", "u:p@h"]
)
def test_a_url_of_postgresql_may_name_several_servers(hosts: str) -> None:
    """Of a replicated one, that which can be written to is found by the driver."""
    connect.connect(f"postgresql://{hosts}/x")


@pytest.mark.parametrize("setting", ["sslmode=foo", "sslnegotiation=foo", "gsslib=foo", "service=x&sslmode=foo"])
async def test_a_parameter_of_the_url_that_the_driver_does_not_take_is_named(setting: str) -> None:
    with pytest.raises(errors.InvalidUrl, match=setting.partition("=")[0].replace("service", "sslmode")):
        await connect.connect(f"postgresql://127.0.0.1:1/x?{setting}").open(migrate=False)


@pytest.mark.parametrize("host", ["h..x", "h" * 300, "\ud800"], ids=ascii)
async def test_a_host_that_can_be_none_is_refused(host: str) -> None:
    with pytest.raises(errors.InvalidUrl, match="the host in the URL"):
        await connect.connect(f"postgresql://{host}/x").open(migrate=False)


async def test_a_parameter_of_the_url_that_the_server_does_not_take_is_named(postgres_url: str) -> None:
    join = "&" if "?" in postgres_url else "?"
    with pytest.raises(errors.InvalidUrl, match="colour"):
        await connect.connect(f"{postgres_url}{join}colour=red").open(migrate=False)
