"""`python -m bench.search`: how long saving and searching takes with so many saved results, text and vector apart."""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from bench.databases import BACKENDS, databases
from ostinato import EngineOptions, Ostinato
from ostinato.core import ranking, result_filters, words
from ostinato.results import Draft

AT_ONCE = 500
PLACES = [f"{name} {kind}" for name in ("Elm", "Oak", "Mill", "King", "Harbour", "Station", "Church", "Bridge")
          for kind in ("Street", "Road", "Square", "Lane")]  # fmt: skip
THINGS = (
    "water main",
    "gas pipe",
    "street lamp",
    "parked car",
    "delivery van",
    "garden fence",
    "traffic light",
    "tree",
)
EVENTS = ("burst", "was damaged", "caught fire", "leaks", "was reported broken", "blocks the way", "fell over")
DOMAINS = tuple(f"domain-{n}" for n in range(10))


def report(number: int, chance: random.Random) -> Draft:
    """A short report, with a number in it that no other has."""
    thing, event, place = (chance.choice(of) for of in (THINGS, EVENTS, PLACES))
    summary = f"A {thing} {event} near {chance.randint(1, 300)} {place}; reported by caller c{number} this morning"
    document = {"summary": summary, "severity": chance.randint(1, 5), "place": place}
    return Draft(job_id=f"job-{number}", document=document, domain=chance.choice(DOMAINS))


async def timed(count: int, work: Callable[[int], Awaitable[object]]) -> list[float]:
    taken: list[float] = []
    for number in range(count):
        start = time.perf_counter()
        await work(number)
        taken.append((time.perf_counter() - start) * 1000)
    return taken


def line(name: str, taken: Sequence[float]) -> None:
    p95 = statistics.quantiles(taken, n=20, method="inclusive")[-1]
    print(f"{name:<34}{statistics.median(taken):>10.1f}{p95:>10.1f}{max(taken):>10.1f}", flush=True)


async def measure(url: str, results: int, searches: int) -> None:
    chance = random.Random(7)
    async with Ostinato(url, options=EngineOptions(work=False, maintain=False)) as app:
        start = time.perf_counter()
        for first in range(0, results, AT_ONCE):
            await app.results.save_many([report(n, chance) for n in range(first, min(first + AT_ONCE, results))])
        took = time.perf_counter() - start
        settings = await app.engine.db.settings()
        print(f"\n{settings['database']} {settings['version']}, vectors: {settings['vector_search']}")
        print(f"saved {results:,} in batches of {AT_ONCE}: {results / took:,.0f} results/s")
        print(f"{'milliseconds':<34}{'p50':>10}{'p95':>10}{'max':>10}")
        line("save one", await timed(searches, lambda n: app.results.save_many([report(results + n, chance)])))
        asked = [f"{chance.choice(THINGS)} {chance.choice(EVENTS)} {chance.choice(PLACES)}" for _ in range(searches)]
        vectors = await app.embedder.embed(asked)
        store, where = app.engine.store, result_filters.ResultFilter()
        model = f"{app.embedder.name}/{app.embedder.dimensions}"

        async def by_vector(n: int) -> None:
            await store.search_vector("default", model, ranking.levels(vectors[n]) or [], where)

        async def by_words(n: int) -> None:
            await store.search_text("default", words.of_query(asked[n]), where)

        line("words, rare", await timed(searches, lambda n: store.search_text("default", [f"c{n * 7}"], where)))
        line("words, common", await timed(searches, by_words))
        line("vector", await timed(searches, by_vector))
        line("search", await timed(searches, lambda n: app.results.search(asked[n])))
        line("search in a domain", await timed(searches, lambda n: app.results.search(asked[n], domain="domain-3")))
        line("search by a field", await timed(searches, lambda n: app.results.search(asked[n], fields={"severity": 3})))
        line("list a page by a field", await timed(searches, lambda _: app.results.list(fields={"severity": 3})))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--results", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=40)
    parser.add_argument("--backend", choices=BACKENDS, help="only this one")
    parser.add_argument("--scratch", type=Path, default=Path.cwd(), help="where SQLite files go")
    options = parser.parse_args()
    for backend in [options.backend] if options.backend else BACKENDS:
        with databases(backend, options.scratch) as fresh, fresh() as url:
            asyncio.run(measure(url, options.results, options.searches))


if __name__ == "__main__":
    main()
