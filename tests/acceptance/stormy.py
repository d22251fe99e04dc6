"""A process that reports to gates and is killed while it does.

`python -m tests.acceptance.stormy URL FOLDER SHARE SEED`
What was acknowledged is noted in a file of the share, so that whoever comes after goes on with the rest: as a sender
does that reports at least once.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

from ostinato import EngineOptions, Ostinato, Retry

KEYS = int(os.environ.get("OSTINATO_STORM_KEYS", "100"))
MEMBERS = [f"m{number:02}" for number in range(21)]
SHARES = 3
AT_ONCE = 40
GATE: dict[str, Any] = {
    "name": "storm",
    "members": MEMBERS,
    "aggregate": {"total": {"how": "sum", "from": "n"}, "seen": {"how": "union", "from": "items"}},
    "trigger": [
        {
            "job": {
                "name": "next",
                "tasks": [
                    {
                        "taskId": "t",
                        "name": "collect",
                        "input": {
                            "key": "{% key %}",
                            "aggregate": "{% aggregate %}",
                            "ids": "{% correlationIds %}",
                            "members": "{% $count($keys(members)) %}",
                        },
                    }
                ],
            }
        }
    ],
}


class Arrival(NamedTuple):
    key: str
    member: str

    @property
    def number(self) -> int:
        return int(self.key.removeprefix("key-")) * 100 + MEMBERS.index(self.member)

    @property
    def data(self) -> dict[str, Any]:
        return {"n": self.number, "items": [self.number % 7, f"{self.key}/{self.member}"]}

    @property
    def correlation_id(self) -> str:
        return f"{self.key}-{self.number % 3}"


def expected(key: str) -> dict[str, Any]:
    """What the job of a key must be given, worked out without the engine."""
    arrivals = [Arrival(key, member) for member in MEMBERS]
    seen: list[Any] = []
    ids: list[str] = []
    for arrival in arrivals:
        seen += [item for item in arrival.data["items"] if item not in seen]
        ids += [arrival.correlation_id] * (arrival.correlation_id not in ids)
    return {
        "key": key,
        "aggregate": {"total": sum(arrival.number for arrival in arrivals), "seen": seen},
        "ids": ids,
        "members": len(MEMBERS),
    }


def keys() -> list[str]:
    return [f"key-{number}" for number in range(KEYS)]


def share_of(number: int) -> list[Arrival]:
    """Each arrival is in one share, and every third in the next one too, in an order that neither knows of the other.

    Keys come in windows, so that what is killed is in the middle of many gates that others report to as well.
    """
    draw = random.Random(number)
    found: list[Arrival] = []
    for index, (key, member) in enumerate(itertools.product(keys(), MEMBERS)):
        if index % SHARES == number or (index % 3 == 0 and (index + 1) % SHARES == number):
            found.append(Arrival(key, member))
    windows = [found[at : at + 400] for at in range(0, len(found), 400)]
    for window in windows:
        draw.shuffle(window)
    return [arrival for window in windows for arrival in window]


def acknowledged(folder: Path, share: int) -> list[tuple[Arrival, str, bool]]:
    """What a share was told: outcome, and whether this very report opened the gate."""
    path = folder / f"share-{share}"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(Arrival(key, member), outcome, opened == "True") for key, member, outcome, opened in lines]


def build(url: str) -> Ostinato:
    app = Ostinato(url, options=EngineOptions(lease_seconds=2.0, poll_seconds=0.1))

    @app.function(retry=Retry(max_attempts=50, base_delay=0.02, multiplier=1.0))
    async def collect(**given: Any) -> Any:
        return given

    return app


async def main(url: str, folder: Path, share: int, seed: int) -> None:
    told = {arrival for arrival, _, _ in acknowledged(folder, share)}
    todo = [arrival for arrival in share_of(share) if arrival not in told]
    draw = random.Random(seed)
    queue = [arrival for arrival in todo for _ in range(2 if draw.random() < 0.2 else 1)]
    queue += draw.sample(sorted(told), min(len(told), 20))  # whoever does not know what arrived, says it again
    out = os.open(folder / f"share-{share}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    async with build(url) as app:
        gate = app.gate("storm")
        left = iter(queue)

        async def report() -> None:
            for arrival in left:
                answer = await gate.arrive(
                    arrival.key, arrival.member, arrival.data, correlation_id=arrival.correlation_id
                )
                os.write(out, f"{arrival.key} {arrival.member} {answer.outcome} {answer.opened}\n".encode())

        await asyncio.gather(*[report() for _ in range(AT_ONCE)])
        (folder / f"done-{share}").touch()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
