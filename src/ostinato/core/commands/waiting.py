"""What wakes a waiting task: time, or a signal."""

from __future__ import annotations

import msgspec

from ostinato.core import events, ledger, needs, rows, states
from ostinato.core.commands import approving, consequences


class FireTimer(msgspec.Struct, gc=False):
    """A due time has come. Only the timer as it was read is fired: one that changed meanwhile is left alone."""

    timer: rows.Timer

    def needs(self, wanted: needs.Needs) -> None:
        timer = self.timer
        if timer.kind == "deadline":
            wanted.whole_job(timer.job_id)
        elif timer.kind == "approval":
            approving.want(wanted, (timer.job_id, timer.task_id))
        else:
            wanted.task((timer.job_id, timer.task_id))
            if timer.kind == "budget":
                wanted.fresh_budget = wanted.all_turns = True
        wanted.timers.add((timer.job_id, timer.task_id))

    def apply(self, book: ledger.Ledger) -> bool:
        timer = self.timer
        key = (timer.job_id, timer.task_id)
        if book.timers.get(key) != timer or timer.due_at is None or timer.due_at > book.now:
            return False
        if timer.kind == "approval":
            return approving.come_due(book, book.tasks[key], timer.key)
        del book.timers[key]
        if timer.kind == "deadline":
            job = book.jobs[timer.job_id]
            if job.state != states.RUNNING:
                book.drop_timer(key)
                return False
            consequences.cancel_open_tasks(book, job, consequences.event_data(reason="the deadline has passed"))
            book.end_job(job, states.TIMED_OUT)
        elif timer.kind in ("retry", "delay", "budget"):
            book.make_pending(book.tasks[key])
        elif timer.kind == "sleep":
            consequences.wake(book, book.tasks[key], timer.key, b"null")
        else:
            # Under a key of its attempt: a later attempt waits anew, and may find what this one waited for.
            task = book.tasks[key]
            consequences.wake(book, task, f"{timer.key}!{task.attempt}", b'{"timedOut":true}')
        return True


class SendSignal(msgspec.Struct, gc=False):
    """Give a payload to whoever waits for it in a job: the first waiting task, or the next one that asks."""

    job_id: str
    name: str
    signal_id: str
    payload: bytes
    actor: str | None = None
    depth: int = 0
    """How many rules and gates have led to it."""

    def needs(self, wanted: needs.Needs) -> None:
        wanted.job(self.job_id)
        wanted.waiters.add((self.job_id, self.name))
        wanted.sent_signals.add((self.job_id, self.name, self.signal_id))

    def apply(self, book: ledger.Ledger) -> bool:
        """True if a task was waiting for it. A signal id that was sent before changes nothing."""
        if (self.job_id, self.name, self.signal_id) in book.sent_signals:
            return False
        job = book.running_job(self.job_id)
        stored = book.payload(self.job_id, self.payload)
        data = consequences.event_data(
            name=self.name, signalId=self.signal_id, actor=self.actor, depth=self.depth or None
        )
        book.emit(job, events.SIGNAL_RECEIVED, data=data)
        signal = rows.Signal(self.job_id, self.name, self.signal_id, stored, seq=job.last_seq)
        book.keep_signal(signal)
        waiting = book.waiters.get((self.job_id, self.name))
        while waiting:
            timer = waiting.pop(0)
            key = (timer.job_id, timer.task_id)
            task = book.tasks.get(key)
            moved = key in book.dropped_timers or book.new_timers.get(key, timer) is not timer
            if task is not None and task.state == states.WAITING and not moved:
                signal.taken = True
                consequences.wake(book, task, timer.key, consequences.received(stored), self.name)
                return True
        return False
