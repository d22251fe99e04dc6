"""Saved results, as callers see them: save one for each job, list them, and search them by word and by likeness."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Unpack, cast

import msgspec
import uuid_utils

from ostinato import embedding, errors, secrets
from ostinato.core import arguments, codec, documents, filters, graph, moments, ranking, result_filters, words
from ostinato.store import results, store

LONGEST_QUERY = 2_000
LONGEST_TEXT = 100_000
"""Characters of the text of a result."""

log = logging.getLogger("ostinato")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A result that is to be saved. What is not given is made of the document."""

    job_id: str
    document: Any
    domain: str = "default"
    kind: str = ""
    text: str | None = None
    """What it is found by; else all texts in the document."""
    fields: Mapping[str, Any] | None = None
    """What it can be filtered by; else the top-level fields of the document."""


class SavedResult(msgspec.Struct, frozen=True, rename="camel"):
    """A result that is there now; `created` is false if the job had saved it before."""

    result_id: str
    job_id: str
    created_at: datetime.datetime
    created: bool


class ResultView(msgspec.Struct, frozen=True, rename="camel"):
    result_id: str
    job_id: str
    domain: str
    kind: str
    created_at: datetime.datetime
    text: str
    document: Any


class Hit(msgspec.Struct, frozen=True, rename="camel"):
    """A result that a search has found. `ranks` are its places among those found by `text` and by `vector`, from 1."""

    result_id: str
    job_id: str
    domain: str
    kind: str
    created_at: datetime.datetime
    score: float
    ranks: dict[str, int]
    snippet: str
    document: Any


Hits = list[Hit]
SavedResults = list[SavedResult]


class Home(Protocol):
    """An engine, or what is like one."""

    tenant: str
    store: store.Store
    max_payload_bytes: int


class Results:
    """The saved results of one tenant."""

    def __init__(self, home: Callable[[], Home], embedder: embedding.Embedder) -> None:
        self._home = home
        self.embedder = embedder

    async def save(self, job_id: str, document: Any, **given: Any) -> SavedResult:
        """Save the result of a job. A job has one: saving it again changes nothing, and says where it is."""
        return (await self.save_many([Draft(job_id=job_id, document=document, **given)]))[0]

    async def save_many(self, drafts: Sequence[Draft]) -> SavedResults:
        """Save the results of different jobs, hundreds in one transaction. All are checked before any is saved."""
        home = self._home()
        checked = [_checked(draft, home.max_payload_bytes) for draft in drafts]
        if home.store.results_indexed:
            vectors = await self.embedder.embed([item.text for item in checked])
            checked = [_indexed(item, self.embedder.name, v) for item, v in zip(checked, vectors, strict=True)]
        saved = await home.store.save_results(home.tenant, checked)
        return [SavedResult(s.result_id, s.job_id, moments.moment(s.created_at), s.created) for s in saved]

    async def get(self, result_id: str) -> ResultView:
        home = self._home()
        return _view(await home.store.result(home.tenant, graph.check_id(result_id, "resultId")))

    async def list(
        self, *, cursor: str | None = None, most: int = 50, **wanted: Unpack[result_filters.ResultsWanted]
    ) -> filters.Page[ResultView]:
        """Results, newest first, by any of the filters; `cursor` is that of the page before."""
        home = self._home()
        found = await home.store.results(home.tenant, result_filters.result_filter(**wanted), cursor=cursor, most=most)
        return filters.Page([_view(item) for item in found], found.cursor)

    async def search(self, q: str, *, most: int = 10, **wanted: Unpack[result_filters.ResultsWanted]) -> Hits:
        """What is best by words and by likeness together. `q` is what somebody typed: it has no syntax."""
        if not isinstance(q, str):  # pyright: ignore[reportUnnecessaryIsInstance] - what nobody can type is looked over
            raise arguments.invalid("q", "a text", q)
        if len(q) > LONGEST_QUERY:
            raise errors.InvalidInput(f"q has {len(q):,} characters: at most {LONGEST_QUERY:,} are read", field="q")
        home = self._home()
        asked = words.of_query(q)
        question = results.Question(asked)
        if asked and home.store.results_indexed:
            question = await self._question(q, asked)
        where = result_filters.result_filter(**wanted)
        found = await home.store.search_results(home.tenant, question, where, most=most)
        return [_hit(item, asked) for item in found]

    async def delete(self, result_id: str) -> bool:
        """Remove a result; False if there is none."""
        home = self._home()
        return await home.store.delete_result(home.tenant, graph.check_id(result_id, "resultId"))

    async def prune(self, before: datetime.datetime) -> int:
        """Remove all results that were saved before a time, a bounded batch at a time; how many that were."""
        home = self._home()
        end = filters.micros(before, "before") or 0
        removed = 0
        while count := await home.store.prune_results(home.tenant, end):
            removed += count
        return removed

    async def _question(self, q: str, asked: Sequence[str]) -> results.Question:
        """Words alone, if the embedder cannot be reached: some answer is better than none, and its ranks tell."""
        try:
            [vector] = await self.embedder.embed([q.encode(errors="replace").decode()])
        except errors.OstinatoError as error:
            log.warning("results are searched by words alone: %s", error.message)
            return results.Question(asked)
        return results.Question(asked, _model(self.embedder.name, vector), ranking.levels(vector), self.embedder.least)


def _checked(draft: Draft, limit: int) -> results.NewResult:
    if not isinstance(draft.text, (str, type(None))):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise arguments.invalid("text", "a text", draft.text)
    document = secrets.hide_in_document(draft.document)
    text = draft.text if draft.text is None else secrets.hide_in_document(draft.text)
    text = "\n".join(_texts(document)) if text is None else text
    fields = document if draft.fields is None else secrets.hide_in_document(draft.fields)
    return results.NewResult(
        result_id=str(uuid_utils.uuid7()),
        job_id=graph.check_id(draft.job_id, "jobId"),
        domain=documents.check_text(draft.domain, "domain", result_filters.LONGEST_KEY),
        kind=documents.check_text(draft.kind, "kind", result_filters.LONGEST_KEY) if draft.kind else "",
        document=codec.encode(document, "the document", limit),
        text=text[:LONGEST_TEXT],
        fields=result_filters.fields_of(fields),
        words=(),
        model="",
        vector=None,
    )


def _indexed(new: results.NewResult, model: str, vector: Sequence[float]) -> results.NewResult:
    return new._replace(words=words.of_text(new.text), model=_model(model, vector), vector=ranking.levels(vector))


def _model(name: str, vector: Sequence[float]) -> str:
    """Vectors of different lengths cannot be compared, whatever their embedder calls itself."""
    return f"{name}/{len(vector)}"


def _texts(document: Any) -> Iterator[str]:
    """All texts in a document, in order."""
    waiting: list[Any] = [document]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting += reversed(list(cast("Mapping[str, Any]", item).values()))
        elif isinstance(item, (list, tuple)):
            waiting += reversed(cast("Sequence[Any]", item))


def _view(found: results.Result) -> ResultView:
    return ResultView(
        result_id=found.result_id,
        job_id=found.job_id,
        domain=found.domain,
        kind=found.kind,
        created_at=moments.moment(found.created_at),
        text=found.text,
        document=codec.decode(found.document),
    )


def _hit(found: results.Found, asked: list[str]) -> Hit:
    view = _view(found.result)
    return Hit(
        result_id=view.result_id,
        job_id=view.job_id,
        domain=view.domain,
        kind=view.kind,
        created_at=view.created_at,
        score=round(found.score, 6),
        ranks=dict(found.ranks),
        snippet=words.snippet(view.text, asked),
        document=view.document,
    )
