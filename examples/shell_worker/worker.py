"""A worker without Ostinato: any shell command becomes a function. Nothing but Python's own library is needed.

    SERVER=http://127.0.0.1:8080 KEY=ost_… python worker.py shout='tr a-z A-Z' count='wc -c'

The input of a task goes to the command as JSON; what it prints is the output, as JSON if it is some and else as text.
"""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

COMMANDS = dict(argument.split("=", 1) for argument in sys.argv[1:])
HEADERS = {"Authorization": f"Bearer {os.environ['KEY']}", "Content-Type": "application/json"}


def say(verb, **body):
    """One request, repeated until there is an answer. 409: the task is no longer ours, and there is nothing to say."""
    while True:
        request = urllib.request.Request(f"{os.environ['SERVER']}/v1/work/{verb}", json.dumps(body).encode(), HEADERS)
        try:
            return json.load(urllib.request.urlopen(request, timeout=60))
        except urllib.error.HTTPError as error:
            if error.code not in (429, 500, 502, 503):
                return json.load(error)
        except OSError:
            pass
        time.sleep(1)


def run(command, given):
    """From the input of a task to what is to be said of it."""
    done = subprocess.run(["sh", "-c", command], input=json.dumps(given), capture_output=True, text=True)
    if done.returncode:
        return "fail", {"errorType": "CommandFailed", "message": done.stderr[-2000:] or f"exit {done.returncode}"}
    try:
        return "complete", {"output": json.loads(done.stdout)}
    except ValueError:
        return "complete", {"output": done.stdout}


def beat(worker, seconds):
    """Beside the work: without this for `leaseSeconds`, others run what we have."""
    while True:
        time.sleep(seconds / 4)
        say("heartbeat", workerId=worker)


me = say("register", functions=[{"name": name} for name in COMMANDS])
worker = me["workerId"]
print("ready:", worker, flush=True)
threading.Thread(target=beat, args=(worker, me["leaseSeconds"]), daemon=True).start()
while True:
    claimed = say("claim", workerId=worker, waitSeconds=20)
    if claimed.get("code") == "worker_not_found":  # we were silent for too long
        say("register", workerId=worker, functions=[{"name": name} for name in COMMANDS])
    for lease in claimed.get("leases", ()):
        held = {name: lease[name] for name in ("jobId", "taskId", "attempt", "token")}
        verb, report = run(COMMANDS[lease["name"]], lease["input"])
        say(verb, workerId=worker, **held, **report)
