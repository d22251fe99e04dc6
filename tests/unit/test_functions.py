"""Registering functions, the builder, and settings that are checked when they are made."""

import dataclasses
import functools
import time
from typing import Any
from unittest import mock

import msgspec
import pytest

from ostinato import Context, EngineOptions, Ostinato, Retry, TerminalError, errors
from ostinato.core import graph as core_graph


@pytest.fixture
def app(sqlite_url: str) -> Ostinato:
    return Ostinato(sqlite_url)


def test_a_function_takes_its_own_name_or_another(app: Ostinato) -> None:
    @app.function
    def first() -> None: ...

    @app.function("second")
    async def something() -> None: ...

    @app.function(timeout=5)
    def third() -> None: ...

    assert set(app.functions) == {"first", "second", "third"}
    assert app.functions["second"].is_async
    assert not app.functions["first"].is_async


def test_a_registered_function_is_still_a_function(app: Ostinato) -> None:
    @app.function
    def double(n: int) -> int:
        """Twice."""
        return n * 2

    assert double(4) == 8
    assert double.__doc__ == "Twice."


def test_a_function_may_have_two_names(app: Ostinato) -> None:
    @app.function("first", timeout=5)
    @app.function("second")
    async def something(ctx: Context, n: int) -> int:
        return n

    first, second = app.functions["first"], app.functions["second"]
    assert first.is_async
    assert first.bind("the context", {"n": 1}) == second.bind("the context", {"n": 1}) == {"ctx": "the context", "n": 1}
    assert (first.timeout, second.timeout) == (5, None)
    with pytest.raises(TerminalError, match="function 'first' needs the input 'n'"):
        first.bind("the context", {})


def test_two_functions_with_one_name_are_refused(app: Ostinato) -> None:
    app.function("f")(lambda: 1)
    with pytest.raises(errors.InvalidInput, match="already a function 'f'"):
        app.function("f")(lambda: 2)


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": "5"},
        {"queue": ""},
        {"queue": "a b"},
        {"queue": None},
        {"queue": 5},
        {"retry": 5},
        {"retry": {"maxAttempts": 5}},
    ],
)
def test_settings_of_functions_are_checked(app: Ostinato, settings: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput, match=next(iter(settings))):
        app.function("f", **settings)(lambda: 1)
    assert "f" not in app.functions


class Unsaid:
    """What it takes it says wrongly."""

    __signature__ = "(a, b)"

    def __call__(self) -> None: ...


@pytest.mark.parametrize("code", [5, None, "f", dict, Unsaid()])
def test_what_cannot_be_called_by_name_is_no_function(app: Ostinato, code: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="function 'f'"):
        app.function("f")(code)


@pytest.mark.parametrize("name", ["", "a\nb", 5, b"f", 0])
def test_odd_names_of_functions_are_refused(app: Ostinato, name: Any) -> None:
    with pytest.raises(errors.InvalidId):
        app.function(name)(lambda: 1)


def test_positional_only_parameters_are_refused(app: Ostinato) -> None:
    def f(a: int, /) -> None: ...

    with pytest.raises(errors.InvalidInput, match="positional-only"):
        app.function(f)


def test_input_arrives_by_name(app: Ostinato) -> None:
    @app.function
    def f(ctx: Any, a: int, b: int = 2) -> None: ...

    assert f.bind("the context", {"a": 1}) == {"ctx": "the context", "a": 1}


@pytest.mark.parametrize(
    ("given", "said"),
    [({}, "needs the input 'a'"), ({"a": 1, "c": 2}, "does not take the input 'c'"), ({"b": 1}, "needs the input 'a'")],
)
def test_input_that_does_not_fit_is_refused_for_good(app: Ostinato, given: dict[str, Any], said: str) -> None:
    @app.function
    def f(a: int, b: int = 2) -> None: ...

    with pytest.raises(TerminalError, match=said):
        f.bind(None, given)


@pytest.mark.parametrize("kind", [mock.Mock, mock.MagicMock, mock.AsyncMock])
def test_what_stands_for_a_function_in_a_test_can_be_registered(app: Ostinato, kind: Any) -> None:
    assert app.function("f")(kind()).takes_anything


