"""The first page: that something is running here, and how to talk to it."""

from __future__ import annotations

import base64
import hashlib
import html

from starlette.requests import Request
from starlette.responses import HTMLResponse

from ostinato import errors, views
from ostinato.api import calls, routing

routes = routing.Routes()

SHOWN = 20
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 3rem auto; padding: 0 1rem; }
pre { background: #f4f4f4; padding: 1rem; overflow-x: auto; }
td, th { text-align: left; padding: 0.1rem 2rem 0.1rem 0; }
"""
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'"
"""No script, nothing from elsewhere, and this one style."""
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Ostinato</title><style>{style}</style></head>
<body>
<h1>Ostinato</h1>
<p>This is the server of Ostinato, durable jobs of tasks. It speaks HTTP under <code>/v1</code>:
<a href="/v1/openapi.json">/v1/openapi.json</a> describes all of it; GraphQL is at <code>/graphql</code>, live
events are under <code>/v1/stream</code> and <code>/v1/events/stream</code>. <a href="/readyz">/readyz</a> says whether
it can work.</p>
{body}
</body>
</html>
"""
WITH_KEY = """<p>Requests need a key. Whoever runs this server makes it with <code>ostinato keys create</code>:</p>
<pre>curl -H "Authorization: Bearer $KEY" {address}/v1/jobs</pre>"""
WITHOUT_KEY = """<p>No key exists yet, so this machine, and it alone, may do everything:</p>
<pre>curl {address}/v1/jobs
curl -X POST {address}/v1/jobs -H "Content-Type: application/json" \\
  -d '{{"name": "hello", "tasks": [{{"taskId": "a", "name": "FUNCTION", "input": {{}}}}]}}'
curl -X POST {address}/v1/jobs/JOB/signals/NAME -H "Content-Type: application/json" -d '{{"payload": true}}'</pre>
<p><a href="/v1/jobs">Jobs</a>, <a href="/v1/dead-letters">dead letters</a>, <a href="/v1/functions">functions</a>,
<a href="/v1/workers">workers</a>.</p>
{jobs}"""


@routes("GET", "/", scope=routing.PUBLIC, problems=(503,), tag="server")
async def front_page(request: Request) -> HTMLResponse:
    """Say what this is. Somebody at the machine of a server without keys also sees the newest jobs."""
    address = html.escape(f"{request.url.scheme}://{request.url.netloc}")
    try:
        host = request.client.host if request.client else None
        principal = await calls.access_of(request).authenticate(None, host)
    except errors.Unauthenticated:
        body = WITH_KEY.format(address=address)
    else:
        client = await calls.tenants_of(request).client(principal.tenant)
        body = WITHOUT_KEY.format(address=address, jobs=_table(await client.jobs(most=SHOWN)))
    return HTMLResponse(PAGE.format(style=STYLE, body=body), headers={"Content-Security-Policy": POLICY})


def _table(jobs: list[views.JobView]) -> str:
    if not jobs:
        return "<p>There are no jobs yet.</p>"
    lines = [
        f'<tr><td><a href="/v1/jobs/{html.escape(job.job_id)}">{html.escape(job.job_id)}</a></td>'
        f"<td>{html.escape(job.name)}</td><td>{html.escape(job.state)}</td>"
        f"<td>{job.created_at:%Y-%m-%d %H:%M:%S}</td></tr>"
        for job in jobs
    ]
    return "<table><tr><th>job</th><th>name</th><th>state</th><th>submitted</th></tr>" + "\n".join(lines) + "</table>"
