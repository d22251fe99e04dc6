"""What OpenAPI cannot say about a request, made true of those that are meant to be taken."""

from __future__ import annotations

import uuid
from typing import Any

import schemathesis

FUNCTION = "print"
"""The one that a worker has registered: jobs with others are refused."""
PAGED = (
    "/v1/jobs",
    "/v1/dead-letters",
    "/v1/approvals",
    "/v1/executions",
    "/v1/results",
    "/v1/gates/{name}/keys",
    "/v1/pipelines/{name}/items",
)
GRAPHS = ("/v1/jobs", "/v1/plans", "/v1/jobs/{jobId}/tasks", "/v1/work/add-tasks")
RULE = {"pattern": {"source": ["shop"]}, "targets": [{"signal": {"jobId": "some-job", "name": "go"}}]}
DEFINITIONS = tuple(f"/v1/{kind}s/{{name}}" for kind in ("gate", "rule", "agent", "graph", "playbook", "pipeline"))
APPROVAL = {"title": "May I?", "quorum": 2, "approvers": ["ann", "bob"], "escalate": {"after": 60, "to": ["boss"]}}
PASSED = ("new", "to", "at", "done", "bad", "dead")
OUTPUT = {"type": "object", "properties": {"place": {"type": "string"}}}
SPOKEN: dict[str, Any] = {
    "/v1/gates/{name}": {"members": ["a", {"name": "b", "kind": "k"}], "aggregate": {"n": {"how": "sum"}}},
    "/v1/rules/{name}": RULE,
    "/v1/rules/check": RULE,
    "/v1/agents/{name}": {"kind": "function", "function": FUNCTION, "outputSchema": OUTPUT},
    "/v1/graphs/{name}": {"edges": [{"from": "category", "to": "severity"}]},
    "/v1/playbooks/{name}": {"domain": "incidents", "type": "ingestion", "agents": ["some-agents"]},
    "/v1/pipelines/{name}": {
        "statuses": [{"code": code, "name": name} for code, name in enumerate(PASSED, 1)],
        "course": [{"status": "new"}, {"step": "work", "function": FUNCTION, "statuses": ["to", "at", "done"]}],
        "failed": "bad",
        "deadLetter": "dead",
    },
    "/v1/pipelines/{name}/process": {"most": 3, "filter": {"held": True}},
    "/v1/pipelines/{name}/bulk": {"action": "restart", "filter": {"held": True}},
    "/v1/items/{itemId}/restart": {"at": "work"},
    "/v1/items/{itemId}/move": {"status": "new"},
    "/ingest": {"domain_id": "incidents", "data": {"text": "smoke"}},
    "/query": {"domain_id": "incidents", "data": None},
    "/v1/rules/match": {"source": "shop", "detail-type": "Sold"},
}
"""Bodies in languages of their own, such as patterns and expressions."""


def events(media_type: str) -> Any:
    """With texts that can be shown, as they must be; which ones cannot is more than a schema can say."""
    event = {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/shop", "type": "sold", "data": [1, None]}
    return [event] if "batch" in media_type else event


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if case.query and case.path in PAGED:
        case.query.pop("cursor", None)  # only what a page before gave
    if case.query and case.path == "/v1/pipelines/{name}/items":
        for name in ("status", "stuck", "retrying"):  # one of these and `held`, and a status that there is
            case.query.pop(name, None)
    if case.query and isinstance(case.query.get("field"), list):
        case.query["field"] = case.query["field"][:1]  # each key once
    if case.headers and case.path == "/v1/jobs":
        case.headers.pop("Idempotency-Key", None)  # it is for one job, and the same as in its body
    if case.method == "PUT" and case.path in DEFINITIONS:
        case.path_parameters["name"] = f"some-{case.path.split('/')[2]}"
    elif case.path.startswith("/v1/gates/{name}/{key}"):
        case.path_parameters["name"] = "no-gate"  # a gate that there is does not expect whoever is made up
    if case.method in ("PUT", "POST") and case.path in SPOKEN:
        case.body = SPOKEN[case.path]
    elif case.path == "/v1/events":
        case.body = events(case.media_type or "")
    elif isinstance(case.body, (dict, list)):
        case.body = mended(case.path, whole_numbers(case.body))


def mended(path: str, body: Any) -> Any:
    if isinstance(body, list):
        return [mended(path, one) for one in body]
    if path in GRAPHS:
        tasks = without_knots(body["tasks"], grows=path.endswith("tasks"))
        if path != "/v1/plans":  # who only asks may ask about any function
            tasks = [task | {"name": FUNCTION} for task in tasks]
        return body | {"tasks": tasks}
    if path.endswith("/arrivals"):
        return body | {"member": "a", "status": None, "data": {}}  # as the gate that is defined expects it
    if path.startswith("/enrich-"):
        return {"itemId": body["itemId"], "step" if path.endswith("step") else "at": "work"}
    if path == "/v1/work/suspend" and body.get("approval"):
        body = body | {"approval": APPROVAL}
    return body | {"waitSeconds": 0} if path == "/v1/work/claim" else body  # a request is waited for 10 seconds


def whole_numbers(value: Any) -> Any:
    """To JSON Schema 7.0 is an integer; who sends it means a float."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: whole_numbers(item) for name, item in value.items()}
    return [whole_numbers(item) for item in value] if isinstance(value, list) else value


def without_knots(tasks: list[dict[str, Any]], *, grows: bool) -> list[dict[str, Any]]:
    """No id twice, and dependencies on earlier tasks only: nothing unknown, and no circle. A job that grows has tasks
    already, so that those which are added to it get ids that nobody else has."""
    kept: dict[str, dict[str, Any]] = {}
    for task in tasks:
        known = [kept[up]["taskId"] for up in task.get("dependsOn", ()) if up in kept]
        task_id = str(uuid.uuid4()) if grows else task["taskId"]
        if task.get("approval"):  # its settings must fit each other
            task = task | {"external": False, "approval": APPROVAL}
        if task.get("compensates") and not known:  # it takes back what it depends on
            task = task | {"compensates": False}
        if task.get("external") or task.get("approval"):  # nobody runs it
            task = {name: value for name, value in task.items() if name not in ("delay", "retry", "timeout")}
        if not known:  # there is nothing that it could take back
            task = {name: value for name, value in task.items() if name != "compensates"}
        kept.setdefault(task["taskId"], task | {"taskId": task_id, "dependsOn": known})
    return list(kept.values())
