"""uv and pip install the same versions: `make lock` wrote uv.lock and constraints.txt together."""

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent


def _locked() -> list[dict]:
    return tomllib.loads((ROOT / "uv.lock").read_text())["package"]


def test_constraints_match_the_lock() -> None:
    locked = {package["name"]: package["version"] for package in _locked() if "registry" in package["source"]}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split(" ;")[0].strip().split("==") for line in lines if line)
    assert pinned == locked


def test_lock_knows_the_declared_requirements() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (ours,) = [package for package in _locked() if package["name"] == project["name"]]
    declared = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    assert sorted(_name_and_specifier(requirement) for requirement in declared) == sorted(
        (entry["name"], entry.get("specifier", "")) for entry in ours["metadata"]["requires-dist"]
    )


def test_lock_names_only_the_public_registry() -> None:
    hosts = {urlsplit(url).netloc for url in re.findall(r'https?://[^"]+', (ROOT / "uv.lock").read_text())}
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_lock_of_the_ui_names_no_registry() -> None:
    """It is made wherever somebody works, with whatever registry there is."""
    packages = json.loads((ROOT / "ui" / "package-lock.json").read_text())["packages"]
    assert len(packages) > 100
    assert [name for name, package in packages.items() if "resolved" in package] == []


def _name_and_specifier(requirement: str) -> tuple[str, str]:
    match = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?([^;]*)(?:;.*)?", requirement)
    assert match is not None
    return match[1], match[2].strip()
