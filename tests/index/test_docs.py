"""What the reference on executions shows runs as it stands, on both databases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from ostinato.cli import main

PAGE = (Path(__file__).parents[2] / "docs/reference/executions.md").read_text()


def test_the_example_and_the_commands_run_one_after_the_other(url: str, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    commands = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    assert len(commands) == 3
    lines = ["set -e", f'ostinato() {{ "{sys.executable}" -m {main.__name__} "$@"; }}']
    script = "\n".join([*lines, f"\"{sys.executable}\" - <<'END'\n{example}END", *commands])
    environment = os.environ | {"OSTINATO_URL": url}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Indexed(indexed=3, skipped=[], refused=[])" in done.stdout
    assert "SUCCEEDED 2009-02-13 23:31:30+00:00 10.0" in done.stdout
    assert re.search(r"^2009-02-13 +1$", done.stdout, re.MULTILINE)
    assert "0 jobs and 2 events looked at: 0 mended, 0 events not indexed" in done.stdout
