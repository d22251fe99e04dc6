"""Short ways to say what the tests of the index say often."""

from typing import Any

from ostinato.core import codec
from tests.engine import support as engine_support

AGENT = {"Type": "Agent", "Application": "StepFunctionsAgent"}
MACHINE = "arn:aws:states:us-west-2:123:stateMachine:my-agent-prod"


def arn(name: str = "abc123", machine: str = "my-agent-prod") -> str:
    return f"arn:aws:states:us-west-2:123:execution:{machine}:{name}"


def change(
    status: str = "RUNNING",
    *,
    name: str = "abc123",
    machine: str = "my-agent-prod",
    start: Any = 1234567890000,
    stop: Any = None,
    tags: Any = AGENT,
    **detail: Any,
) -> dict[str, Any]:
    """An event as EventBridge delivers it."""
    said = {
        "executionArn": arn(name, machine),
        "stateMachineArn": f"arn:aws:states:us-west-2:123:stateMachine:{machine}",
        "name": name,
        "status": status,
        "startDate": start,
        "stopDate": stop,
    }
    if tags is not None:
        said["tags"] = tags
    return {
        "source": "aws.states",
        "detail-type": "Step Functions Execution Status Change",
        "detail": said | detail,
    }


async def record(url: str, event: dict[str, Any], event_id: str, tenant: str = "default") -> None:
    """As the intake of events does."""
    await engine_support.sql(
        url,
        "INSERT INTO outside_event (tenant, source, event_id, received_at, data) VALUES ($1, $2, $3, 0, $4)",
        tenant,
        event["source"],
        event_id,
        codec.encode(event),
    )
