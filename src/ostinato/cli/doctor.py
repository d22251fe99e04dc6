"""`ostinato doctor`: is everything as it should be, and what to do if not."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ostinato.cli import output
from ostinato.cli.settings import Settings, Wait, command

if TYPE_CHECKING:
    import datetime

    from ostinato import app as app_
    from ostinato.store import inspection

CHECK_SECONDS = 5.0
CLOCK_SECONDS = 1.0
LATE_SECONDS = 60.0


class Findings(NamedTuple):
    url: str
    tenant: str
    database: dict[str, Any]
    depth: dict[str, Any]
    workers: list[dict[str, Any]]
    now: datetime.datetime
    damage: inspection.Damage
    triggers: list[str]

    @property
    def is_sound(self) -> bool:
        """What was acknowledged stays as it is."""
        return bool(self.database["durable"]) and not self.damage.found and not self.triggers


def register(root: typer.Typer) -> None:
    command(root, "doctor")(doctor)


async def doctor(
    settings: Settings,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="Create the database if there is none, and bring its schema up to date.")
    ] = False,
    check: Annotated[
        float, typer.Option("--check-seconds", help="Look for damage for at most this long.", min=0, metavar="SECONDS")
    ] = CHECK_SECONDS,
    wait: Wait = 0.0,
) -> int:
    """Say what is wrong, and what to do.

    Shows versions, durability, damage, clocks, queues and workers. The exit code is 1 if the database is not durable,
    is damaged, or has lost its triggers."""
    from ostinato.cli import failures, session

    if not settings.json:
        output.fields(list(_versions().items()))
    async with session.opened(settings, migrate=migrate, wait=wait) as app:
        found = await _look(app, check)
    warnings = list(find_warnings(found))
    if settings.json:
        output.document(_document(found, warnings))
    else:
        _show(found)
        for warning in warnings:
            output.say(f"warning: {warning}")
    return failures.OK if found.is_sound else failures.FAILED


async def _look(app: app_.Ostinato, seconds: float) -> Findings:
    from ostinato.cli import session
    from ostinato.store import triggers

    store, tenant, db = app.engine.store, app.tenant, app.engine.db
    return Findings(
        session.shown_url(app.url),
        tenant,
        await db.settings(),
        await store.depth(tenant),
        await store.workers(tenant),
        session.now(app),
        await db.damage(seconds),
        await db.read(lambda: triggers.problems(db.dialect), snapshot=False),
    )


def _versions() -> dict[str, str]:
    from ostinato import __version__

    return {"ostinato": __version__, "python": platform.python_version(), "platform": platform.platform()}


def find_warnings(found: Findings) -> list[str]:
    """What is wrong, and what to do about it."""
    warnings: list[str] = []
    if not found.database["durable"]:
        warnings.append(
            "the database may lose acknowledged work in a crash: set fsync and synchronous_commit on (PostgreSQL, on "
            "the primary) or keep journal_mode=WAL and synchronous=FULL (SQLite)"
        )
    if found.damage.found:
        warnings.append(
            "the database is damaged: stop all processes, copy it as it is, then restore a backup and let "
            "`ostinato audit` look at it"
        )
    if found.triggers:
        warnings.append(
            f"{', '.join(found.triggers)}: without them the database takes changes that must not happen. Let `ostinato "
            "audit` look at it, and restore them from a backup or a new database"
        )
    if abs(found.database.get("clock_ahead_seconds") or 0) > CLOCK_SECONDS:
        warnings.append("the clocks of this machine and of the database differ: set both by NTP")
    if found.database.get("row_security") == "off":
        warnings.append(
            "row-level security is not in use, so tenants are kept apart by the statements alone: let somebody who may "
            "create roles call `SELECT ostinato_raise_wall()` in this database"
        )
    if dead := sum(not worker["alive"] for worker in found.workers):
        warnings.append(
            f"{dead} worker(s) have not been heard of: what they ran starts again elsewhere when their lease ends"
        )
    if count := found.depth["deadLetters"]:
        warnings.append(f"{count:,} dead letter(s): see `ostinato dead-letters ls`")
    return warnings + _queue_warnings(found)


def _queue_warnings(found: Findings) -> list[str]:
    served = {queue for worker in found.workers if worker["alive"] for queue in worker.get("queues", [])}
    waiting = {item["queue"] for item in found.depth["queues"] if item["ready"]}
    warnings = [
        f"tasks are ready on queue {queue!r} and no worker serves it: start `ostinato worker APP --queue {queue}`"
        for queue in sorted(waiting - served)
    ]
    for item in found.depth["queues"]:
        age = _waiting_seconds(item, found.now)
        if item["queue"] in served and not item["served"]:
            warnings.append(
                f"{item['ready']:,} task(s) of {item['name']!r} are ready on queue {item['queue']!r} and no live "
                "worker there has registered this function: start one that has, or if the name is wrong, cancel "
                "the jobs"
            )
        elif item["queue"] in served and age is not None and age > LATE_SECONDS:
            late = output.duration(age)
            warnings.append(
                f"tasks of {item['name']!r} on queue {item['queue']!r} have been ready for {late}: add workers, or see "
                "whether the running ones have this function (`ostinato functions`)"
            )
    return warnings


def _waiting_seconds(item: dict[str, Any], now: datetime.datetime) -> float | None:
    from ostinato import views

    oldest = views.moment(item["oldestReadyAt"])
    return None if oldest is None else (now - oldest).total_seconds()


def _show(found: Findings) -> None:
    database = dict(found.database)
    name, version, schema = database.pop("database"), database.pop("version"), database.pop("schema")
    del database["durable"]
    clock = database.pop("clock_ahead_seconds", None)
    alive = sum(worker["alive"] for worker in found.workers)
    output.fields(
        [
            ("database", f"{name} {version}, {found.url}"),
            ("schema", str(schema)),
            (
                "durable",
                ("yes" if found.is_sound else "NO") + f" ({', '.join(f'{k}={v}' for k, v in database.items())})",
            ),
            ("damage", _damage(found.damage)),
            ("triggers", "all triggers are there" if not found.triggers else "; ".join(found.triggers)),
            ("clock", "the same" if clock is None else f"this machine is {clock:+.3f} s ahead of the database"),
            ("tenant", found.tenant),
            ("jobs", output.counts(found.depth["jobs"]) or "none"),
            ("workers", f"{alive} alive"),
            ("dead letters", f"{found.depth['deadLetters']:,}"),
        ]
    )
    if found.depth["queues"]:
        _show_queues(found)


def _damage(damage: inspection.Damage) -> str:
    if damage.found:
        return f"FOUND: {'; '.join(damage.found)} (looked at {damage.looked})"
    return f"none found (looked at {damage.looked})"


def _show_queues(found: Findings) -> None:
    lines: list[list[Any]] = []
    for item in found.depth["queues"]:
        age = _waiting_seconds(item, found.now)
        lines.append([item["queue"], item["name"], f"{item['ready']:,}", output.duration(age) if age else ""])
    output.table(["queue", "function", "ready", "oldest"], lines, none="")


def _document(found: Findings, warnings: list[str]) -> dict[str, Any]:
    from ostinato import views

    queues = [item | {"oldestReadyAt": views.moment(item["oldestReadyAt"])} for item in found.depth["queues"]]
    return {
        "versions": _versions(),
        "url": found.url,
        "tenant": found.tenant,
        "database": found.database | {"durable": found.is_sound},
        "damage": found.damage,
        "triggers": found.triggers,
        "workers": {"alive": sum(worker["alive"] for worker in found.workers), "known": len(found.workers)},
        "warnings": warnings,
    } | (found.depth | {"queues": queues})
