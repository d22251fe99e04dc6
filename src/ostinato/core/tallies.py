"""Exact counts that any number of processes keep up without waiting for each other.

A transaction says by how much something has grown (`book.tally`), and that is added to rows of its own process, with
all else that it writes. Who reads sums over the processes. What there is to count is a topic, below; within it a key,
and for topics that go by time a bucket: the number of the hour or day since 1970 in UTC.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

HOUR: Final = 3_600
DAY: Final = 86_400


class Topic(NamedTuple):
    """Something that is counted. `seconds` is how wide its buckets are; 0 counts everything since ever in bucket 0."""

    name: str
    seconds: int = 0
    keep: int | None = None
    """For how many seconds a bucket is kept at least, where the tenant has a retention; None is for ever."""

    def bucket(self, at: int) -> int:
        """The bucket of a moment in microseconds."""
        return at // (self.seconds * 1_000_000) if self.seconds else 0

    def begins(self, bucket: int) -> int:
        """When a bucket begins, in microseconds."""
        return bucket * self.seconds * 1_000_000


USAGE: Final = Topic("usage", DAY, 750 * DAY)
"""Calls and what they cost, in millionths of the currency: of the tenant (key ``), `name:` of jobs, `function:`."""
TOKENS: Final = Topic("usage.tokens", DAY, 750 * DAY)
"""Tokens that went in (the count) and came out (the amount), under the same keys."""

ITEMS: Final = Topic("items")
"""Items of pipelines: under `pipeline/status` how many there are, by its code."""
ITEMS_RETRYING: Final = Topic("items.retrying")
"""Those that an attempt has failed for, and that are tried again at a time, by pipeline."""
ITEMS_ENDED: Final = Topic("items.ended", HOUR, 90 * DAY)
"""Those that were over, under `pipeline/status`."""
STEPS: Final = Topic("steps", HOUR, 35 * DAY)
"""Attempts at steps, and how many microseconds they took: under `pipeline/step/how it ended`."""
STEP_TIMES: Final = Topic("steps.times", HOUR, 35 * DAY)
"""How many attempts were completed in about so much time: under `pipeline/step/bin`."""
RESULTS: Final = Topic("results")
"""Saved results: how many there are."""

TOPICS: Final = (USAGE, TOKENS, ITEMS_ENDED, STEPS, STEP_TIMES)
"""Those that the pruner knows to remove buckets of."""

TallyKey = tuple[str, str, int]
"""(topic, key, bucket)"""


class Tally(msgspec.Struct, frozen=True, order=True, gc=False):
    """How much has come together, of all processes."""

    key: str
    bucket: int
    count: int
    amount: int


LAST_KEY: Final = "\U0010ffff"
"""After every key that begins like the text that this is appended to."""
