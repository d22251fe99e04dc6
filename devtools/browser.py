"""The browser of the tests of the web UI: `$CHROMIUM`, or a Chromium of the machine, or the package of Debian.

python -m devtools.browser    # installs it where that is possible, and says how where it is not
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOW = (
    "the tests of the web UI need Chromium: install it (on Debian: `apt-get install chromium`), or let $CHROMIUM say\n"
    "where it is"
)


def find() -> str | None:
    """Where it is, if it is anywhere."""
    given = os.environ.get("CHROMIUM")
    if given:
        return given
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> bool:
    """From Debian's package, if this is Debian and we may."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    silent = subprocess.DEVNULL
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update"], env=environment, stdout=silent, stderr=silent)
    command = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
    return subprocess.run(command, env=environment, stdout=silent, stderr=silent).returncode == 0


def main() -> int:
    if find() is None:
        print("Installing Chromium ...")
        if not install():
            print(HOW, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
