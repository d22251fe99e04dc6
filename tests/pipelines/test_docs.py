"""What the page about pipelines shows runs as it stands. (Its lines with `curl` run in the tests of the server.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec

from ostinato import definition_files
from ostinato.api import piping
from ostinato.core import courses, filters
from ostinato.pipelines import definition
from tests.reactions.test_docs import first_column

PAGE = (Path(__file__).parents[2] / "docs/reference/pipelines.md").read_text()


def names(kind: type[msgspec.Struct]) -> list[str]:
    return sorted(field.encode_name for field in msgspec.structs.fields(kind))


def test_the_definition_is_one() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (found,) = definition_files.read(text.encode(), "articles.yaml")
    course = courses.Course(definition.read(found.document), 1)
    assert (list(course.steps), list(course.reviews)) == (["check", "illustrate"], ["review"])
    assert {(300, 400), (400, 410), (211, 520), (221, 300), (540, 100)} <= course.moves


def test_every_field_and_bound_is_told() -> None:
    assert sorted(first_column(PAGE, "field")) == names(courses.Pipeline)
    assert sorted(first_column(PAGE, "of a step")) == names(courses.Step)
    assert sorted(set(first_column(PAGE, "of a review"))) == names(courses.Review)
    assert first_column(PAGE, "entry") == list(courses.ENTRIES)
    assert f"1 to {definition.MOST_STATUSES}, each" in PAGE
    assert f"1 to {definition.LARGEST_CODE:,}" in PAGE
    assert f"1 to {definition.MOST_ENTRIES} entries" in PAGE
    assert f"up to {definition.LONGEST_DESCRIPTION:,} characters" in PAGE
    assert f"a list of up to {piping.MOST_ITEMS:,}" in PAGE
    assert f"Up to {filters.MOST} at a time" in PAGE


def test_the_example_and_the_commands_run_one_after_the_other(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (commands,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    told = PAGE.partition("asyncio.run(main())\n```\n\n")[2].partition("\n\n")[0]
    lines = ["set -e", f'ostinato() {{ "{sys.executable}" -m ostinato.cli.main --url sqlite:///articles.db "$@"; }}']
    script = "\n".join([*lines, f"\"{sys.executable}\" - <<'END'\n{example}END", commands])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(re.sub("^    ", "", told, flags=re.MULTILINE))
    assert "stateDiagram-v2" in done.stdout
    assert "begun: 1 item\n" in done.stdout
    assert done.stdout.endswith("would be done: 1 of 1\n")