def test_partials_of_coroutine_functions_are_async(app: Ostinato) -> None:
    async def f(a: int, b: int) -> None: ...

    assert app.function("f")(functools.partial(f, a=1)).is_async


@pytest.mark.parametrize(
    "url",
    ["", "x", "mysql://x", "sqlite://", "sqlite:///", "sqlite:", "http://a", 5, b"sqlite:///x", "sqlite:///a\0b"],
)
def test_a_bad_url_is_refused_where_it_is_written(url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OSTINATO_URL", raising=False)
    with pytest.raises(errors.InvalidUrl, match="sqlite:///"):
        Ostinato(url)


@pytest.mark.parametrize(
    "settings", [{"options": {"concurrency": 1}}, {"options": {}}, {"encryption": "one:secret"}], ids=str
)
def test_settings_of_the_wrong_type_are_refused_where_they_are_written(settings: dict[str, Any]) -> None:
    (field,) = settings
    with pytest.raises(errors.InvalidInput, match=f"{field} must be ") as refused:
        Ostinato("sqlite:///x.db", **settings)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["sqlite:///shop.db?mode=ro", "sqlite:////tmp/shop.db?timeout=5"])
def test_parameters_of_a_file_are_refused_for_they_would_be_part_of_its_name(url: str) -> None:
    with pytest.raises(errors.InvalidUrl, match="takes no parameters"):
        Ostinato(url)


def test_a_database_in_memory_is_refused_for_it_would_not_last() -> None:
    with pytest.raises(errors.InvalidUrl, match="a file"):
        Ostinato("sqlite:///:memory:")


def test_a_bad_url_does_not_give_away_its_password() -> None:
    with pytest.raises(errors.InvalidUrl) as caught:
        Ostinato("mysql://me:secret@host/db")
    assert "secret" not in str(caught.value)


def test_the_url_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_URL", "sqlite:///from-environment.db")
    assert Ostinato().url == "sqlite:///from-environment.db"
    monkeypatch.delenv("OSTINATO_URL")
    assert Ostinato().url == "sqlite:///ostinato.db"


