"""The rules of a tenant, ready to be asked which of them an event concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ostinato.core import codec, matching, patterns

SOURCE: Final = "ostinato"
"""What the engine's own events say of their source."""
DEPTH_TAG: Final = "ostinato.depth"
"""How many rules and gates lie between a job and whoever started it all."""


class Rule(NamedTuple):
    name: str
    version: int
    pattern: patterns.Pattern
    targets: list[Any]


class RuleBook:
    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._by_type: dict[str | None, list[Rule]] = {}
        own: set[str | None] = set()
        for rule in rules:
            sources, types = rule.pattern.exact("source"), rule.pattern.exact("detail-type")
            for kind in [None] if types is None else sorted(types):
                self._by_type.setdefault(kind, []).append(rule)
                if sources is None or SOURCE in sources:
                    own.add(kind)
        self.watched: frozenset[str] | None = (
            None if None in own else frozenset(kind for kind in own if kind is not None)
        )
        """Types of the engine's own events that some rule may be about; None stands for all."""

    def __bool__(self) -> bool:
        return bool(self._by_type)

    def matching(self, event: Mapping[str, Any]) -> list[Rule]:
        about = [*self._by_type.get(event.get("detail-type"), ()), *self._by_type.get(None, ())]
        nested = matching.nested(event) if about else event
        return [rule for rule in about if rule.pattern.fits(nested)]


NO_RULES: Final = RuleBook()


def compiled(definitions: Iterable[tuple[str, int, bytes]]) -> RuleBook:
    """From (name, version, document), as they were checked and stored."""
    rules: list[Rule] = []
    for name, version, document in definitions:
        said = codec.decode(document)
        if said.get("enabled", True):
            rules.append(Rule(name, version, patterns.compile(said["pattern"], saved=True), said["targets"]))
    return RuleBook(rules)
