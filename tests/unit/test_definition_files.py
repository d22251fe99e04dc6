"""Definitions in files: which ones there are, and where an error in one of them is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato import definition_files, errors


@pytest.mark.parametrize(
    ("name", "content", "index", "field", "said"),
    [
        ("a.yaml", "name: a\nedges:\n- {from: x}\n", 0, "edges[0].to", "a.yaml:3: wrong"),
        ("a.yaml", "name: a\n---\nname: b\n", 1, "edges", "a.yaml:3: wrong"),
        ("a.yml", "- name: a\n- name: b\n  edges: []\n", 1, "edges[3]", "a.yml:3: wrong"),
        ("a.yml", "- name: a\n- name: b\n", 1, None, "a.yml:2: wrong"),
        ("a.json", '[{"name": "a"}, {"name": "b"}]', 1, "edges", "a.json[1]: wrong"),
        ("a.json", '{"name": "a"}', 0, "edges", "a.json: wrong"),
        ("stdin", ' {"name": "a"}', 0, "edges", "stdin: wrong"),
        ("stdin", "name: a\nedges: []", 0, "edges", "stdin:2: wrong"),
    ],
)
def test_an_error_says_where_it_is(name: str, content: str, index: int, field: str | None, said: str) -> None:
    found = definition_files.read(content.encode(), name)[index]
    assert found.document["name"] == "ab"[index]
    error = found.refused(errors.InvalidGraph("wrong", **({} if field is None else {"field": field})))
    assert isinstance(error, errors.InvalidGraph)
    assert (str(error), error.details["file"], error.details.get("field")) == (said, name, field)


def test_the_files_of_a_folder(tmp_path: Path) -> None:
    for name, content in (("b.yml", "name: 2-b"), ("a.json", '{"name": "1-a"}'), ("c.yaml", "---\n"), ("d.txt", "")):
        (tmp_path / name).write_text(content)
    with pytest.raises(errors.InvalidInput, match=r"c\.yaml has no definitions"):
        definition_files.in_folder(str(tmp_path))
    (tmp_path / "c.yaml").write_text("name: 3-c\n---\nname: 4-c\n")
    found = definition_files.in_folder(str(tmp_path))
    assert [one.document["name"] for one in found] == ["1-a", "2-b", "3-c", "4-c"]
    assert [one.source.rpartition("/")[2] for one in found] == ["a.json", "b.yml", "c.yaml:1", "c.yaml:3"]
