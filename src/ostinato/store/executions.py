"""The execution index: own executions are the rows of `job`, those reported from outside are in a table of their own.

A page is the merge of two walks, one along an index of each table, in the same order and with one cursor for both.
Where no index serves all filters, a walk goes along the one that selects most at this place and checks the rest on what
it finds, but on no more than `EXAMINED` of them: the page then ends early, and its cursor says where to go on.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ostinato import errors
from ostinato.core import absent, codec, cursors, executions, filters, states
from ostinato.core.executions import Execution, OutsideRow, OwnRow
from ostinato.store import database, queries
from ostinato.store.database import fetch

EXAMINED = 200
"""How many executions of a table are looked at for a page, at most, beyond what it may hold."""
STRIPES = 256
AT_ONCE = 500
_END = 2**62
_WENT_WRONG = frozenset({states.FAILED, states.CANCELLED, states.TIMED_OUT})
"""By these and a name there is an index."""


class Executions:
    db: database.Database

    async def index_executions(self, tenant: str, reports: Sequence[Execution]) -> int:
        """Merge reports into the index, in one transaction; how many rows it changed. No row ever goes back."""
        if not reports:
            return 0
        return await self.db.write(lambda: index_reports(tenant, self.db.now(), reports))

    async def indexed_tags(self, tenant: str, arns: Sequence[str]) -> dict[str, dict[str, str]]:
        """Of those executions from outside that are in the index."""

        def script() -> database.Script[dict[str, dict[str, str]]]:
            return {arn: one.tags for arn, one in (yield from load_outside(tenant, arns)).items()}

        return await self.db.read(script)

    async def executions(
        self, tenant: str, wanted: filters.ExecutionFilter, *, cursor: str | None = None, most: int = 50
    ) -> filters.Page[Execution]:
        """Executions by start. A page may be short, or even empty, and still have a cursor."""
        place = wanted.place(cursor)
        return await self.db.read(lambda: _page(tenant, wanted, place, filters.check_most(most)))

    async def execution(self, tenant: str, execution_arn: str) -> Execution:
        def script() -> database.Script[Execution]:
            own = executions.own_job(tenant, execution_arn)
            kind, name = (filters.OUTSIDE, execution_arn) if own is None else (filters.OWN, own[1])
            rows = yield from _rows(tenant, kind, [name])
            for one in (yield from _shown(tenant, list(rows.values()))):
                if one.execution_arn == execution_arn:
                    return one
            raise errors.ExecutionNotFound(
                f"there is no execution {absent.named(execution_arn)}", executionArn=absent.cut(execution_arn)
            )

        return await self.db.read(script)

    async def count_executions(self, tenant: str, wanted: filters.ExecutionFilter, by: str) -> dict[str, int]:
        """How many executions match, by status, day or hour of UTC, in order. What there is none of is left out."""
        return await self.db.read(lambda: _count(tenant, wanted, filters.one_of(by, filters.BY, "by")), long=True)

    # --- definitions -------------------------------------------------------------------------------------------

    async def tag_definition(self, tenant: str, arn: str, tags: dict[str, str]) -> None:
        """Say what the tags of a definition are."""

        def script() -> database.Script[None]:
            data = codec.encode_canonical(tags)
            yield fetch("tag_definition", tenant=tenant, state_machine_arn=arn, tags=data, now=self.db.now())

        await self.db.write(script)

    async def learn_definition(self, tenant: str, arn: str, tags: dict[str, str]) -> dict[str, str]:
        """The same for what was only heard: it does not overrule what is known, which is the answer."""

        def script() -> database.Script[dict[str, str]]:
            data = codec.encode_canonical(tags)
            yield fetch("learn_definition", tenant=tenant, state_machine_arn=arn, tags=data, now=self.db.now())
            found = yield fetch("read_definition_tags", tenant=tenant, arns=[arn])
            return codec.decode(found[0][1])

        return await self.db.write(script)

    async def definition_tags(self, tenant: str, arns: Sequence[str]) -> dict[str, dict[str, str]]:
        """The tags of those of the definitions whose tags are known."""

        def script() -> database.Script[dict[str, dict[str, str]]]:
            found = yield fetch("read_definition_tags", tenant=tenant, arns=list(arns))
            return {row[0]: codec.decode(row[1]) for row in found}

        return await self.db.read(script, snapshot=False)


# --- writing ---------------------------------------------------------------------------------------------------


def index_reports(tenant: str, now: int, reports: Sequence[Execution]) -> database.Script[int]:
    """The same inside a transaction that does more."""
    arns = sorted({one.execution_arn for one in reports})
    yield lock(arns)
    known = yield from load_outside(tenant, arns)
    merged = dict(known)
    for one in reports:
        old = merged.get(one.execution_arn)
        merged[one.execution_arn] = one if old is None else executions.merge(old, one)
    changed = [one for arn, one in merged.items() if one != known.get(arn)]
    yield from write(tenant, now, changed)
    return len(changed)


def lock(arns: Sequence[str]) -> database.Fetch:
    """Two transactions that know an execution may not both merge into what they have read."""
    stripes = sorted({zlib.crc32(arn.encode()) % STRIPES for arn in arns})
    return fetch("lock_executions", stripes=stripes)


def write(tenant: str, now: int, changed: Sequence[Execution]) -> database.Script[None]:
    yield database.Run([
        ("put_execution", [
            (tenant, one.execution_arn, one.state_machine_arn, one.agent_name, one.execution_name, one.status,
             one.start_at, one.stop_at, one.correlation_id, now)
            for one in changed
        ]),
        ("put_execution_tag", [
            (tenant, one.execution_arn, key, value, one.start_at) for one in changed for key, value in one.tags.items()
        ]),
    ])  # fmt: skip


def prune(tenant: str, before: int, most: int) -> database.Script[int]:
    """Remove up to `most` outside executions of which nothing was heard since a moment, whether they ended or not."""
    found = yield fetch("old_executions", tenant=tenant, before=before, most=most)
    if not found:
        return 0
    arns = [row[0] for row in found]
    yield lock(arns)
    gone = yield fetch("prune_execution", tenant=tenant, arns=arns, before=before)
    yield fetch("prune_execution_tag", tenant=tenant, arns=[row[0] for row in gone])
    return len(gone)


# --- reading rows ----------------------------------------------------------------------------------------------

Row = OwnRow | OutsideRow


def load_outside(tenant: str, arns: Sequence[str]) -> database.Script[dict[str, Execution]]:
    """By ARN."""
    rows = yield from _rows(tenant, filters.OUTSIDE, arns)
    found = yield from _shown(tenant, list(rows.values()))
    return {one.execution_arn: one for one in found}


def _rows(tenant: str, kind: int, ids: Sequence[str]) -> database.Script[dict[str, Row]]:
    """By job id, or by ARN."""
    if kind == filters.OWN:
        found = yield fetch("load_own_executions", tenant=tenant, job_ids=list(ids))
        return {row[0]: OwnRow(*row) for row in found}
    found = yield fetch("load_executions", tenant=tenant, arns=list(ids))
    return {row[0]: OutsideRow(*row) for row in found}


def _shown(tenant: str, rows: Sequence[Row]) -> database.Script[list[Execution]]:
    """Rows as they are shown, with the tags of those from outside."""
    tags = yield from _tags(tenant, [row.execution_arn for row in rows if isinstance(row, OutsideRow)])
    return [
        executions.of_job(tenant, row)
        if isinstance(row, OwnRow)
        else Execution(**row._asdict(), tags=tags.get(row.execution_arn, {}))
        for row in rows
    ]


def _tags(tenant: str, arns: list[str]) -> database.Script[dict[str, dict[str, str]]]:
    tags: dict[str, dict[str, str]] = {}
    for arn, key, value in (yield fetch("load_execution_tags", tenant=tenant, arns=arns)) if arns else ():
        tags.setdefault(arn, {})[key] = value
    return tags


# --- ways to go ------------------------------------------------------------------------------------------------


class Look(NamedTuple):
    """One index to go along."""

    block: str
    args: dict[str, Any]


class Way(NamedTuple):
    """A way to find executions: one look, or several that are merged."""

    looks: list[Look]
    narrow: bool = True
    """All that is found along it has the agent and a status that are wanted, and is nobody's whose jobs are not."""
    tagged: bool = True
    """All that is found along it has the tag that is wanted."""


