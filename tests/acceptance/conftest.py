"""Acceptance begins with nothing: what is started on a database makes its schema."""

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(f"empty_{request.param}_url")
