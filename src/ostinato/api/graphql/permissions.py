"""Which scope each query, mutation and subscription needs. One that is not listed here cannot be served."""

from __future__ import annotations

from typing import Final

from ostinato.core import scopes

NEEDED: Final[dict[str, dict[str, str]]] = {
    "Query": {
        "job": scopes.JOBS_READ,
        "jobs": scopes.JOBS_READ,
        "task": scopes.JOBS_READ,
        "events": scopes.JOBS_READ,
        "functions": scopes.JOBS_READ,
        "workers": scopes.JOBS_READ,
        "deadLetters": scopes.JOBS_READ,
        "deadLetterDepth": scopes.JOBS_READ,
        "executions": scopes.JOBS_READ,
        "execution": scopes.JOBS_READ,
        "executionCounts": scopes.JOBS_READ,
        "results": scopes.JOBS_READ,
        "result": scopes.JOBS_READ,
        "search": scopes.JOBS_READ,
        "plan": scopes.JOBS_READ,
        "gates": scopes.JOBS_READ,
        "gate": scopes.JOBS_READ,
        "gateStatus": scopes.JOBS_READ,
        "gateKeys": scopes.JOBS_READ,
        "rules": scopes.JOBS_READ,
        "rule": scopes.JOBS_READ,
    },
    "Mutation": {
        "submit": scopes.JOBS_WRITE,
        "submitMany": scopes.JOBS_WRITE,
        "addTasks": scopes.JOBS_WRITE,
        "resume": scopes.JOBS_WRITE,
        "cancel": scopes.JOBS_WRITE,
        "signal": scopes.JOBS_WRITE,
        "retry": scopes.JOBS_WRITE,
        "skip": scopes.JOBS_WRITE,
        "redrive": scopes.JOBS_WRITE,
        "publishStatus": scopes.JOBS_WRITE,
        "completeTask": scopes.JOBS_WRITE,
        "failTask": scopes.JOBS_WRITE,
        "defineGate": scopes.CONFIG_WRITE,
        "removeGate": scopes.CONFIG_WRITE,
        "arrive": scopes.JOBS_WRITE,
        "openGate": scopes.JOBS_WRITE,
        "resetGate": scopes.JOBS_WRITE,
        "freezeGate": scopes.JOBS_WRITE,
        "defineRule": scopes.CONFIG_WRITE,
        "removeRule": scopes.CONFIG_WRITE,
        "postEvents": scopes.JOBS_WRITE,
    },
    "Subscription": {
        "jobStatus": scopes.JOBS_READ,
        "events": scopes.JOBS_READ,
    },
}