def plan(wanted: filters.ExecutionFilter, kind: int) -> list[Way]:
    """Ways to find executions. Whatever finds the fewest is gone along; if there is nothing to check, it is alone."""
    untagged = wanted.tag is None
    narrow = wanted.agent_name is None and not wanted.statuses and not (kind == filters.OWN and wanted.users_only)
    if wanted.correlation_id is not None:  # as a rule these are few
        looks = [Look(block, {"correlation_id": wanted.correlation_id}) for block in _BY_CORRELATION[kind]]
        return [Way(looks, narrow, untagged)]
    base = _own_base(wanted) if kind == filters.OWN else _outside_base(wanted)
    if wanted.tag is None:
        return base
    key, value = wanted.tag
    by_tag = Way([Look(_of_tag(_BY_TAG[kind], wanted.tag), {"tag_key": key, "tag_value": value})], narrow)
    # A tag may be on a few executions or on all of them.
    return [by_tag] if narrow else [by_tag, *(way._replace(tagged=False) for way in base)]


def _of_tag(block: str, tag: tuple[str, str | None]) -> str:
    return block if tag[1] is None else block + "_value"


_BY_CORRELATION = {
    # A job without a correlation id of its producer's has its own id, and is not in the index.
    filters.OWN: ("find_jobs_by_correlation_id", "find_job_by_its_own_correlation_id"),
    filters.OUTSIDE: ("find_executions_by_correlation_id",),
}
_BY_TAG = {filters.OWN: "find_jobs_by_tag", filters.OUTSIDE: "find_executions_by_tag"}


