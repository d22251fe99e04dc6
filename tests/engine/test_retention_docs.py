"""What the page about retention shows runs as it stands. (Its lines with `curl` run in the tests of the server.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ostinato.core import tallies
from ostinato.engine import retention

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/retention.md").read_text()


def test_b10_the_example_and_the_commands_run_one_after_the_other(tmp_path: Path) -> None:
    """B10: and the quickstart says it."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    commands = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL))
    lines = ["set -e", f'ostinato() {{ "{sys.executable}" -m ostinato.cli.main "$@"; }}']
    script = "\n".join([*lines, f"\"{sys.executable}\" - <<'END'\n{example}END", commands])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "RetentionView(jobs=2592000, keys=31536000)",
        "1 removed",
        "False True",
        "finished jobs: 30 days",
        "their idempotency keys: 365 days after that",
        "finished jobs: 90 days",
        "their idempotency keys: kept for ever",
    ]
    assert "Nothing is deleted unless you ask for it" in (ROOT / "docs/quickstart.md").read_text()


def test_the_periods_are_as_told() -> None:
    days = {topic.name: (topic.keep or 0) // tallies.DAY for topic in tallies.TOPICS}
    assert days == {"usage": 750, "usage.tokens": 750, "items.ended": 90, "steps": 35, "steps.times": 35}
    assert "of spending after 750 days, of pipelines after 35 and 90 days" in PAGE
    assert retention.BATCH_SECONDS == 0.008
