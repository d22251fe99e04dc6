"""Random pipelines, and a model of their items that is too simple to be wrong."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

MOST_ATTEMPTS = 2
DELAY = 60
"""Of every retry, in seconds."""
OUTCOMES = ("ok", "ok", "ok", "ok", "retry", "terminal", "end")


@st.composite
def pipelines(draw: st.DrawFn) -> dict[str, Any]:
    """Statuses, steps, groups, optional steps and reviews, in any order after the status that items are entered in."""
    builder = _Builder(draw)
    course = [builder.status()]
    for kind in draw(
        st.lists(st.sampled_from(["status", "step", "step", "together", "review"]), min_size=1, max_size=5)
    ):
        course.append(getattr(builder, kind)())
    if not builder.places:
        course.append(builder.step())
    if "review" in course[-1] or course[-1].get("together", course)[-1].get("optional"):
        course.append(builder.status())
    for name in ("failed", "dead", "rejected", "gone"):
        builder.add(name)
    return {
        "name": "p",
        "statuses": builder.statuses,
        "course": course,
        "failed": "failed",
        "deadLetter": "dead",
    }


class _Builder:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.statuses: list[dict[str, Any]] = []
        self.passed: list[str] = []
        self.places = 0

    def add(self, name: str) -> str:
        self.statuses.append({"code": 10 * (1 + len(self.statuses)), "name": name})
        return name

    def status(self) -> dict[str, Any]:
        self.passed.append(self.add(f"at{len(self.statuses)}"))
        return {"status": self.passed[-1]}

    def step(self) -> dict[str, Any]:
        self.places += 1
        name = f"s{self.places}"
        made: dict[str, Any] = {
            "step": name,
            "function": f"work{self.places}",
            "statuses": [self.add(f"to_{name}"), self.add(f"{name}-ing"), self.add(f"{name}-ed")],
            "retry": {"maxAttempts": MOST_ATTEMPTS, "baseDelay": DELAY, "multiplier": 1},
            "ends": ["gone"],
        }
        if self.draw(st.booleans()):
            made["undo"] = "undo"
        return made | {"optional": True} if self.draw(st.integers(0, 3)) == 0 else made

    def together(self) -> dict[str, Any]:
        steps = [self.step() | {"ends": []} for _ in range(self.draw(st.integers(2, 3)))]  # or the order would count
        return {"together": steps}

    def review(self) -> dict[str, Any]:
        self.places += 1
        name = f"r{self.places}"
        return {
            "review": name,
            "waiting": self.add(f"wait_{name}"),
            "taken": self.add(f"seen_{name}"),
            "reject": "rejected",
            "again": {"again": self.draw(st.sampled_from(self.passed))},
        }


class Place:
    """A step or a review of the model."""

    def __init__(self, kind: str, name: str, group: int, optional: bool) -> None:
        self.kind, self.name, self.group, self.optional = kind, name, group, optional
        self.forget()

    def forget(self) -> None:
        self.how = "blocked"
        self.tries = 0

    @property
    def done(self) -> bool:
        return self.how in ("ok", "skipped") or (self.optional and self.how in ("terminal", "exhausted"))


class Model:
    """One item: each place of its course is done, under way, or given up; the first not done tells where it is."""

    def __init__(self, document: dict[str, Any], plan: dict[str, list[str]]) -> None:
        self.document = document
        self.plan = {name: [*outcomes] for name, outcomes in plan.items()}
        self.calls: dict[str, int] = {}
        self.undone: list[str] = []
        self.over: str | None = None
        self.course: list[Place | str] = []
        for group, entry in enumerate(document["course"]):
            if "status" in entry:
                self.course.append(entry["status"])
            elif "review" in entry:
                self.course.append(Place("review", entry["review"], group, False))
            else:
                for one in entry.get("together", [entry]):
                    self.course.append(Place("step", one["step"], group, one.get("optional", False)))
        self.run()

    @property
    def places(self) -> list[Place]:
        return [place for place in self.course if isinstance(place, Place)]

    def entry(self, name: str) -> dict[str, Any]:
        found = [one for entry in self.document["course"] for one in entry.get("together", [entry])]
        return next(one for one in found if name in (one.get("step"), one.get("review")))

    # --- what happens ----------------------------------------------------------------------------------------

    def run(self, due: bool = False) -> None:
        """Everything that can be done now; with `due`, also what waits for its next attempt."""
        for place in self.places:
            if self.over is not None:
                return
            if any(not other.done for other in self.places if other.group < place.group):
                return
            if place.kind == "review":
                place.how = "asked" if place.how == "blocked" else place.how
            elif place.how == "blocked" or (due and place.how == "retrying"):
                self._try(place)

    def _try(self, place: Place) -> None:
        self.calls[place.name] = self.calls.get(place.name, 0) + 1
        place.tries += 1
        left = self.plan.get(place.name, [])
        outcome = left.pop(0) if left else "ok"
        if outcome == "end" and not self.entry(place.name)["ends"]:
            outcome = "terminal"
        if outcome == "end":
            self.over = "gone"
        if outcome == "retry":
            outcome = "exhausted" if place.tries == MOST_ATTEMPTS else "retrying"
        place.how = outcome

    def approve(self) -> None:
        self.asked().how = "ok"
        self.run()

    def reject(self) -> None:
        self.asked().how = "rejected"
        self.over = "rejected"
        self.undone += self._undo()

    def asked(self) -> Place:
        return next(place for place in self.places if place.how == "asked")

    def _undo(self) -> list[str]:
        undone = [place for place in self.places[::-1] if place.how == "ok" and "undo" in self.entry(place.name)]
        for place in undone:
            place.how = "undone"
        return [place.name for place in undone]

    def skip(self, name: str) -> None:
        place = next(place for place in self.places if place.name == name)
        place.how = "skipped"
        self.run()

    def cancel(self) -> None:
        if self.over is None and not self.stuck:
            self.over = "failed"

    def roll_back(self) -> None:
        over = "dead" if self.status == "dead" else "failed"
        self.undone += self._undo()
        self.over = over

    # --- beginning again ---------------------------------------------------------------------------------------

    def begins_at(self, name: str) -> int:
        return next(i for i, one in enumerate(self.course) if name == (one if isinstance(one, str) else one.name))

    def may_restart(self, name: str) -> bool:
        """Everything before is done, or has ended the item."""
        return all(place.done or place.how == "end" for place in self._before(name) if not place.optional)

    def is_ahead(self, name: str) -> bool:
        at = next((index for index, one in enumerate(self.course) if isinstance(one, Place) and not one.done), 0)
        return self.begins_at(name) > at

    def _before(self, name: str) -> list[Place]:
        index = self.begins_at(name)
        at = self.course[index]
        found = [one for one in self.course[:index] if isinstance(one, Place)]
        return found if isinstance(at, str) else [one for one in found if one.group != at.group]

    def restart(self, name: str) -> None:
        at = self.course[self.begins_at(name)]
        before = self._before(name)
        for place in self.places:
            beside = isinstance(at, Place) and place.group == at.group and place is not at
            if place in before:
                place.how = "ok" if place.how in ("ok", "end") else "skipped"
            elif beside and place.how in ("ok", "skipped", *(("terminal", "exhausted") if place.optional else ())):
                place.how = "ok" if place.how == "ok" else "skipped"
            else:
                place.forget()
        self.over = None
        self.run()

    # --- what is seen ------------------------------------------------------------------------------------------

    @property
    def stuck(self) -> bool:
        """Nothing more happens by itself, and nobody is asked."""
        return all(place.how not in ("retrying", "asked") for place in self.places)

    @property
    def status(self) -> str:
        if self.over is not None:
            return self.over
        at = ""
        for one in self.course:
            if isinstance(one, str):
                at = one
            elif not one.done:
                return self._status_at(one)
            else:
                at = self._left(one)
        return at

    def _left(self, place: Place) -> str:
        """The last status of a place that was passed."""
        if place.kind == "review":
            return self.entry(place.name)["waiting"]
        statuses = self.entry(place.name)["statuses"]
        skipped = statuses[0] if place.optional else statuses[2]
        return {"ok": statuses[2], "skipped": skipped}.get(place.how, statuses[1])

    def _status_at(self, place: Place) -> str:
        if place.how == "asked":
            return self.entry(place.name)["waiting"]
        return {"terminal": "failed", "exhausted": "dead"}.get(place.how) or self.entry(place.name)["statuses"][0]