def _own_base(wanted: filters.ExecutionFilter) -> list[Way]:
    name = wanted.agent_name
    chosen = [executions.STATE_OF[status] for status in wanted.statuses]
    by_state = Way([Look("find_jobs_by_state", {"state": state}) for state in chosen], name is None)
    if name is None:
        base = by_state if chosen else Way([Look("find_jobs", {})])
        return [base._replace(narrow=not wanted.users_only)]
    by_name = Way([Look("find_jobs_by_name", {"name": name})], not chosen)
    if not chosen:
        return [by_name]
    if _WENT_WRONG.issuperset(chosen):
        return [Way([Look("find_jobs_by_name_and_state", {"name": name, "state": state}) for state in chosen])]
    # Most jobs have ended well: then the name says more.
    return [by_name] if states.COMPLETED in chosen else [by_state, by_name]


def _outside_base(wanted: filters.ExecutionFilter) -> list[Way]:
    agent = wanted.agent_name
    if not wanted.statuses:
        block, about = ("find_executions", {}) if agent is None else ("find_executions_by_agent", {"agent_name": agent})
        return [Way([Look(block, about)])]
    block = "find_executions_by_status" if agent is None else "find_executions_by_agent_and_status"
    return [Way([Look(block, {"agent_name": agent, "status": status}) for status in wanted.statuses])]


# --- pages -----------------------------------------------------------------------------------------------------


Keys = list[filters.Place]
Bounds = tuple[filters.Place, filters.Place]
Found = tuple[filters.ExecutionPlace, Row]


class Walk(NamedTuple):
    """What was found in one table, and how far it has been looked at: no end, nothing is left."""

    found: list[Found]
    end: filters.ExecutionPlace | None


def _page(
    tenant: str, wanted: filters.ExecutionFilter, place: filters.ExecutionPlace | None, most: int
) -> database.Script[filters.Page[Execution]]:
    walks: list[Walk] = []
    for kind in (filters.OWN, filters.OUTSIDE):
        walks.append((yield from _walk(tenant, wanted, place, most, kind)))
    newest = wanted.order == filters.NEWEST
    found = sorted((item for walk in walks for item in walk.found), key=lambda item: item[0], reverse=newest)
    ends = [walk.end for walk in walks if walk.end is not None]
    edge = (max(ends) if newest else min(ends)) if ends else None
    if edge is not None:  # what lies behind it may have others before it that were not looked at
        found = [item for item in found if (item[0] >= edge if newest else item[0] <= edge)]
    goes_on = found[most - 1][0] if len(found) > most else edge
    shown = yield from _shown(tenant, [row for _, row in found[:most]])
    return filters.Page(shown, None if goes_on is None else cursors.write(goes_on))


