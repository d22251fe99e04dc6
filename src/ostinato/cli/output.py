"""How answers look: JSON for programs; compact tables, relative times and no surprises in a pipe for people."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ostinato.core import moments

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

COLOURS = {
    "running": "cyan",
    "processing": "cyan",
    "pending": "blue",
    "waiting": "yellow",
    "blocked": "bright_black",
    "completed": "green",
    "failed": "red",
    "timed_out": "red",
    "cancelled": "magenta",
    "skipped": "bright_black",
    "lost": "red",
    "succeeded": "green",
    "aborted": "magenta",
}
WIDE = 10_000
duration = moments.duration
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


# --- for programs ----------------------------------------------------------------------------------------------


def encode(value: Any) -> str:
    """One line of JSON. Text that is not valid Unicode can only come from the command line; it is shown escaped."""
    import msgspec

    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_valid(value)).decode()


def document(value: Any) -> None:
    """One JSON document on stdout."""
    print(pretty(value))


def json_line(value: Any) -> None:
    """One of many JSON documents, each on its line, as soon as it is known."""
    print(encode(value), flush=True)


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_valid(key): _valid(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


# --- for people ------------------------------------------------------------------------------------------------


def console() -> Console:
    """Stdout. In a pipe nothing is wrapped or cut, because nobody knows how wide the reader is."""
    from rich.console import Console

    piped = not sys.stdout.isatty()
    return Console(width=WIDE if piped else None, no_color=piped or None, highlight=False, markup=False, emoji=False)


def say(text: str) -> None:
    print(plain(text), flush=True)


def note(text: str) -> None:
    """Beside the answer: on stderr, so that it does not get into a pipe."""
    print(plain(text), file=sys.stderr, flush=True)


def table(columns: Sequence[str], lines: Iterable[Sequence[Any]], *, none: str) -> None:
    """Cells are text, or values made by the functions below. `none` is said when there is no line."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, no_wrap=column.endswith("id"), overflow="fold")
    for line in lines:
        made.add_row(*[cell if not isinstance(cell, str) else plain(cell) for cell in line])
    if made.row_count:
        _print(made, whole_words=True)
    else:
        say(none)


def fields(pairs: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one pair to a line; pairs without a value are left out."""
    from rich.table import Table

    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None and value != "":
            made.add_row(name, plain(value) if isinstance(value, str) else value)
    _print(made)


def _print(made: Table, *, whole_words: bool = False) -> None:
    """Without the padding at the ends of lines, which is of no use to anybody. Where there is not even room for each
    word, lines are left to the terminal to break: cells would be squeezed to a letter, or to nothing."""
    screen = console()
    if whole_words and screen.measure(made, options=screen.options.update(max_width=WIDE)).minimum > screen.width:
        screen.width = WIDE
    with screen.capture() as captured:
        screen.print(made)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def state(name: str) -> Text:
    from rich.text import Text

    return Text(name, style=COLOURS.get(name.lower(), ""))


def plain(text: str) -> str:
    """Text from a database may hold anything; a terminal obeys control characters, so they are spelt out."""
    return text.translate(_CONTROL)


def one_line(text: str) -> str:
    return plain(" ".join(text.split()))


def short(value: Any, most: int = 60) -> str:
    """A JSON value, cut to fit into a table."""
    text = value if isinstance(value, str) else encode(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def pretty(value: Any) -> str:
    import msgspec

    return msgspec.json.format(encode(value), indent=2)


def reason(error: Any, most: int = 80) -> str:
    """The first line of why something failed."""
    if not isinstance(error, dict):
        return "" if error is None else short(error, most)
    parts = cast("dict[str, Any]", error)
    message = str(parts.get("message", "")).partition("\n")[0]
    return short(f"{parts.get('type', '')}: {message}".strip(": "), most)


def counts(values: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in values.items())


def money(amount: float) -> str:
    from ostinato.core import usage

    return usage.shown(usage.micros(amount, "amount"))


def spent(amount: float, budget: float | None) -> str:
    """Nothing, if nothing was spent and there is no limit."""
    if budget is not None:
        return f"{money(amount)} of {money(budget)}"
    return money(amount) if amount else ""


def ago(moment: datetime.datetime | None, now: datetime.datetime) -> str:
    """How long ago, or how long until."""
    if moment is None:
        return ""
    seconds = (now - moment).total_seconds()
    if -1 < seconds < 1:
        return "now"
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if abs(seconds) >= size:
            much = f"{int(abs(seconds) // size)} {name}"
            return f"{much} ago" if seconds > 0 else f"in {much}"
    return "now"


def took(started: datetime.datetime | None, ended: datetime.datetime | None, now: datetime.datetime) -> str:
    return "" if started is None else duration(((ended or now) - started).total_seconds())
