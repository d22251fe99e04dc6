"""A gate through anything that can happen to it, against a model that is too simple to be wrong, on both databases."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ostinato import EngineOptions, Ostinato, Retry, errors, testing

EXAMPLES = int(os.environ.get("OSTINATO_EXAMPLES", "40")) // 2
STEPS = 20
MEMBERS = ("a", "b", "c")
DEADLINE = 100
"""No sum of the times that pass comes to just this."""
TARGET = {
    "job": {
        "name": "{% 'next ' & key %}",
        "tasks": [
            {"taskId": "t", "name": "echo", "input": {"n": "{% aggregate.n %}", "count": "{% aggregate.count %}"}}
        ],
    }
}
COUNTER = itertools.count()


class Policy(msgspec.Struct, frozen=True):
    on_failure: str
    on_deadline: str
    late: str
    dynamic: bool

    @property
    def name(self) -> str:
        return f"{self.on_failure}-{self.on_deadline}-{self.late}-{'dynamic' if self.dynamic else 'set'}"

    @property
    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "members": "dynamic" if self.dynamic else list(MEMBERS),
            "onFailure": self.on_failure,
            "deadline": DEADLINE,
            "onDeadline": self.on_deadline,
            "late": self.late,
            "aggregate": {"n": {"how": "sum"}, "count": {"how": "count", "from": "n"}},
            "trigger": [TARGET],
        }


POLICIES = st.builds(
    Policy,
    st.sampled_from(["wait", "partial", "fail"]),
    st.sampled_from(["fail", "partial"]),
    st.sampled_from(["ignore", "refuse", "trigger"]),
    st.booleans(),
)


class Round:
    """What happens to a key until it is reset."""

    def __init__(self, members: tuple[str, ...], now: float) -> None:
        self.members = members
        self.state = "waiting"
        self.counted: dict[str, tuple[bool, int]] = {}
        self.opened_by: str | None = None
        self.late: list[str] = []
        self.due = now + DEADLINE

    @property
    def missing(self) -> list[str]:
        return [name for name in self.members if name not in self.counted]


class Model:
    """The gate as a dict that everybody writes to in turn."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.now = 0.0
        self.round: Round | None = None
        self.triggered: list[dict[str, int]] = []

    def arrive(self, member: str, success: bool, n: int) -> Any:
        if self.round is None:
            if self.policy.dynamic:
                return errors.GateNotFrozen
            if member not in MEMBERS:
                return errors.UnknownMember
            self.round = Round(MEMBERS, self.now)
        at = self.round
        if member not in at.members:
            return errors.UnknownMember
        if member in at.counted:
            return "duplicate", False
        if at.state != "waiting":
            return self._late(at, member, success, n)
        if success or self.policy.on_failure != "wait":
            at.counted[member] = (success, n)
        if not success and self.policy.on_failure == "fail":
            at.state = "failed"
            return "failed", False
        opened = not at.missing
        if opened:
            self._open(at, member)
        return ("arrived" if success else "failed"), opened

    def _late(self, at: Round, member: str, success: bool, n: int) -> Any:
        if self.policy.late == "trigger" and member not in at.late:
            self.triggered.append({"n": n, "count": 1} if success else {"n": 0, "count": 0})
        at.late.append(member)
        return errors.GateClosed if self.policy.late == "refuse" else ("late", False)

    def _open(self, at: Round, by: str | None) -> None:
        at.state, at.opened_by = "open", by
        values = [n for success, n in at.counted.values() if success]
        self.triggered.append({"n": sum(values), "count": len(values)})

    def open(self) -> Any:
        if self.round is None:
            return errors.GateKeyNotFound
        if self.round.state != "waiting":
            return errors.NotPossible
        missing = self.round.missing
        self._open(self.round, "ann")
        return missing

    def reset(self) -> Any:
        if self.round is None:
            return errors.GateKeyNotFound
        self.round = None
        return None

    def freeze(self, members: tuple[str, ...]) -> Any:
        if not self.policy.dynamic:
            return errors.InvalidInput
        if self.round is not None:
            return False if set(members) == set(self.round.members) else errors.GateFrozen
        self.round = Round(members, self.now)
        if not members:
            self._open(self.round, None)
        return True

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        at = self.round
        if at is not None and at.state == "waiting" and at.due <= self.now:
            if self.policy.on_deadline == "partial":
                self._open(at, "deadline")
            else:
                at.state = "expired"