def _walk(
    tenant: str, wanted: filters.ExecutionFilter, place: filters.ExecutionPlace | None, most: int, kind: int
) -> database.Script[Walk]:
    ways = plan(wanted, kind)
    checked = any(not (way.narrow and way.tagged) for way in ways)
    count = (max(most, EXAMINED) if checked else most) + 1
    way, keys = yield from _leading(tenant, ways, wanted, wanted.bounds(place, kind), count)
    end = _place(keys[-1], kind) if len(keys) == count else None
    if wanted.tag is not None and not way.tagged:
        keys = yield from _tagged(tenant, wanted.tag, keys, kind)
    if not way.narrow:
        keys = yield from _narrowed(tenant, wanted, keys, kind, most)
    if len(keys) > most:
        keys = keys[: most + 1]
        end = _place(keys[-1], kind)
    rows = (yield from _rows(tenant, kind, [key[1] for key in keys])) if keys else {}
    return Walk([(_place(key, kind), rows[key[1]]) for key in keys if key[1] in rows], end)


def _leading(
    tenant: str, ways: Sequence[Way], wanted: filters.ExecutionFilter, bounds: Bounds, count: int
) -> database.Script[tuple[Way, Keys]]:
    """The way with the fewest executions from here on, by how far its first ones reach, and the keys of these."""
    newest = wanted.order == filters.NEWEST
    reached: list[tuple[Way, Keys]] = []
    for way in ways:
        keys = yield from _keys(tenant, way, wanted, bounds, count)
        if len(keys) < count:
            return way, keys
        reached.append((way, keys))
    furthest = min if newest else max
    return furthest(reached, key=lambda one: one[1][-1])


def _keys(
    tenant: str,
    way: Way,
    wanted: filters.ExecutionFilter,
    bounds: Bounds,
    most: int,
) -> database.Script[Keys]:
    """Keys in the order that is wanted, of all looks of a way."""
    newest = wanted.order == filters.NEWEST
    (after_at, after_id), (before_at, before_id) = bounds
    between = {"after_at": after_at, "after_id": after_id, "before_at": before_at, "before_id": before_id}
    keys: Keys = []
    for block, args in way.looks:
        name = block if newest else block + queries.UPWARDS
        found = yield fetch(name, **(_UNCHECKED | between | args), tenant=tenant, most=most)
        keys += [(at, one) for at, one in found]
    keys.sort(reverse=newest)
    return keys[:most]


_UNCHECKED: dict[str, None] = dict.fromkeys(("states", "name", "request_id", "tag_key", "tag_value"))
"""Filters that the blocks for lists of jobs could check on the way."""


def _tagged(tenant: str, tag: tuple[str, str | None], keys: Keys, kind: int) -> database.Script[Keys]:
    """Those of the keys that have the tag."""
    block = _of_tag("tagged_jobs" if kind == filters.OWN else "tagged_executions", tag)
    return (yield from _kept(keys, Look(block, {"tenant": tenant, "tag_key": tag[0], "tag_value": tag[1]})))


def _narrowed(tenant: str, wanted: filters.ExecutionFilter, keys: Keys, kind: int, most: int) -> database.Script[Keys]:
    """Those of the keys that have the agent and a status, at least `most` and one if there are as many."""
    block, statuses = "narrowed_executions", wanted.statuses
    if kind == filters.OWN:
        block, statuses = "narrowed_jobs", [executions.STATE_OF[status] for status in wanted.statuses]
    args = {"tenant": tenant, "agent_name": wanted.agent_name, "statuses": _listed(statuses)}
    look = Look(block, args | ({"users": wanted.users_only or None} if kind == filters.OWN else {}))
    kept: Keys = []
    step = 2 * (most + 1)  # rows are read for it: as a rule most of them fit, and these are enough
    for start in range(0, len(keys), step):
        kept += yield from _kept(keys[start : start + step], look)
        if len(kept) > most:
            break
    return kept


