"""How items look on a screen: one in full, its moves, and what became of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ostinato.cli import output

if TYPE_CHECKING:
    import datetime

    from ostinato import views
    from ostinato.reactions import bulk, item_views


def show(found: item_views.ItemDetail, now: datetime.datetime) -> None:
    error = found.last_error
    output.fields(
        [
            ("item", found.item_id),
            ("pipeline", f"{found.pipeline}, version {_version(found)}"),
            ("status", f"{found.code} {found.status}" + (f" ({found.phase})" if found.phase else "")),
            ("", found.sentence),
            ("since", output.ago(found.status_at, now)),
            ("entered", f"{output.ago(found.entered_at, now)}{_by(found.submitted_by)}"),
            ("reviewed", f"{output.ago(found.reviewed_at, now)}{_by(found.reviewed_by)}" if found.reviewed_at else ""),
            ("failures", f"{found.failures:,}" if found.failures else ""),
            ("last error", "" if error is None else f"{error.step}, attempt {error.attempt}: {_reason(error)}"),
            ("used", _used(found.usage)),
            ("payload", output.short(found.payload, 200)),
        ]
    )
    output.say("")
    steps = [_step(found, step) for step in found.steps]
    output.table(["step", "state", "attempts", "took", "used", "result"], steps, none="no steps")
    output.say("")
    runs = [
        [
            f"{one.run}{' (undo)' if one.undo else ''}",
            one.job_id,
            output.state(one.state),
            output.ago(one.created_at, now),
        ]
        for one in found.runs
    ]
    output.table(["run", "job id", "state", "begun"], runs, none="it was never run")


def show_moves(found: Sequence[item_views.ItemMove], now: datetime.datetime) -> None:
    lines = [
        [
            f"{one.number}",
            "" if one.from_status is None else f"{one.from_code} {one.from_status}",
            f"skipped {one.step}" if one.how == "skipped" else f"{one.code} {one.status}",
            output.ago(one.at, now),
            f"{one.run}",
            one.key or "",
            one.moved_by or "",
            _why(one),
        ]
        for one in found
    ]
    output.table(["", "from", "to", "when", "run", "attempt", "by", "reason"], lines, none="no moves")


def show_done(done: bulk.Done) -> None:
    lines = [[one.item_id, f"{one.code} {one.status}", one.outcome, one.detail or ""] for one in done.items]
    output.table(["item id", "was", done.action, ""], lines, none="no item matches")
    how = "would be done" if done.dry_run else "done"
    output.say(f"{how}: {done.possible:,} of {done.matched:,}" + (", and more items match" if done.more else ""))


def _step(found: item_views.ItemDetail, step: item_views.ItemStep) -> list[Any]:
    result = output.short(found.results[step.step]) if step.step in found.results else ""
    if step.when is not None and not result:
        result = f"only if {output.short(step.when)}"
    tried = [f"{len(step.attempts)}", output.duration(step.seconds)] if step.attempts else ["", ""]
    return [step.step, output.state(step.state), *tried, _used(step.usage), result]


def _why(move: item_views.ItemMove) -> str:
    how = "" if move.how in (None, "skipped") else move.how.replace("_", " ")
    return ": ".join(said for said in (how, move.reason or "") if said)


def _used(usage: views.UsageView) -> str:
    tokens = usage.input_tokens + usage.output_tokens
    parts = [output.money(usage.cost)] if usage.cost else []
    return ", ".join([*parts, f"{tokens:,} tokens"] if tokens else parts)


def _version(found: item_views.ItemDetail) -> str:
    newer = found.newest_version != found.version
    return f"{found.version}" + (f" (the newest is {found.newest_version})" if newer else "")


def _by(actor: str | None) -> str:
    return f" by {actor}" if actor else ""


def _reason(error: item_views.ItemError) -> str:
    return output.reason({"type": error.type, "message": error.message}, 200)