def machine(kit: testing.Kit, run: Callable[[Any], Any]) -> type[RuleBasedStateMachine]:
    app = kit.app

    class Machine(RuleBasedStateMachine):
        @initialize(policy=POLICIES)
        def begin(self, policy: Policy) -> None:
            self.model = Model(policy)
            self.key = f"k{next(COUNTER)}"
            run(app.gates.define(policy.document))
            self.gate = app.gate(policy.name)

        @rule(
            member=st.sampled_from([*MEMBERS, *MEMBERS, "z"]),
            success=st.sampled_from([True, True, False]),
            n=st.integers(0, 9),
        )
        def arrive(self, member: str, success: bool, n: int) -> None:
            status = "success" if success else "error"
            answer = self._do(self.gate.arrive(self.key, member, {"n": n}, status=status))
            got = answer if isinstance(answer, type) else (answer.outcome, answer.opened)
            assert got == self.model.arrive(member, success, n)

        @rule()
        def open(self) -> None:
            assert self._do(self.gate.open(self.key, reason="hurry", actor="ann")) == self.model.open()

        @rule()
        def reset(self) -> None:
            answer = self._do(self.gate.reset(self.key))
            assert (answer if isinstance(answer, type) else None) == self.model.reset()

        @rule(members=st.permutations(MEMBERS).map(tuple), size=st.integers(0, 3))
        def freeze(self, members: tuple[str, ...], size: int) -> None:
            chosen = members[:size]
            answer = self._do(self.gate.freeze(self.key, chosen))
            assert (answer if isinstance(answer, type) else answer.created) == self.model.freeze(chosen)

        @precondition(lambda self: self.model.round is not None)
        @rule(seconds=st.sampled_from([30, 45, 200]))
        def wait(self, seconds: float) -> None:
            run(kit.advance(seconds))
            self.model.pass_time(seconds)

        def _do(self, what: Any) -> Any:
            """The answer, or the type of the error."""
            try:
                answer = run(what)
            except errors.OstinatoError as error:
                answer = type(error)
            run(kit.run_until_idle())
            return answer

        @invariant()
        def stands_as_the_model_says(self) -> None:
            if not hasattr(self, "model"):
                return
            at = self.model.round
            if at is None:
                assert self._do(self.gate.status(self.key)) is errors.GateKeyNotFound
            else:
                seen = run(self.gate.status(self.key))
                assert (seen.status, seen.opened_by) == (at.state, at.opened_by)
                assert [arrival.member for arrival in seen.late] == at.late
                if self.model.policy.on_failure != "fail":
                    assert seen.missing == at.missing
            assert sorted(run(started(app, self.key)), key=str) == sorted(self.model.triggered, key=str)

    return Machine


async def started(app: Ostinato, key: str) -> list[Any]:
    found = await app.jobs(name=f"next {key}")
    return [(await (await app.job(view.job_id)).outputs())["t"] for view in found]


@pytest.fixture
def on_loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.timeout(300)
def test_a_gate_does_what_the_model_does(url: str, on_loop: asyncio.Runner) -> None:
    app = Ostinato(url, options=EngineOptions(prune_every_seconds=None, lease_seconds=60))

    @app.function(retry=Retry(max_attempts=1))
    async def echo(**given: Any) -> Any:
        return given

    opening = testing.open(app)
    kit = on_loop.run(opening.__aenter__())
    try:
        run_state_machine_as_test(
            machine(kit, on_loop.run),
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        on_loop.run(kit.audit())
    finally:
        on_loop.run(opening.__aexit__(None, None, None))