def _kept(keys: Keys, look: Look) -> database.Script[Keys]:
    found = (yield fetch(look.block, keys=keys, **look.args)) if keys else ()
    kept = {row[0] for row in found}
    return [key for key in keys if key[1] in kept]


def _place(key: filters.Place, kind: int) -> filters.ExecutionPlace:
    return key[0], kind, key[1]  # pyright: ignore[reportReturnType]


# --- counts ----------------------------------------------------------------------------------------------------


def _count(tenant: str, wanted: filters.ExecutionFilter, by: str) -> database.Script[dict[str, int]]:
    counted: dict[str, int] = {}
    span, name = (executions.HOUR, executions.hour) if by == "hour" else (executions.DAY, executions.day)
    if wanted.correlation_id is not None:
        found = yield from _count_rows(tenant, wanted, span)
    else:
        found = yield from _count_in_sql(tenant, wanted, span)
    for status, number, count in found:
        key = status if by == "status" else name(number)
        counted[key] = counted.get(key, 0) + count
    order = executions.STATUSES if by == "status" else sorted(counted)
    return {key: counted[key] for key in order if key in counted}


def _count_rows(tenant: str, wanted: filters.ExecutionFilter, span: int) -> database.Script[list[tuple[str, int, int]]]:
    """One by one: as a rule only a few share a correlation id."""
    counted: list[tuple[str, int, int]] = []
    place = None
    while True:
        page = yield from _page(tenant, wanted, place, AT_ONCE)
        counted += [(one.status, one.start_at // span, 1) for one in page]
        if page.cursor is None:
            return counted
        place = wanted.place(page.cursor)


def _count_in_sql(
    tenant: str, wanted: filters.ExecutionFilter, span: int
) -> database.Script[list[tuple[str, int, int]]]:
    until = _END if wanted.started_until is None else wanted.started_until
    given = {"tenant": tenant, "from_at": wanted.started_from or 0, "until_at": until, "span": span}
    counted: list[tuple[str, int, int]] = []
    for block, args in _own_counts(wanted):
        for state, day, count in (yield fetch(block, **(given | args))):
            counted.append((executions.STATUS_OF[state], int(day), int(count)))
    for block, args in _outside_counts(wanted):
        for status, day, count in (yield fetch(block, **(given | args))):
            counted.append((status, int(day), int(count)))
    return counted


def _own_counts(wanted: filters.ExecutionFilter) -> Iterator[Look]:
    chosen = [executions.STATE_OF[status] for status in wanted.statuses or executions.STATUSES]
    about = {"name": wanted.agent_name, "states": _listed(chosen if wanted.statuses else ())}
    if wanted.tag is not None:
        yield _count_by_tag("count_jobs_by_tag", wanted.tag, about | {"users": wanted.users_only or None})
    elif wanted.agent_name is not None:
        yield Look("count_jobs_by_name", about)
    else:
        block = "count_jobs_of_users_by_state" if wanted.users_only else "count_jobs_by_state"
        yield from (Look(block, {"state": state}) for state in chosen)


def _outside_counts(wanted: filters.ExecutionFilter) -> Iterator[Look]:
    about = {"agent_name": wanted.agent_name, "statuses": _listed(wanted.statuses)}
    if wanted.tag is not None:
        yield _count_by_tag("count_executions_by_tag", wanted.tag, about)
        return
    block = "count_executions_by_status" if wanted.agent_name is None else "count_executions_by_agent"
    yield from (Look(block, about | {"status": status}) for status in wanted.statuses or executions.STATUSES)


def _count_by_tag(block: str, tag: tuple[str, str | None], about: dict[str, Any]) -> Look:
    key, value = tag
    return Look(block if value is None else f"{block}_value", about | {"tag_key": key, "tag_value": value})


def _listed(names: Sequence[str]) -> str | None:
    return f",{','.join(names)}," if names else None
