"""A budget is used up: people are asked whether more may be spent, in a job of its own, which does what they decide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from ostinato.core import approvals, budgets, codec, graph, items, ledger, needs, states, usage
from ostinato.core.commands import consequences, producing
from ostinato.core.retry import Retry

RAISE: Final = "ostinato.pipeline.raise-budget"
RAISE_TENANT: Final = "ostinato.tenant.raise-budget"
TENANT: Final = ledger.TENANT_BUDGET_JOB
"""How jobs are named in which people are asked about the budget of the tenant: this, and `day` or `month`. No pipeline
has a name like that."""
_AMOUNT: Final = "budget"
"""The tag that says about which budget, in millionths."""
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
    producing.Submit(item.question() or "", spec, inputs, run.submitted_by, run.trace_parent).apply(book)


class Question(NamedTuple):
    """A job in which people are, or were, asked about the budget of the tenant for this day or month."""

    job_id: str
    state: str
    tolerated: int
    tags: bytes

    @property
    def amount(self) -> int:
        return int(codec.decode(self.tags)[_AMOUNT])

    def stands(self, amount: int | None) -> bool:
        """It is about this budget, and nobody has answered, or somebody has rejected it."""
        return self.amount == amount and (self.state == states.RUNNING or self.tolerated > 0)


def tenant_question(used_up: budgets.Exhausted, now: int, number: int) -> str:
    """The id of the job. Two processes that ask at the same time choose the same one, and one finds it taken."""
    return f"budget-{used_up.scope}-{budgets.period(used_up.scope, now)}-{used_up.budget}.{number}"


def need_ask(used_up: budgets.Exhausted, asked: Iterable[Question]) -> bool:
    """Once for a budget in a day or a month. A budget of nothing is there to stop things: nobody is asked."""
    return used_up.budget > 0 and not any(one.stands(used_up.budget) for one in asked)


def ask_for_tenant(book: ledger.Ledger, used_up: budgets.Exhausted, job_id: str) -> None:
    """The tenant has spent what it may. When there is a new budget anyway, nobody is asked any longer."""
    span = "today" if used_up.scope == budgets.DAY else "this month"
    title = f"May more be spent {span}? {usage.shown(used_up.spent)} of {usage.shown(used_up.budget)} is spent"
    asked = approvals.Approval(title, allow_edit=True)
    about: dict[str, Any] = {"scope": used_up.scope, "period": budgets.period(used_up.scope, book.now)}
    about["budget"] = usage.money(used_up.budget)
    more = {"spent": usage.money(used_up.spent), "raiseTo": usage.money(used_up.spent + used_up.budget)}
    spec = graph.JobSpec(
        [
            graph.TaskSpec(APPROVE, "approve", approval=asked, optional=True),
            graph.TaskSpec(
                "$raise",
                RAISE_TENANT,
                depends_on=[APPROVE],
                queue=graph.SYSTEM_QUEUE,
                on_dependency_failure="skip",
            ),
        ],
        name=f"{TENANT}{used_up.scope}",
        tags={_AMOUNT: str(used_up.budget)},
        deadline=((used_up.due_at or book.now) - book.now) / 1e6,
    )
    producing.Submit(job_id, spec, [codec.encode_own(about | more), codec.encode_own(about)]).apply(book)


class Withdraw(msgspec.Struct, gc=False):
    """Nobody need answer a question about a budget any longer. Answers whether somebody was still asked."""

    job_id: str
    reason: str
    actor: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.whole_job(self.job_id)

    def apply(self, book: ledger.Ledger) -> bool:
        return withdraw(book, self.job_id, self.reason, self.actor)


def withdraw(book: ledger.Ledger, job_id: str, reason: str, actor: str | None = None) -> bool:
    """Nobody need answer any longer. What was answered is being done, and is left alone."""
    job = book.jobs.get(job_id)
    asked = book.tasks.get((job_id, APPROVE))
    if job is None or job.state != states.RUNNING or asked is None or asked.state != states.WAITING:
        return False
    consequences.cancel_open_tasks(book, job, consequences.event_data(reason=reason, actor=actor))
    book.end_job(job, states.CANCELLED, reason=reason, actor=actor)
    return True
