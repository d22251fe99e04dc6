"""The tags of definitions that nobody has told of, asked of an endpoint of the operator's.

It is called like every other address: what is not on the internet must be allowed, and no redirect is followed. It gets
`{"tenant", "stateMachineArn"}` and answers with the tags, as an object or as the list that AWS writes, or with 404.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from ostinato import errors, outgoing
from ostinato.core import codec, executions

SECONDS = 5.0
AT_ONCE = 10
"""Questions that are asked at the same time; others wait."""
UNKNOWN = 404


class Endpoint:
    def __init__(self, url: str, tenant: str, networks: tuple[str, ...]) -> None:
        self._url = url
        self._tenant = tenant
        self._calls = outgoing.Caller(outgoing.CallOptions(allow=networks))
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def tags_of(self, arn: str) -> dict[str, str] | None:
        """None if it knows none. An endpoint that cannot be asked is an error, which says why."""
        body = codec.encode({"tenant": self._tenant, "stateMachineArn": arn})
        async with self._turns:
            answer = await self._calls.post(self._url, body, timeout=SECONDS, any_status=True)
        if answer.status == UNKNOWN:
            return None
        if not 200 <= answer.status < 300:
            raise errors.CallFailed(f"the endpoint for tags answered {answer.status}", status=answer.status)
        found: Any = codec.parse(answer.body, "the answer of the endpoint for tags")
        if isinstance(found, dict):
            said = cast("dict[str, Any]", found)
            found = said.get("tags", said.get("Tags", said))
        return None if found is None else executions.read_tags(found, "tags of the endpoint")
