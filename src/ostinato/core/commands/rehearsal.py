"""Carrying out a command on copies, to see what it would do."""

from __future__ import annotations

import copy

from ostinato.core import ledger


def rehearse(book: ledger.Ledger, job_id: str) -> ledger.Ledger:
    """A ledger with copies of a job that was loaded whole: what is done to it is done to nobody and never written."""
    stage = ledger.Ledger(book.tenant, book.now, spill_bytes=book.spill_bytes)
    stage.jobs = {job_id: copy.copy(book.job(job_id))}
    stage.tasks = {key: copy.copy(task) for key, task in book.tasks.items() if key[0] == job_id}
    stage.dependants = book.dependants  # what depends on what does not change by commands that are rehearsed
    stage.dependencies = book.dependencies
    stage.gate_jobs = book.gate_jobs
    stage.approvals = {
        key: {name: copy.copy(row) for name, row in known.items()}
        for key, known in book.approvals.items()
        if key[0] == job_id
    }
    return stage
