"""What `make mutants` plants, and that it tells what is found from what is not, also when it is interrupted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from devtools import mutants

DECIDES = '''"""Says `1 < 2 and not 3`."""
LIMIT: int = 3

def allowed(used: int, done: bool) -> bool:
    if used < LIMIT and not done:
        log.info("used %d", used + 1)
        note(used)
        return True
    raise ValueError(f"{used + 1} are too many")
'''
STATEMENT = """-- name: old_jobs
-- Jobs where tenant = :tenant AND more.
SELECT job_id, a < b FROM job j
WHERE j.tenant = :tenant AND j.finished_at < :before AND j.keep IS NULL
    AND NOT EXISTS (SELECT 1 FROM item i WHERE i.tenant = :tenant)
LIMIT :most;
"""


def planted(file: str, source: str) -> set[tuple[str, str]]:
    found = mutants.of_file(file, source)
    assert all(source[one.start : one.end] == one.before for one in found)
    assert all(source.count("\n", 0, one.start) + 1 == one.line for one in found)
    return {(one.before, one.after) for one in found}


def test_bugs_in_python_are_about_decisions_and_not_about_words() -> None:
    assert planted("decides.py", DECIDES) == {
        ("3", "4"),
        ("used < LIMIT and not done", "(used < LIMIT)"),
        ("used < LIMIT and not done", "(not done)"),
        ("used < LIMIT", "used <= LIMIT"),
        ("not done", "bool(done)"),
        ("note(used)", "pass"),
        ("True", "False"),
    }


def test_bugs_in_sql_are_about_conditions() -> None:
    assert planted("sql/jobs.sql", STATEMENT) == {
        ("j.tenant = :tenant", "j.tenant = j.tenant"),
        ("i.tenant = :tenant", "i.tenant = i.tenant"),
        ("=", "<>"),
        ("<", "<="),
        ("IS NULL", "IS NOT NULL"),
        ("NOT EXISTS", "EXISTS"),
        ("AND", "OR"),
    }


def test_every_target_is_there_and_has_something_to_plant() -> None:
    for target in mutants.TARGETS:
        assert mutants.of_file(target.file, (mutants.ROOT / target.file).read_text()), target.file
        assert all((mutants.ROOT / test).is_file() for test in target.tests), target


def test_what_survives_is_said_and_what_was_tried_is_not_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer to load than the tests to run
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "decides.py").write_text(
        "def more(n: int) -> bool:\n    return n > 2\n\n\ndef less() -> int:\n    return 5\n"
    )
    (root / "test_it.py").write_text(
        "import decides\n\ndef test_it():\n    assert decides.more(3)\n    assert not decides.more(2)\n"
    )
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=root, check=True)
    targets = [mutants.Target("src/decides.py", ("test_it.py",))]
    notes = ["--notes", str(tmp_path / "notes.jsonl")]
    assert mutants.main([*notes, "--minutes", "0"], root, targets) == 0
    assert "0 tried now" in capsys.readouterr().out
    assert mutants.main(notes, root, targets) == 1
    said = capsys.readouterr().out
    assert "3 tried now; of all that were tried, 1 survived:\n  src/decides.py:6: 5 -> 6\n" in said
    assert said.count("found   ") == 2
    assert mutants.main(notes, root, targets) == 1
    assert "0 tried now; of all that were tried, 1 survived" in capsys.readouterr().out
    (root / "test_it.py").write_text("def test_it():\n    assert False\n")
    assert mutants.main(["--notes", str(tmp_path / "others.jsonl")], root, targets) == 2
    assert "return n > 2" in (root / "src" / "decides.py").read_text()
