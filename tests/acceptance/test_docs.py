"""What the documents show runs as it stands, on both databases."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from ostinato.cli import main

ROOT = Path(__file__).parents[2]


def blocks(document: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def run(folder: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_example_runs_as_written(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(blocks("README.md")[0])
    out = run(tmp_path, "shop.py")
    assert "'task-C': {'store-123/jacket': 'modern', 'store-123/scarf': 'modern'}" in out
    assert (tmp_path / "shop.db").exists()


def test_the_readme_example_runs_on_any_database(tmp_path: Path, url: str) -> None:
    (tmp_path / "shop.py").write_text(blocks("README.md")[0].replace('Ostinato("sqlite:///shop.db")', "Ostinato()"))
    assert "task-C" in run(tmp_path, "shop.py", OSTINATO_URL=url)


def test_the_quickstart_runs_and_runs_again_without_doing_it_twice(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(blocks("docs/quickstart.md")[0])
    first, second = run(tmp_path, "shop.py"), run(tmp_path, "shop.py")
    assert "A17 shipped for receipt-A17-1999" in first
    assert first == second


def test_every_python_block_of_the_documents_is_python() -> None:
    for document in ("README.md", "docs/quickstart.md", "docs/explanation/security.md"):
        for block in blocks(document):
            compile(block, document, "exec", flags=0x2000)  # top-level await is allowed in a snippet


def test_the_safety_examples_run_one_after_the_other(tmp_path: Path) -> None:
    """As a reader would run them in one shell, in the order of the document."""
    text = (ROOT / "docs/explanation/security.md").read_text()
    lines = ["set -e", f'ostinato() {{ "{sys.executable}" -m ostinato.cli.main "$@"; }}']
    for kind, block in re.findall(r"```(python|sh)\n(.*?)```", text, re.DOTALL):
        lines.append(block if kind == "sh" else f"\"{sys.executable}\" - <<'END'\n{block}END\n")
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "{'task': 'charged 4111 1111 1111 1111'}" in done.stdout
    assert re.search(r"^default +input +2027-01 +1$", done.stdout, re.MULTILINE)
    assert "{'task': 'asked with ***'}" in done.stdout
    assert "asking with ***" in done.stderr
    assert re.search(r"^\d+ jobs.cancel .*\nNone$", done.stdout, re.MULTILINE)
    assert "the log is whole" in done.stdout
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"4111" not in held
    assert b"k-5f2a9c" not in held + (done.stdout + done.stderr).encode()


def test_the_store_report_goes_on_after_a_kill(tmp_path: Path, url: str) -> None:
    """Kill it half-way, start it again, and the same job ends with nothing done twice."""
    example = str(ROOT / "examples" / "store_report" / "main.py")
    env = os.environ | {"OSTINATO_URL": url}
    started = subprocess.Popen([sys.executable, example], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert any("submitted a new job" in line for line in started.stdout)
    with pytest.raises(subprocess.TimeoutExpired):  # it takes longer than this by its own sleeps
        started.wait(0.4)
    started.kill()
    started.communicate()
    # The killed worker still counts as alive for its lease: a second process takes over when that has run out.
    out = run(tmp_path, example, OSTINATO_URL=url)
    assert "going on with the unfinished job" in out
    assert "store-123/boots" in out


def test_the_store_report_goes_on_after_ctrl_c(tmp_path: Path, url: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / "store_report" / "main.py")]
    env = os.environ | {"OSTINATO_URL": url}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert any("submitted a new job" in line for line in started.stdout)
        started.send_signal(signal.SIGINT)
        _, complained = started.communicate(timeout=30)
    assert (complained, started.returncode) == ("stopped: run me again, and I go on\n", 1)
    assert "going on with the unfinished job" in run(tmp_path, *command[1:], OSTINATO_URL=url)


def test_the_store_report_goes_on_after_kills_that_used_up_all_attempts(tmp_path: Path, url: str) -> None:
    example = ROOT / "examples" / "store_report" / "main.py"
    # As if each attempt had been killed: waiting for that many leases to run out would take longer.
    killed = example.read_text().replace("if ctx.attempt == 1:", "if not os.path.exists('well'):")
    (tmp_path / "main.py").write_text(killed.replace("max_attempts=10", "max_attempts=1"))
    failed = subprocess.run(
        [sys.executable, "main.py"],
        cwd=tmp_path,
        env=os.environ | {"OSTINATO_URL": url},
        capture_output=True,
        text=True,
    )
    assert failed.returncode == 1
    assert "task-B: ConnectionError" in failed.stderr
    assert failed.stderr.endswith("run me again: what failed runs again, and nothing that has completed\n")
    (tmp_path / "well").touch()
    out = run(tmp_path, "main.py", OSTINATO_URL=url)
    assert "running again what failed: task-B" in out
    assert "'competitors': 7" in out


def test_every_command_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text()
    root: Any = get_command(main.root)
    for name in root.list_commands(None):
        command = root.get_command(None, name)
        assert f"`ostinato {name}" in reference, name
        for inner in vars(command).get("commands", {}):
            assert re.search(rf"`(ostinato )?{name} {inner}\b", reference), f"{name} {inner}"
