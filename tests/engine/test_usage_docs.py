"""What the page about usage shows runs as it stands. (Its lines with `curl` run in the tests of the server.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/reference/usage.md").read_text()


def test_the_example_and_the_commands_run_one_after_the_other(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    commands = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL))
    lines = ["set -e", f'ostinato() {{ "{sys.executable}" -m ostinato.cli.main "$@"; }}']
    script = "\n".join([*lines, f"\"{sys.executable}\" - <<'END'\n{example}END", commands])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "The budget of 1.00 of its job is used up: 1.20 spent; raise it with" in done.stdout
    assert "UsageView(cost=1.6, calls=4, input_tokens=4800, output_tokens=320)" in done.stdout
    assert re.search(r"^total +1\.60 +4 +4,800 +320$", done.stdout, re.MULTILINE), done.stdout
    assert '"key": "summarize"' in done.stdout
    assert done.stdout.count("day: 1.60 of 10.00 spent\nmonth: 1.60 of 200.00 spent\n") == 2
    assert "job report-1: 1.60 of 2.50 spent" in done.stdout
