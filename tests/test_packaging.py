"""uv and pip install the same versions (`make lock` wrote uv.lock and constraints.txt together), and the web UI or the
reason why not."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
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


def test_the_wheel_holds_all_that_a_server_needs(tmp_path: Path) -> None:
    """Whatever is a file of the package, and the web UI, which is not in the repository."""
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    else:
        command = ["uv", "build", "--quiet", "--wheel"]
    target = "--wheel-dir" if "pip" in command else "--out-dir"
    subprocess.run([*command, target, tmp_path, ROOT], check=True, env=os.environ | {"OSTINATO_UI": "require"})
    (wheel,) = tmp_path.glob("ostinato-*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    here = {f"{file.relative_to(source)}" for file in source.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    assert here - packed == set()
    assert {"ostinato/py.typed", "ostinato/_ui/index.html", "ostinato/api/graphql/schema.graphql"} <= packed
    assert {name.split("/")[0] for name in packed} == {
        "ostinato",
        wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info",
    }


def test_a_ui_that_cannot_be_built_says_why(tmp_path: Path) -> None:
    """With an npm that reaches no registry: whoever installs is told, and nothing that is half-built stays."""
    source, tools = tmp_path / "ui", tmp_path / "bin"
    for folder in (source, tools):
        folder.mkdir()
    for name in ("build.py", "package.json", "package-lock.json"):
        shutil.copy(ROOT / "ui" / name, source)
    for name, script in {"node": "echo v24.0.0", "npm": "echo no registry answers >&2; exit 1"}.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, source / "build.py"], env=environment, text=True, capture_output=True)
    assert done.returncode == 1
    assert "`npm ci --no-audit --no-fund --loglevel=error` failed:\nno registry answers" in done.stderr
    assert not (tmp_path / "src").exists()
