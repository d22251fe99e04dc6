"""The outbox of a worker without a database: reports are gathered while a request is under way, and kept until the
server has taken them. Beside it a claim waits for tasks, as long as there is room for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

from ostinato import errors
from ostinato.core import codec, commands, ledger, rows
from ostinato.engine import committer
from ostinato.remote import link, wire

POLL_SECONDS = 20.0
STOP_SECONDS = 10.0
"""How long a stop waits for a server that does not take what is left to report."""
REFUSED = (errors.InvalidInput, errors.RequestRefused)

log = logging.getLogger("ostinato")


class Reporter:
    """Reports and claims for one worker. `on_unknown` is called when the server does not know the worker any more."""

    def __init__(self, target: link.Link, on_unknown: Callable[[], None]) -> None:
        self._link = target
        self._on_unknown = on_unknown
        self._reports: list[committer.Report] = []
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._room = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self.claimer: committer.Claimer | None = None
        self.worker_id = ""
        self.done: list[str] = []
        """Tokens of claims that were reported whole, which the server is still to be told."""
        self._nothing_ahead = False
        self.max_body_bytes = 1024 * 1024

    def start(self) -> None:
        self._loops = [asyncio.create_task(self._report()), asyncio.create_task(self._claim())]
        self._room.set()

    async def stop_claiming(self) -> None:
        """The server hands back what it claims for somebody who has hung up."""
        await _end(self._loops[1:])

    async def stop(self) -> None:
        """Report what was handed in, then stop."""
        if self._loops:
            quiet = asyncio.ensure_future(self._quiet.wait())
            await asyncio.wait([quiet, self._loops[0]], timeout=STOP_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            quiet.cancel()
            await _end(self._loops)

    # --- what the worker says ---------------------------------------------------------------------------------------

    def post(self, report: committer.Report) -> None:
        self._reports.append(report)
        self._quiet.clear()
        self._wake.set()
        self._room.set()

    def have_room(self) -> None:
        self._room.set()

    # --- reporting --------------------------------------------------------------------------------------------------

    async def _report(self) -> None:
        pauses = link.Pauses()
        while True:
            await self._wake.wait()
            await asyncio.sleep(0)  # let what is ready to finish join this batch
            self._wake.clear()
            reports, self._reports = self._reports, []
            settled: list[committer.Report] = []
            try:
                for path, batch in _batches(self.worker_id, reports, self.max_body_bytes):
                    settled += await self._send(path, batch)
                pauses.reset()
            except errors.OstinatoError as error:
                done = set(map(id, settled))
                self._reports = [report for report in reports if id(report) not in done] + self._reports
                await self._note(error, pauses, f"{len(self._reports)} reports were not taken")
                self._wake.set()
            if self.claimer is not None:
                self.claimer.reported(settled)
                self._room.set()  # what was not recorded took up room
            if not self._wake.is_set():
                self._quiet.set()

    async def _send(self, path: str, batch: list[tuple[committer.Report, wire.Held]]) -> list[committer.Report]:
        """The reports that the server has recorded, or rightly refused."""
        try:
            answer = await self._link.call(path, [body for _, body in batch], wire.Outcomes)
        except REFUSED as error:
            if len(batch) == 1:
                return self._refused(batch[0][0], error.code, error.message)
            return [settled for one in batch for settled in await self._send(path, [one])]
        settled: list[committer.Report] = []
        for (report, _), outcome in zip(batch, answer.outcomes, strict=True):
            if outcome.recorded:
                settled.append(report)
            elif outcome.code == errors.LeaseLost.code:
                log.info("%s was not recorded: %s", type(report).__name__, outcome.detail)
                settled.append(report)
            else:
                settled += self._refused(report, outcome.code or "", outcome.detail or "")
        return settled

    def _refused(self, report: committer.Report, code: str, detail: str) -> list[committer.Report]:
        """A report that cannot be recorded must not leave its task running for ever: the task fails, and says why."""
        log.error("%s was not recorded: %s", type(report).__name__, detail)
        if isinstance(report, commands.Fail) and not report.retryable:
            return [report]
        failure = commands.make_failure(code, f"the outcome could not be recorded: {detail}")
        self.post(commands.Fail(report.lease, failure, retryable=False))
        return []

    # --- claiming ---------------------------------------------------------------------------------------------------

    async def _claim(self) -> None:
        pauses = link.Pauses()
        while True:
            await self._room.wait()
            self._room.clear()
            claim = None if self.claimer is None else self.claimer.next_claim()
            if self.claimer is None or claim is None:
                continue
            if not claim.slots and self._nothing_ahead:
                self.done += claim.done
                continue  # until something can start at once, it is not worth asking again
            try:
                answer = await self._ask(claim)
            except errors.OstinatoError as error:
                self.claimer.claim_failed(claim)
                await self._note(error, pauses, "no tasks were claimed")
            except asyncio.CancelledError:
                self.claimer.claim_failed(claim)
                raise
            else:
                pauses.reset()
                self._nothing_ahead = not answer.leases
                claim.passed_over = answer.passed_over
                self.claimer.deliver([_lease(told) for told in answer.leases])
            self._room.set()

    async def _ask(self, claim: commands.Claim) -> wire.Claimed:
        # What is claimed ahead is not waited for: by the time that it came, there might be room for more.
        seconds = POLL_SECONDS if claim.slots else 0.0
        done, self.done = self.done, []
        body = wire.Claim(
            worker_id=self.worker_id,
            claim_id=claim.token,
            limit=claim.slots,
            wait_seconds=seconds,
            ahead={name: count for name, count in claim.ahead.items() if count > 0},
            idle=claim.idle,
            done=[*done, *claim.done],
        )
        try:
            return await self._link.call("/v1/work/claim", body, wire.Claimed, wait=seconds)
        except BaseException:
            self.done += done
            raise

    async def _note(self, error: errors.OstinatoError, pauses: link.Pauses, what: str) -> None:
        if isinstance(error, errors.WorkerNotFound):
            self._on_unknown()
        await pauses.after(error, what)


async def _end(loops: list[asyncio.Task[None]]) -> None:
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)


def _batches(
    worker_id: str, reports: list[committer.Report], most_bytes: int
) -> Iterator[tuple[str, list[tuple[committer.Report, wire.Held]]]]:
    """Reports of one kind go together, as many as a request may carry."""
    kinds: dict[str, list[tuple[committer.Report, wire.Held]]] = {}
    for report in reports:
        path, body = _body(worker_id, report)
        kinds.setdefault(path, []).append((report, body))
    for path, pairs in kinds.items():
        batch: list[tuple[committer.Report, wire.Held]] = []
        size = 0
        for pair in pairs:
            cost = _cost(pair[0])
            if batch and (size + cost > most_bytes or len(batch) >= wire.MOST_REPORTS):
                yield path, batch
                batch, size = [], 0
            batch.append(pair)
            size += cost
        yield path, batch


def _cost(report: committer.Report) -> int:
    """An upper bound of its bytes in a request."""
    match report:
        case commands.Complete():
            payload = len(report.output)
        case commands.Fail():
            payload = 6 * (len(report.failure.message) + len(report.failure.traceback or ""))
        case _:
            payload = 2048
    return payload + 1536


def _body(worker_id: str, report: committer.Report) -> tuple[str, wire.Held]:
    match report:
        case commands.Complete():
            return "/v1/work/complete", wire.Complete(**held(worker_id, report.lease), output=raw(report.output))
        case commands.Fail():
            failure = report.failure
            return "/v1/work/fail", wire.Fail(
                **held(worker_id, report.lease),
                error_type=failure.type[: wire.LONGEST_TYPE] or "Error",
                message=failure.message,
                traceback=failure.traceback,
                retryable=report.retryable,
                retry_after=report.delay,
            )
        case commands.Release():
            return "/v1/work/release", wire.Release(
                **held(worker_id, report.lease), reason=report.reason, reentered=report.lease.reentered
            )
        case commands.Suspend():
            return "/v1/work/suspend", wire.Suspend(
                **held(worker_id, report.lease),
                kind=cast("Any", report.kind),
                key=report.key,
                name=report.name or None,
                seconds=report.seconds,
                approval=report.approval,
                payload=None if report.approval is None else raw(report.payload),
            )
        case commands.FinishItem():
            return "/v1/work/finish", wire.Finish(
                **held(worker_id, report.lease),
                status=report.status,
                reason=report.reason and report.reason[: wire.LONGEST_REASON],
                output=raw(report.output),
            )
        case _:
            raise TypeError(f"{type(report).__name__} is no report")


def held(worker_id: str, lease: rows.Lease) -> dict[str, Any]:
    """What proves that a worker may speak of a task."""
    return {
        "worker_id": worker_id,
        "job_id": lease.job_id,
        "task_id": lease.task_id,
        "attempt": lease.attempt,
        "token": lease.token,
    }


def raw(payload: bytes) -> msgspec.Raw:
    """A payload that is JSON already."""
    return msgspec.Raw(payload)


def _lease(told: wire.Lease) -> rows.Lease:
    digest = told.input_digest
    options = bytes(told.options)
    return rows.Lease(
        told.job_id,
        told.task_id,
        told.attempt,
        told.token,
        told.name,
        bytes(told.input) if digest is None else ledger.BLOB_MARK + bytes.fromhex(digest),
        None if codec.decode(options) is None else options,
        told.dependencies,
        told.fresh,
        told.reentered,
        told.max_attempts,
        told.attempt_base,
        told.timeout,
        told.job_name,
        told.request_id,
        told.correlation_id,
        trace_parent=told.trace_parent,
    )
