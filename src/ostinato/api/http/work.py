"""Workers without a database, in any language: register, claim, report, checkpoint, stay alive."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Annotated

import msgspec
from starlette.requests import Request

from ostinato import app, errors
from ostinato.api import access, answers, calls, desk, routing
from ostinato.api.calls import Account, Client, Principal
from ostinato.core import commands, rows, scopes, usage
from ostinato.remote import wire

routes = routing.Routes()

CHECK_SECONDS = 2.0
"""How often a waiting claim looks whether its key still works."""
_many = msgspec.Meta(min_length=1, max_length=wire.MOST_REPORTS)
Completions = Annotated[list[wire.Complete], _many]
Failures = Annotated[list[wire.Fail], _many]
Releases = Annotated[list[wire.Release], _many]
Endings = Annotated[list[wire.Finish], _many]
Suspensions = Annotated[list[wire.Suspension], _many]


def _desk(request: Request) -> desk.Desk:
    return request.app.state.desk


# --- who works ---------------------------------------------------------------------------------------------------


@routes("POST", "/v1/work/register", scope=scopes.TASKS_WORK, status=201, tag="work")
async def register_worker(
    request: Request, client: Client, principal: Principal, body: wire.Register
) -> wire.Registered:
    """Enter a worker with its functions. The key that does so is the only one that can use it."""
    return await _desk(request).register(client, principal, body)


@routes("POST", "/v1/work/leave", scope=scopes.TASKS_WORK, problems=(404,), tag="work")
async def leave_work(request: Request, client: Client, principal: Principal, body: wire.Leave) -> wire.Left:
    """End a worker that has reported on or handed back all that it held."""
    return wire.Left(await _desk(request).leave(client, principal, body))


@routes("POST", "/v1/work/heartbeat", scope=scopes.TASKS_WORK, problems=(404,), tag="work")
async def beat_worker(request: Request, client: Client, principal: Principal, body: wire.Heartbeat) -> wire.Heard:
    """Stay alive, and hear which tasks are lost. 404 if the worker was declared dead: it holds nothing any more."""
    about = await _desk(request).worker(client, principal, body.worker_id)
    return wire.Heard(await _desk(request).beat(client, about, body))


# --- claiming ----------------------------------------------------------------------------------------------------


@routes("POST", "/v1/work/claim", scope=scopes.TASKS_WORK, problems=(404,), tag="work")
async def claim_tasks(request: Request, client: Client, principal: Principal, body: wire.Claim) -> wire.Claimed:
    """Take tasks, and wait for them if there are none."""
    answers.allow(request, body.wait_seconds)
    about = await _desk(request).worker(client, principal, body.worker_id)
    claim = desk.claim_of(about, body)
    polls = client.engine.polls
    with _desk(request).waiting(principal) if body.wait_seconds > 0 else contextlib.nullcontext():
        claiming = asyncio.create_task(polls.claim(claim, body.wait_seconds))
        try:
            interrupted = await _interrupted(claiming, request, principal)
        finally:
            claiming.cancel()
    if claiming.cancelled():
        return wire.Claimed([], False)
    leases = claiming.result()
    if interrupted:
        polls.hand_back(claim, leases)
        return wire.Claimed([], False)
    try:
        if leases:  # it may have been declared dead while it waited: what it holds would be lost, and count as tried
            await _desk(request).worker(client, principal, body.worker_id)
        return wire.Claimed(await desk.leases_of(client.engine, leases), claim.passed_over)
    except BaseException:
        polls.hand_back(claim, leases)
        raise


async def _interrupted(claiming: asyncio.Task[object], request: Request, principal: access.Principal) -> bool:
    """Wait for a claim, unless whoever waits goes away, may not wait any longer, or the server stops."""
    reasons = [
        asyncio.create_task(_gone(request)),
        asyncio.create_task(_desk(request).closing.wait()),
        asyncio.create_task(_revoked(calls.access_of(request), principal)),
    ]
    try:
        await asyncio.wait([claiming, *reasons], return_when=asyncio.FIRST_COMPLETED)
        interrupted = any(reason.done() for reason in reasons)
        if interrupted:
            claiming.cancel()
            await asyncio.wait([claiming])
        return interrupted
    finally:
        for reason in reasons:
            reason.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _revoked(gate: access.Access, principal: access.Principal) -> None:
    while await gate.still_valid(principal):
        await asyncio.sleep(CHECK_SECONDS)


# --- reporting ---------------------------------------------------------------------------------------------------


@routes("POST", "/v1/work/complete", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def complete_tasks(
    request: Request, client: Client, principal: Principal, body: wire.Complete | Completions
) -> wire.Outcome | wire.Outcomes:
    """Say that tasks are done: one, which may be refused with 409, or a list, which is answered one by one."""
    return await _report(_desk(request), client, principal, body)


@routes("POST", "/v1/work/fail", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def fail_tasks(
    request: Request, client: Client, principal: Principal, body: wire.Fail | Failures
) -> wire.Outcome | wire.Outcomes:
    """Say that attempts failed: one, which may be refused with 409, or a list, which is answered one by one."""
    return await _report(_desk(request), client, principal, body)


@routes("POST", "/v1/work/release", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def release_tasks(
    request: Request, client: Client, principal: Principal, body: wire.Release | Releases
) -> wire.Outcome | wire.Outcomes:
    """Hand tasks back: one, which may be refused with 409, or a list, which is answered one by one."""
    return await _report(_desk(request), client, principal, body)


@routes("POST", "/v1/work/suspend", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def suspend_tasks(
    request: Request, client: Client, principal: Principal, body: wire.Suspension | Suspensions
) -> wire.Outcome | wire.Outcomes:
    """Let tasks wait: one, which may be refused with 409, or a list, which is answered one by one."""
    return await _report(_desk(request), client, principal, body)


@routes("POST", "/v1/work/finish", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def finish_items(
    request: Request, client: Client, principal: Principal, body: wire.Finish | Endings
) -> wire.Outcome | wire.Outcomes:
    """Say that items of pipelines are over: one, which may be refused with 409, or a list, answered one by one."""
    return await _report(_desk(request), client, principal, body)


async def _report(
    counter: desk.Desk, client: app.Ostinato, who: access.Principal, body: wire.Held | Sequence[wire.Held]
) -> wire.Outcome | wire.Outcomes:
    reports = [body] if isinstance(body, wire.Held) else body
    for worker_id in {report.worker_id for report in reports}:
        await counter.worker(client, who, worker_id)
    outcomes = await asyncio.gather(*[_record(client, report) for report in reports], return_exceptions=True)
    told: list[wire.Outcome] = []
    for report, outcome in zip(reports, outcomes, strict=True):
        if outcome is None:
            told.append(wire.Outcome(report.job_id, report.task_id, True))
        elif isinstance(body, wire.Held) or not isinstance(outcome, (errors.NotPossible, errors.InvalidInput)):
            raise outcome
        else:
            told.append(wire.Outcome(report.job_id, report.task_id, False, outcome.code, outcome.message))
    return told[0] if isinstance(body, wire.Held) else wire.Outcomes(told)


async def _record(client: app.Ostinato, report: wire.Held) -> None:
    await client.engine.execute(await desk.command_of(client, report))


# --- what a running function needs -------------------------------------------------------------------------------


@routes("POST", "/v1/work/step", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def record_step(request: Request, client: Client, principal: Principal, body: wire.RecordStep) -> wire.Outcome:
    """Record a checkpoint of a task."""
    await _desk(request).worker(client, principal, body.worker_id)
    output = desk.payload(client, body.output, f"the result of step {body.key!r}")
    await client.engine.execute(commands.RecordStep(desk.lease_of(body), body.key, output))
    return wire.Outcome(body.job_id, body.task_id, True)


@routes("POST", "/v1/work/usage", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def record_usage(request: Request, client: Client, principal: Principal, body: wire.RecordUsage) -> wire.Outcome:
    """Record what an attempt has used up."""
    await _desk(request).worker(client, principal, body.worker_id)
    used = usage.read(body.cost, body.input_tokens, body.output_tokens, body.calls, body.model)
    await client.engine.execute(commands.RecordUsage(desk.lease_of(body), used, body.model, usage_id=body.usage_id))
    return wire.Outcome(body.job_id, body.task_id, True)


@routes("POST", "/v1/work/steps", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def read_steps(request: Request, client: Client, principal: Principal, body: wire.Held) -> wire.Steps:
    """Read the checkpoints of a task."""
    lease = await _holding(request, client, principal, body)
    found = await client.engine.read_steps(lease)
    return wire.Steps({key: msgspec.Raw(output) for key, output in found.items()})


@routes("POST", "/v1/work/outputs", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def read_outputs(request: Request, client: Client, principal: Principal, body: wire.ReadOutputs) -> wire.Outputs:
    """Read what the dependencies of a task made."""
    lease = await _holding(request, client, principal, body)
    return wire.Outputs(await client.engine.read_outputs(lease, body.task_ids))


@routes("POST", "/v1/work/payload", scope=scopes.TASKS_WORK, problems=(404, 409), tag="work")
async def read_payload(request: Request, client: Client, principal: Principal, body: wire.ReadPayload) -> wire.Payload:
    """Read a large payload of the job of a task."""
    lease = await _holding(request, client, principal, body)
    stored = b"\x00" + bytes.fromhex(body.digest)
    return wire.Payload(msgspec.Raw(await client.engine.read_payload(lease, stored)))


@routes("POST", "/v1/work/add-tasks", scope=scopes.TASKS_WORK, status=201, problems=(404, 409), tag="work")
async def add_tasks_from_task(
    request: Request, client: Client, principal: Principal, account: Account, body: wire.AddTasks
) -> wire.TasksAdded:
    """Let the job of a task grow."""
    account.charge_for(body.tasks)
    lease = await _holding(request, client, principal, body)
    specs, inputs = await client.engine.prepare_tasks(body.tasks)
    command = commands.AddTasks(body.job_id, specs, inputs, lease, body.key, most=client.options.max_tasks)
    return wire.TasksAdded(await client.engine.execute(command))


async def _holding(request: Request, client: app.Ostinato, who: access.Principal, held: wire.Held) -> rows.Lease:
    await _desk(request).worker(client, who, held.worker_id)
    return await desk.held_lease(client, held)
