"""A budget is used up: people are asked whether more may be spent, in a job of its own, which does what they decide."""

from __future__ import annotations

from typing import Any, Final

from ostinato.core import approvals, budgets, codec, graph, items, ledger, states, usage
from ostinato.core.commands import consequences, producing
from ostinato.core.retry import Retry

RAISE: Final = "ostinato.pipeline.raise-budget"
APPROVE: Final = "approve"
PATIENT: Final = Retry(max_attempts=1000, base_delay=1.0, multiplier=2.0, max_delay=300.0)
"""An item is not given up while another of its steps is at work: that may take long."""


def ask_for_item(book: ledger.Ledger, item: items.Item, used_up: budgets.Exhausted) -> None:
    """The run of an item has cost what it may."""
    run = book.jobs[item.job_id or ""]
    budget, spent = usage.money(used_up.budget), usage.money(used_up.spent)
    title = f"May item {item.item_id} cost more? {usage.shown(used_up.spent)} of {usage.shown(used_up.budget)} is spent"
    asked = approvals.Approval(title, allow_edit=True)
    given: dict[str, Any] = {"item_id": item.item_id, "job_id": run.job_id}
    shown = given | {"budget": budget, "spent": spent, "raiseTo": usage.money(used_up.spent + used_up.budget)}
    spec = graph.JobSpec(
        [
            graph.TaskSpec(APPROVE, "approve", approval=asked, optional=True),
            graph.TaskSpec(
                "$raise",
                RAISE,
                depends_on=[APPROVE],
                queue=graph.SYSTEM_QUEUE,
                on_dependency_failure="run",
                retry=PATIENT,
            ),
        ],
        name=f"{ledger.BUDGET_JOB}{item.pipeline}",
        correlation_id=run.correlation_id,
        tags={"item": item.item_id},
    )
    inputs = [codec.encode_own(shown), codec.encode_own(given | {"budget": budget})]
    item.ask_for_budget(run.last_seq)
    producing.Submit(item.question() or "", spec, inputs, actor=run.submitted_by).apply(book)


def withdraw(book: ledger.Ledger, job_id: str, reason: str, actor: str | None = None) -> bool:
    """Nobody need answer any longer. What was answered is being done, and is left alone."""
    job = book.jobs.get(job_id)
    asked = book.tasks.get((job_id, APPROVE))
    if job is None or job.state != states.RUNNING or asked is None or asked.state != states.WAITING:
        return False
    consequences.cancel_open_tasks(book, job, consequences.event_data(reason=reason, actor=actor))
    book.end_job(job, states.CANCELLED, reason=reason, actor=actor)
    return True
