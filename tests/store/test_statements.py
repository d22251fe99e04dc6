"""What is written together is known by its order: a set of writes in another order would never be met."""

from __future__ import annotations

import pytest

from ostinato.core import ledger
from ostinato.store import statements, writes

ORDER = [name for name, _ in writes.of_ledger("default", ledger.Ledger("default", 0))]


def test_every_write_has_one_place() -> None:
    assert len(set(ORDER)) == len(ORDER)


@pytest.mark.parametrize("names", sorted(statements._SINGLES))  # pyright: ignore[reportPrivateUsage]
def test_what_a_single_task_writes_is_named_in_that_order(names: tuple[str, ...]) -> None:
    assert [name for name in ORDER if name in names] == list(names)