@pytest.mark.parametrize(
    "fields",
    [
        {"concurrency": 0},
        {"concurrency": 1.5},
        {"concurrency": "10"},
        {"concurrency": 2**63},
        {"concurrency": -(10**5000)},
        {"max_prefetch": 2**63},
        {"max_payload_bytes": 10**5000},
        {"clock": 5},
        {"lease_seconds": 0},
        {"lease_seconds": float("nan")},
        {"poll_seconds": -1},
        {"poll_seconds": "fast"},
        {"shutdown_seconds": -1},
        {"max_prefetch": -1},
        {"max_prefetch": "many"},
        {"max_payload_bytes": 0},
        {"spill_bytes": 0},
        {"max_tasks": 0},
        {"queues": ("a b",)},
        {"queues": "default"},
        {"queues": ()},
        {"queues": None},
        {"default_retry": None},
        {"default_retry": {"maxAttempts": 1}},
        {"lease_seconds": None},
        {"poll_seconds": None},
        {"prune_every_seconds": -1},
    ],
)
def test_engine_options_are_checked(fields: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        EngineOptions(**fields)


@pytest.mark.parametrize(
    "settings", [{"options": {"concurrency": 5}}, {"options": 5}, {"encryption": "a key"}], ids=str
)
def test_settings_of_an_application_are_of_their_kind(sqlite_url: str, settings: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput, match=f"{next(iter(settings))} must be"):
        Ostinato(sqlite_url, **settings)


def test_engine_options_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        EngineOptions().concurrency = 3  # type: ignore[misc]


def test_the_builder_makes_the_same_document_as_json(app: Ostinato) -> None:
    @app.function("scrape-store", queue="web")
    def scrape(storeId: str) -> None: ...

    graph = app.graph("store-report", request_id="req-789", idempotency_key="k", tags={"a": "b"})
    first = graph.task(scrape, storeId="store-123")
    graph.task(scrape, after=[first], storeId="store-456")
    graph.task(
        "color-tags",
        after=[first, "scrape-store-2"],
        task_id="tags",
        options={"on_dependency_failure": "run", "retry": Retry()},
    )
    assert graph.document() == {
        "name": "store-report",
        "requestId": "req-789",
        "idempotencyKey": "k",
        "tags": {"a": "b"},
        "tasks": [
            {
                "taskId": "scrape-store",
                "name": "scrape-store",
                "dependsOn": [],
                "input": {"storeId": "store-123"},
                "queue": "web",
            },
            {
                "taskId": "scrape-store-2",
                "name": "scrape-store",
                "dependsOn": ["scrape-store"],
                "input": {"storeId": "store-456"},
                "queue": "web",
            },
            {
                "taskId": "tags",
                "name": "color-tags",
                "dependsOn": ["scrape-store", "scrape-store-2"],
                "input": {},
                "onDependencyFailure": "run",
                "retry": Retry(),
            },
        ],
    }


def test_the_builder_knows_every_setting_of_jobs_and_tasks(app: Ostinato) -> None:
    """What JSON can say, code can say too, in snake case."""
    job_settings = {field.name for field in msgspec.structs.fields(core_graph.JobSpec)} - {"tasks", "name"}
    made = app.graph("x", **dict.fromkeys(job_settings)).document()
    assert made.keys() == {field.encode_name for field in msgspec.structs.fields(core_graph.JobSpec)}
    given = {"task_id", "name", "depends_on", "input"}
    options = {field.name for field in msgspec.structs.fields(core_graph.TaskSpec)} - given
    graph = app.graph("x")
    graph.task("f", options=dict.fromkeys(options))
    assert graph.document()["tasks"][0].keys() == {
        field.encode_name for field in msgspec.structs.fields(core_graph.TaskSpec)
    }


def test_the_builder_takes_one_task_to_wait_for_as_well_as_several(app: Ostinato) -> None:
    graph = app.graph("x")
    first = graph.task("f")
    graph.task("g", after=first)
    graph.task("h", after="g")
    assert [task["dependsOn"] for task in graph.document()["tasks"]] == [[], ["f"], ["g"]]
    for bad in ({"after": [5]}, {"after": 5}):
        with pytest.raises(errors.InvalidInput, match="after"):
            graph.task("f", **bad)
    with pytest.raises(errors.InvalidInput, match="function"):
        graph.task(5)  # type: ignore[arg-type]


def test_the_builder_finds_ids_for_many_tasks_of_one_function(app: Ostinato) -> None:
    """As long for each, however many there are."""
    graph = app.graph("x")
    graph.task("f", task_id="f-3")
    begun = time.process_time()
    ids = [graph.task("f").task_id for _ in range(20_000)]
    assert time.process_time() - begun < 5  # 0.1 s; if it looked at all others each time, 40 s
    assert ids[:3] == ["f", "f-2", "f-4"]
    assert len(set(ids)) == 20_000


def test_the_builder_gives_ids_that_nobody_has(app: Ostinato) -> None:
    graph = app.graph("x")
    graph.task("f", task_id="f-3")
    assert [graph.task("f").task_id for _ in range(3)] == ["f", "f-2", "f-4"]
    for bad in ("", "a b", 5, ["a"]):
        with pytest.raises(errors.InvalidId, match="task_id"):
            graph.task("f", task_id=bad)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidInput, match="options must be an object"):
        graph.task("f", options=5)  # type: ignore[arg-type]
    assert len(graph.document()["tasks"]) == 4


def test_the_builder_refuses_unknown_settings(app: Ostinato) -> None:
    with pytest.raises(errors.InvalidInput, match="colour"):
        app.graph("x", colour="red").document()
    with pytest.raises(errors.InvalidInput, match="colour"):
        app.graph("x").task("f", options={"colour": "red"})


def test_every_error_says_something_and_has_its_own_code() -> None:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.OstinatoError)]
    assert all((k.__doc__ or "").strip().endswith(".") for k in kinds)
    assert len({k.code for k in kinds}) == len(kinds)
