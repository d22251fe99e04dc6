"""The databases of the engine's tests."""

from tests.engine.conftest import postgres_url, shared_postgres_url

__all__ = ["postgres_url", "shared_postgres_url"]
