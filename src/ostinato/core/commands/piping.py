"""What is done to items of pipelines: they are entered, run, begun again, ended, looked at, and moved by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ostinato import errors
from ostinato.core import allowed, codec, courses, events, items, ledger, needs, rows, states
from ostinato.core.commands import consequences, following, passing, producing


class Entered(msgspec.Struct, frozen=True, rename="camel"):
    """`created` is False for an item that was entered before."""

    item_id: str
    job_id: str | None
    status: int
    created: bool


class EnterItem(msgspec.Struct, gc=False):
    """Enter an item, and begin its first run, or leave it to be processed later."""

    item_id: str
    pipeline: str
    version: int
    payload: bytes
    submit: producing.Submit | None
    actor: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.items.add(self.item_id)
        wanted.courses.add((self.pipeline, self.version))
        if self.submit is not None:
            self.submit.needs(wanted)
            wanted.job(self.submit.job_id)

    def check(self, known: items.Item | None) -> None:
        """Refuse an id under which there is another item."""
        if known is not None and not self.is_same(known):
            raise errors.IdempotencyConflict(
                f"there is already an item {self.item_id!r}, which is another: use another itemId, or restart it",
                itemId=self.item_id,
            )

    def is_same(self, known: items.Item) -> bool:
        codec.check_open(known.digest)
        return (known.pipeline, items.entered(known.digest)) == (self.pipeline, items.digest(self.payload))

    def apply(self, book: ledger.Ledger) -> Entered:
        known = book.items_by_id.get(self.item_id)
        self.check(known)
        if known is not None:
            return self._answer(book, known, created=False)
        course = book.courses[(self.pipeline, self.version)]
        if self.submit is not None:
            _choose_free(book, self.submit, self.item_id, 1)
        item = items.Item(
            self.item_id,
            self.pipeline,
            self.version,
            courses.NOWHERE,
            True,
            None,
            0,
            b"{}",
            None,
            0,
            None,
            0,
            None,
            book.now,
            book.now,
            self.actor,
            None,
            None,
            items.digest(self.payload),
        )
        book.items_by_id[item.item_id] = item
        book.new_items[item.item_id] = self.payload
        item.by = self.actor
        if self.submit is None:
            item.go(course, [course.initial], book.now)
        else:
            begin_run(book, item, self.submit, course.initial)
        return self._answer(book, item, created=True)

    @staticmethod
    def _answer(book: ledger.Ledger, item: items.Item, *, created: bool) -> Entered:
        """One that is entered in this very transaction is put where it begins when that is over."""
        status = book.course_of(item).initial if item.status == courses.NOWHERE else item.status
        return Entered(item.item_id, item.job_id, status, created)


class EnterItems(msgspec.Struct, gc=False):
    """Enter all of these items, or if one of them is refused, none."""

    entering: list[EnterItem]

    def needs(self, wanted: needs.Needs) -> None:
        for one in self.entering:
            one.needs(wanted)

    def apply(self, book: ledger.Ledger) -> list[Entered]:
        check_different(self.entering)
        for one in self.entering:
            one.check(book.items_by_id.get(one.item_id))
        return [one.apply(book) for one in self.entering]


def check_different(entering: Sequence[EnterItem]) -> None:
    """Refuse a list that has two items under one id."""
    first: dict[str, EnterItem] = {}
    for one in entering:
        if first.setdefault(one.item_id, one).payload != one.payload:
            raise errors.IdempotencyConflict(
                f"there are two items {one.item_id!r}, which are not the same: use another itemId for one of them",
                itemId=one.item_id,
            )


class StartRun(msgspec.Struct, gc=False):
    """Begin an item anew, at a stop of the course. What is kept of the run before is completed at once."""

    item_id: str
    pipeline: str
    seen_run: int
    """The run that the caller has looked at."""
    submit: producing.Submit
    kept: Mapping[str, bytes | None]
    """Results of steps that are not run again; None for those that had none."""
    begins_at: str
    """The name of a status."""
    version: int
    payload: bytes | None = None
    actor: str | None = None
    reason: str | None = None
    reviewed: bool = False
    """Whoever began it did so by deciding in its review."""

    def needs(self, wanted: needs.Needs) -> None:
        wanted.items.add(self.item_id)
        wanted.courses.add((self.pipeline, self.version))
        self.submit.needs(wanted)
        wanted.job(self.submit.job_id)

    def apply(self, book: ledger.Ledger) -> Entered:
        item = book.item(self.item_id)
        course = book.courses[(item.pipeline, self.version)]
        begins_at = course.codes[self.begins_at]
        _check_rests(book, item, self.seen_run)
        _choose_free(book, self.submit, self.item_id, self.seen_run + 1)
        if self.reviewed:
            _check_waits(book, item)
        allowed.begin(course, item, begins_at)
        authors = self._authors(book, item)
        set_aside(book, item, f"run {item.run + 1} has begun", self.actor)
        item.version = self.version
        book.attribute(item, self.actor, self.reason)
        if self.reviewed:
            item.reviewed_by, item.reviewed_at = self.actor, book.now
        begin_run(book, item, self.submit, begins_at, self.kept)
        for review in course.reviews:
            if authors and (self.submit.job_id, review) in book.tasks:
                ledger.name_authors(book.tasks[(self.submit.job_id, review)], sorted(authors))
        if self.payload is not None:
            book.new_payloads[item.item_id] = self.payload
        return Entered(item.item_id, item.job_id, begins_at, True)

    def _authors(self, book: ledger.Ledger, item: items.Item) -> set[str]:
        """The people who have entered the item or given its payload, whoever begins this run."""
        named = {item.submitted_by, self.actor if self.payload is not None else None}
        for review in book.course_of(item).reviews:
            task = book.tasks.get((item.job_id or "", review))
            named.update(() if task is None else ledger.authors(task))
        return {name for name in named if name is not None}


class RollBack(msgspec.Struct, gc=False):
    """Give an item up, and take back what its steps did."""

    item_id: str
    actor: str | None = None
    reason: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.items.add(self.item_id)

    def apply(self, book: ledger.Ledger) -> Entered:
        item = book.item(self.item_id)
        course = book.course_of(item)
        _check_rests(book, item, item.run)
        allowed.give_up(course, item)
        job_id = item.job_id
        if item.is_rolled_back() and item.status in (course.failed, course.dead):
            return Entered(item.item_id, job_id, item.status, False)
        book.attribute(item, self.actor, self.reason or "rolled back", items.ROLLED_BACK)
        if job_id is not None and job_id in book.jobs:
            following.undo(book, item, job_id)
            set_aside(book, item, "rolled back", self.actor)
        item.roll_back(course)
        if item.status not in (course.failed, course.dead):
            following.moved(book, item, course, item.go(course, [course.failed], book.now))
        else:
            remark = item.remark(book.now, by=item.by, why=item.why, how=item.how)
            following.moved(book, item, course, [remark])
        book.changed_items[item.item_id] = item
        return Entered(item.item_id, job_id, item.status, False)


class OmitStep(msgspec.Struct, gc=False):
    """The condition of a step is false: it is left out."""

    lease: rows.Lease

    def needs(self, wanted: needs.Needs) -> None:
        wanted.task(self.lease.key)
        wanted.whole_job(self.lease.job_id)

    def apply(self, book: ledger.Ledger) -> None:
        book.leased_task(self.lease.key, self.lease.attempt, self.lease.token)
        name = self.lease.task_id.removeprefix(courses.CONDITION)
        item = book.items.get(self.lease.job_id)
        task = book.task((self.lease.job_id, name))
        if task.state == states.BLOCKED:
            omit(book, item, task)


class FinishItem(msgspec.Struct, gc=False):
    """A step says that its item is over, in one of the statuses that it may end it in."""

    lease: rows.Lease
    status: str
    output: bytes
    reason: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.task(self.lease.key)
        wanted.whole_job(self.lease.job_id)

    def apply(self, book: ledger.Ledger) -> None:
        book.leased_task(self.lease.key, self.lease.attempt, self.lease.token)
        item = book.items.get(self.lease.job_id)
        course = None if item is None else book.course_of(item)
        step = None if course is None else course.steps.get(self.lease.task_id)
        if item is None or course is None or step is None or self.status not in step.ends:
            named = "nothing" if step is None else ", ".join(step.ends) or "nothing"
            raise errors.NotPossible(
                f"task {self.lease.task_id!r} cannot end its item as {self.status!r}: its step says `ends`: {named}"
            )
        task = book.reported_task(self.lease)
        why = consequences.event_data(reason=f"the item is {self.status}")
        for other in book.tasks_of(task.job_id):
            if other is not task and other.state not in states.TASK_ENDED:
                book.move(other, states.SKIPPED, events.TASK_SKIPPED, why)
                item.stand(other.task_id, states.BLOCKED, 0)  # nobody has said that the item can do without it
        consequences.complete(book, task, self.output)
        item.stand(task.task_id, course.codes[self.status], task.attempt)
        book.attribute(item, None, self.reason)


class MoveItem(msgspec.Struct, gc=False):
    """Move an item by hand: within a review, or as the pipeline says beside its course. At an end, its run is over."""

    item_id: str
    status: str
    actor: str | None = None
    reason: str | None = None
    payload: bytes | None = None
    called: str | None = None
    scopes: frozenset[str] | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.items.add(self.item_id)
        wanted.item_approvals.add(self.item_id)

    def apply(self, book: ledger.Ledger) -> Entered:
        item = book.item(self.item_id)
        course = book.course_of(item)
        code = allowed.move(course, item, self.status)
        review = allowed.leaves_review(course, item, code)
        if review is not None and (item.job_id or "", review) in book.tasks:
            person = passing.Person(self.actor, self.called, self.scopes)
            passing.leave(book, book.tasks[(item.job_id or "", review)], person)
        seen = allowed.review_at(course, item)
        asks = None if seen is None else book.tasks.get((item.job_id or "", seen.name))
        if self.payload is not None and asks is not None:
            passing.edit(book, asks, passing.Person(self.actor, self.called, self.scopes))
        book.attribute(item, self.actor, self.reason)
        if code != item.status:
            following.moved(book, item, course, item.go(course, [code], book.now))
        if not item.open and item.was_open:
            set_aside(book, item, f"the item is {self.status}", self.actor)
            item.give_up(course)
        if self.payload is not None:
            book.new_payloads[item.item_id] = self.payload
        book.changed_items[item.item_id] = item
        return Entered(item.item_id, item.job_id, item.status, False)


class MigrateItem(msgspec.Struct, gc=False):
    """Let an item that nothing works on go on in another version of its pipeline, in the status that it has."""

    item_id: str
    pipeline: str
    seen_run: int
    version: int
    actor: str | None = None

    def needs(self, wanted: needs.Needs) -> None:
        wanted.items.add(self.item_id)
        wanted.courses.add((self.pipeline, self.version))

    def apply(self, book: ledger.Ledger) -> Entered:
        item = book.item(self.item_id)
        course = book.courses[(item.pipeline, self.version)]
        _check_rests(book, item, self.seen_run)
        allowed.migrate(book.course_of(item), course, item)
        item.version = self.version
        item.open = item.status in course.open
        book.changed_items[item.item_id] = item
        return Entered(item.item_id, item.job_id, item.status, False)


def begin_run(
    book: ledger.Ledger,
    item: items.Item,
    submit: producing.Submit,
    begins_at: int,
    kept: Mapping[str, bytes | None] | None = None,
) -> None:
    """Enter the job of a run. Steps whose results are kept are completed with them, and nobody runs them."""
    omitted = {step for step in kept or {} if item.is_(courses.OMITTED, step)}
    item.begin_run(submit.job_id, begins_at)
    book.items[submit.job_id] = item
    submit.apply(book)
    for step, output in (kept or {}).items():
        task = book.tasks[(submit.job_id, step)]
        if step in omitted:
            omit(book, item, task)
        elif output is None:
            book.move(task, states.SKIPPED, events.TASK_SKIPPED, consequences.event_data(reason="kept as it was"))
            book.satisfy_dependants(task)
        else:
            consequences.complete(book, task, output, kept=True)
    if kept:
        book.settle(book.jobs[submit.job_id])  # there may be nothing left to be done


def omit(book: ledger.Ledger, item: items.Item | None, task: rows.Task) -> None:
    """Go on without a step, and say that its condition was false."""
    book.move(task, states.SKIPPED, events.TASK_SKIPPED, consequences.event_data(reason=items.OMITTED_SINCE))
    if item is not None:
        item.stand(task.task_id, courses.OMITTED, 0)
    book.satisfy_dependants(task)


def set_aside(book: ledger.Ledger, item: items.Item, reason: str, actor: str | None) -> None:
    """End the run that an item has, so that nothing comes of it any more: no work, no retry, no dead letter."""
    job = book.jobs.get(item.job_id or "")
    if job is None:
        return
    book.items.pop(job.job_id, None)
    failed = [task for task in book.tasks_of(job.job_id) if task.state == states.FAILED]
    if job.state == states.RUNNING or failed:
        if job.state != states.RUNNING:
            if job.state == states.COMPLETED:
                return  # what failed in it was optional
            book.reopen_job(job, {"skip": [task.task_id for task in failed], "actor": actor})
        told = consequences.event_data(reason=reason, actor=actor)
        for task in failed:
            book.move(task, states.SKIPPED, events.TASK_SKIPPED, told)
        consequences.cancel_open_tasks(book, job, told)
        book.end_job(job, states.CANCELLED, reason=reason, actor=actor)


def _choose_free(book: ledger.Ledger, submit: producing.Submit, item_id: str, run: int) -> None:
    """Somebody may have given the id that runs usually have to a job of theirs: nobody can choose the other one."""
    if submit.job_id in book.jobs:
        submit.job_id = f"{item_id}~{run}"


def _check_waits(book: ledger.Ledger, item: items.Item) -> None:
    course = book.course_of(item)
    if not any(item.is_(states.WAITING, review) for review in course.reviews):
        raise errors.ApprovalDecided(
            f"item {item.item_id!r} is {allowed.named(course, item.status)}: nobody is asked about it any more",
            itemId=item.item_id,
        )
    allowed.ask(course, item)


def _check_rests(book: ledger.Ledger, item: items.Item, seen_run: int) -> None:
    if item.run != seen_run:
        raise errors.NotPossible(
            f"item {item.item_id!r} is in run {item.run} now, not {seen_run}: look at it again", itemId=item.item_id
        )
    job = book.jobs.get(item.job_id or "")
    if job is not None and job.state == states.RUNNING:
        allowed.rest(item, [task.task_id for task in book.tasks_of(job.job_id) if task.state in allowed.WORKS])
