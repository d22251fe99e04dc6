"""One measurement in a process of its own: `python -m bench.single SCENARIO SIDE URL` prints one JSON line."""

from __future__ import annotations

import json
import sys

from bench.scenarios import measure, run_loop, subject
from bench.shapes import SCENARIOS


def main() -> None:
    name, side, url = sys.argv[1:]
    print(json.dumps(run_loop(measure(SCENARIOS[name], subject(side, url))).as_dict()))


if __name__ == "__main__":
    main()
