"""What the page about approvals shows runs as it stands. (Its lines with `curl` run in the tests of the server.)"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from ostinato.core import graph

PAGE = (Path(__file__).parents[2] / "docs/reference/approvals.md").read_text()


def test_the_document_is_a_job() -> None:
    (document,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    spec = graph.read_job(json.loads(document))
    assert spec.tasks[1].approval is not None
    assert graph.plan(spec).levels == [["write"], ["review"], ["publish"]]


def test_the_example_and_the_commands_run_one_after_the_other(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (commands,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    lines = ["set -e", f'ostinato() {{ "{sys.executable}" -m ostinato.cli.main "$@"; }}']
    script = "\n".join([*lines, f"\"{sys.executable}\" - <<'END'\n{example}END", commands])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "published by ann: Old bridge closed\nnot published: who cares\n" in said
    assert re.search(r"for somebody to decide on 'Delete the archive\?'; 0 of 2 have approved\.", said)
    assert re.search(r"^archive +review +waiting +Delete the archive\? +0 of 2 +anybody", said, re.MULTILINE)
    assert "one decides once" in said
    assert "1 of 2 have approved" in said.splitlines()[-1]
