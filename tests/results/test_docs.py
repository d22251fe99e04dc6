"""What the page about saved results shows runs as it stands. (Its lines with `curl` run in the tests of the server.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/reference/results.md").read_text()


def test_the_example_and_the_commands_run_one_after_the_other(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (commands,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    lines = ["set -e", f'ostinato() {{ "{sys.executable}" -m ostinato.cli.main "$@"; }}']
    script = "\n".join([*lines, f"\"{sys.executable}\" - <<'END'\n{example}END", commands])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "report-1 {'vector': 1} A burst water main floods Elm Street" in done.stdout
    assert "report-2 {'summary': 'Two cars crashed downtown', 'severity': 3}" in done.stdout
    assert len(re.findall(r"A burst water main floods Elm Street$", done.stdout, re.MULTILINE)) == 3
    assert "Two cars crashed downtown" in done.stdout.splitlines()[-2]
