"""`ostinato approvals`."""

from __future__ import annotations

import os
import pwd
import re

from tests.acceptance.cli.support import Shell

ME = f"cli:{pwd.getpwuid(os.getuid()).pw_name}"


def test_people_decide_at_the_command_line(shell: Shell) -> None:
    asked = {"title": "Publish it?", "allowEdit": True, "approvers": [pwd.getpwuid(os.getuid()).pw_name]}
    document = {
        "name": "reviews",
        "tasks": [
            {"taskId": "ok", "name": "review", "input": {"text": "draft"}, "approval": asked},
            {"taskId": "no", "name": "review", "approval": {"title": "Delete it?"}},
            {"taskId": "more", "name": "review", "approval": {"title": "Enough?", "decisions": ["approve", "again"]}},
        ],
    }
    job_id = shell.submit(document)
    listed = shell.run("approvals", "ls", "--mine", "--job", job_id)
    assert re.search(
        rf"^{job_id} +ok +waiting +Publish it\? +0 of 1 +{pwd.getpwuid(os.getuid()).pw_name} +\S+", listed, re.M
    )
    version = shell.json("approvals", "show", job_id, "ok")["approval"]["version"]
    assert "look at it again" in shell.run("approvals", "approve", job_id, "ok", "--at-version", "1", code=1)
    edit = ("--payload", '{"text": "final"}', "--notes", "polished")
    done = shell.run("approvals", "approve", job_id, "ok", "--at-version", str(version), *edit)
    assert done == "the approval is approved, task ok is completed\n"
    shown = shell.run("approvals", "show", job_id, "ok")
    assert re.search(r"^approval +Publish it\?$", shown, re.M)
    assert re.search(rf"^{ME} +approve +.* edited +polished$", shown, re.M)
    assert shell.json("approvals", "decide", job_id, "more", "again")["state"] == "again"
    assert shell.json("approvals", "reject", job_id, "no", "--notes", "keep it")["taskState"] == "failed"
    found = shell.json("approvals", "ls", "--state", "any", "--job", job_id)["approvals"]
    assert {one["taskId"]: (one["state"], one["payload"]) for one in found} == {
        "ok": ("approve", {"text": "final"}),
        "no": ("reject", {}),
        "more": ("again", {}),
    }
    shell.run("approvals", "approve", job_id, "none", code=3)


def test_the_actor_is_the_real_user_whatever_the_environment_says(shell: Shell) -> None:
    """B8: and what was refused is in the log as refused."""
    asked = {"title": "Pay?", "approvers": ["ann"]}
    job_id = shell.submit({"name": "pay", "tasks": [{"taskId": "ok", "name": "review", "approval": asked}]})
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        shell.environment[name] = "ann"
    refused = shell.run("approvals", "approve", job_id, "ok", code=1)
    assert f"'{ME}' is not asked" in refused
    log = shell.json("audit", "--log", "--action", "approvals.decide")["entries"]
    assert [(one["actor"], one["outcome"], one["details"].get("error")) for one in log[:2]] == [
        (ME, "refused", "not_an_approver"),
        (ME, "refused", None),
    ]
    assert log[0]["refuses"] == log[1]["seq"]
    shell.run("approvals", "show", job_id, "ok")
    assert " refused " in shell.run("audit", "--log")
