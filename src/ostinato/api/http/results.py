"""Saved results: list them, show one, and search them by word and by likeness."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query

from ostinato import results
from ostinato.api import models, routing
from ostinato.api.calls import Account, Client, Cursor, Limit
from ostinato.api.http.jobs import Moment
from ostinato.core import result_filters, scopes

routes = routing.Routes()

_FIELD = rf"^[^\x00=]{{1,{result_filters.LONGEST_KEY}}}=[^\x00]{{0,{result_filters.LONGEST_VALUE}}}$"
Field = Annotated[str, Query(pattern=_FIELD)]
ResultId = Annotated[str, Path(alias="resultId", pattern=models.ID_PATTERN, description="The id of the result.")]


async def wanted_results(
    domain: Annotated[
        str | None, Query(min_length=1, max_length=result_filters.LONGEST_KEY, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")
    ] = None,
    field: Annotated[
        list[Field] | None, Query(description="`key=value`, one or several.", max_length=result_filters.MOST_ASKED)
    ] = None,
    since: Moment = None,
    until: Moment = None,
) -> result_filters.ResultsWanted:
    """From the query to the arguments of `Results.list` and `Results.search`."""
    return {"domain": domain, "fields": result_filters.read_fields(field or ()), "since": since, "until": until}


Wanted = Annotated[result_filters.ResultsWanted, Depends(wanted_results)]


@routes("GET", "/v1/results", scope=scopes.JOBS_READ, problems=(409,), tag="results")
async def list_results(client: Client, wanted: Wanted, limit: Limit = 50, cursor: Cursor = None) -> models.ResultPage:
    """List saved results, newest first."""
    found = await client.results.list(cursor=cursor, most=limit, **wanted)
    return models.ResultPage(found, found.cursor)


@routes("GET", "/v1/results/search", scope=scopes.JOBS_READ, problems=(409,), tag="results")
async def search_results(
    client: Client,
    account: Account,
    wanted: Wanted,
    q: Annotated[str, Query(max_length=results.LONGEST_QUERY, description="What to look for, in any words.")],
    limit: Limit = 10,
) -> models.ResultHits:
    """Search saved results by word and by likeness, best first."""
    with account.long():
        return models.ResultHits(await client.results.search(q, most=limit, **wanted))


@routes("GET", "/v1/results/{resultId}", scope=scopes.JOBS_READ, problems=(404,), tag="results")
async def show_result(client: Client, result_id: ResultId) -> results.ResultView:
    """Show a saved result."""
    return await client.results.get(result_id)
