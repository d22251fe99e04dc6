"""Settings as frozen values, checked when they are made."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ostinato import errors, functions
from ostinato.core import arguments, documents, executions, graph
from ostinato.core.retry import Retry

INDEX_TAGS = "OSTINATO_INDEX_TAGS"
INDEX_STAGES = "OSTINATO_INDEX_STAGES"
INDEX_TAGS_URL = "OSTINATO_INDEX_TAGS_URL"
INDEX_DEFAULT_TAGS = "OSTINATO_INDEX_DEFAULT_TAGS"


def _index_tags() -> Mapping[str, str]:
    """What the environment says, so that servers and the command line agree."""
    return _tags(INDEX_TAGS) or executions.REQUIRED_TAGS


def _tags(variable: str) -> Mapping[str, str] | None:
    text = os.environ.get(variable)
    if not text:
        return None
    parts = [part.strip().partition("=") for part in text.split(",")]
    if not all(key and separator for key, separator, _ in parts):
        raise errors.InvalidInput(f"${variable} must be KEY=VALUE, or several with commas", field=variable)
    return executions.read_tags({key: value for key, _, value in parts}, variable)


def _index_default_tags() -> Mapping[str, str] | None:
    return _tags(INDEX_DEFAULT_TAGS)


def _index_tags_url() -> str | None:
    return os.environ.get(INDEX_TAGS_URL) or None


def _index_stages() -> tuple[str, ...]:
    text = os.environ.get(INDEX_STAGES)
    return tuple(part.strip() for part in text.split(",")) if text else executions.STAGES


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How an engine works. Every time is in seconds."""

    concurrency: int = 10
    """Functions that run at the same time in one worker."""
    max_awaiting: int = 1_000
    """Functions of one worker that wait for the results of other jobs at the same time. They hold no slot."""
    max_prefetch: int = 10_000
    """Tasks that a worker may claim ahead of those it runs; it does so only for functions that have been quick, and for
    no more than 2,000 while there are other workers."""
    queues: tuple[str, ...] = ("default",)
    """The queues that this worker serves."""
    lease_seconds: float = 30.0
    """How long after its last heartbeat a worker counts as dead. What it was running then starts again elsewhere."""
    poll_seconds: float = 0.5
    """How often to look for work, due timers and ended jobs that nobody has told of."""
    wait_seconds: float = 0.0
    """How long a start waits for a database that gives no answer."""
    shutdown_seconds: float = 30.0
    """How long a stopping worker lets running functions go on before it hands them back."""
    default_retry: Retry = dataclasses.field(default_factory=Retry)
    """For functions that do not say."""
    max_payload_bytes: int = 16 * 1024 * 1024
    """The largest input, output, step result or signal."""
    spill_bytes: int = 32 * 1024
    """Payloads larger than this are kept in the blob table, out of the rows that change."""
    max_tasks: int = 1_000_000
    """The largest job."""
    prune_every_seconds: float | None = 3600.0
    """How often this process looks for what tenants have kept long enough; None never does. How long that is, is a
    setting of each tenant in the database: nothing is removed of one that has none."""
    dead_letter_alarm: int = 10
    """More dead letters of a tenant than this are a reason for alarm."""
    check_functions: bool = True
    """Refuse jobs with functions that no worker has ever registered."""
    work: bool = True
    """Run tasks in this process. A process that only submits and looks says False."""
    maintain: bool = True
    """Fire timers and take over from dead workers in this process."""
    index_tags: Mapping[str, str] = dataclasses.field(default_factory=_index_tags)
    """What the definition of an execution elsewhere must be tagged with, all of it, for the execution to be indexed."""
    index_stages: tuple[str, ...] = dataclasses.field(default_factory=_index_stages)
    """What is dropped from the end of its name: `my-agent-prod` is the agent `my-agent`."""
    index_tag_source: Callable[[str], Awaitable[Mapping[str, str] | None]] | None = None
    """Knows the tags of a definition by its ARN. It is asked once for each that nobody has given the tags of."""
    index_tags_url: str | None = dataclasses.field(default_factory=_index_tags_url)
    """The address of an endpoint that knows them, if there is no such function: for a server, which runs no program."""
    index_default_tags: Mapping[str, str] | None = dataclasses.field(default_factory=_index_default_tags)
    """The tags of a definition that nobody knows the tags of; None skips its executions."""
    webhooks: bool = False
    """Let rules and gates of this process call addresses on the internet."""
    webhook_networks: tuple[str, ...] = ()
    """Hosts, addresses and networks that they may call though these are private."""
    search_index_in_clear: bool = False
    """Index saved results though payloads are encrypted: their words, fields and vectors can then be read."""
    clock: Callable[[], int] | None = None
    """Microseconds since the epoch, for tests; otherwise the database's clock."""

    def __post_init__(self) -> None:
        for field, least, most in (
            ("concurrency", 1, graph.MOST_CONCURRENCY),
            ("max_payload_bytes", 1, arguments.LARGEST),
            ("spill_bytes", 1, arguments.LARGEST),
            ("max_tasks", 1, arguments.LARGEST),
            ("max_awaiting", 0, arguments.LARGEST),
            ("max_prefetch", 0, graph.MOST_CONCURRENCY),
            ("dead_letter_alarm", 0, arguments.LARGEST),
        ):
            value: object = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise errors.InvalidInput(
                    f"{field} must be a whole number from {least} to {most:,}, not {documents.short(value)}",
                    field=field,
                )
        for field in ("lease_seconds", "poll_seconds", "prune_every_seconds"):
            seconds: object = getattr(self, field)
            if seconds is None and field == "prune_every_seconds":
                continue
            if graph.check_seconds(seconds, field) <= 0:
                raise errors.InvalidInput(f"{field} must be more than 0", field=field)
        graph.check_seconds(self.wait_seconds, "wait_seconds")
        graph.check_seconds(self.shutdown_seconds, "shutdown_seconds")
        url: Any = self.index_tags_url
        if url is not None and not (isinstance(url, str) and url.lower().startswith(("https://", "http://"))):
            raise arguments.invalid("index_tags_url", "an address like https://tags.example.com", url)
        if self.index_default_tags is not None:
            executions.read_tags(self.index_default_tags, "index_default_tags")
        functions.check_retry(self.default_retry, "default_retry")
        clock: object = self.clock
        if clock is not None and not callable(clock):
            raise arguments.invalid("clock", "a function that says how late it is", clock)
        queues: Any = self.queues
        if not queues or not isinstance(queues, (tuple, list)):
            raise errors.InvalidInput(
                f'queues must be one or more names in a tuple, such as ("default",), not {documents.short(queues)}',
                field="queues",
            )
        for queue in self.queues:
            graph.check_id(queue, "queue")
