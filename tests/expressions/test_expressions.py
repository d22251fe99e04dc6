"""JSONata expressions: what they give, and what happens to those that are wrong, endless or greedy."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ostinato import errors, expressions
from ostinato.expressions import processes

EVENT = {
    "detail-type": "Task Completed",
    "detail": {"jobId": "j1", "tags": ["a", "b"], "output": {"total": 12.5, "note": None}, "name": "Grüße 😀"},
}
NOW = 1_700_000_000.5


def value(text: str, data: Any = EVENT, **options: Any) -> Any:
    return expressions.compile(text, "targets[0].signal.payload").evaluate(data, **options)


def why_not(text: str, data: Any = EVENT) -> str:
    """What is said of an expression that cannot be evaluated. It takes no longer than its bound, and a little."""
    started = time.monotonic()
    with pytest.raises(errors.ExpressionFailed) as caught:
        value(text, data)
    assert time.monotonic() - started < 5  # 0.5 s and what a busy machine adds; without a bound these take minutes
    assert isinstance(caught.value, errors.TerminalError)
    assert caught.value.details["field"] == "targets[0].signal.payload"
    return caught.value.message.removeprefix("targets[0].signal.payload could not be evaluated: ")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("detail.jobId", "j1"),
        ("$.`detail-type`", "Task Completed"),
        ("detail.tags", ["a", "b"]),
        ("detail.output", {"total": 12.5, "note": None}),
        ("detail.output.note", None),
        ("detail.output.total > 10", True),
        ("$count(detail.tags)", 2),
        ("detail.tags[$ = 'b']", "b"),
        ("{'id': detail.jobId, 'n': 1 + 2}", {"id": "j1", "n": 3}),
        ("$uppercase(detail.name) & '!'", "GRÜSSE 😀!"),
        ("$length('😀')", 1),
        ("$split('a,b', ',')", ["a", "b"]),
        ("$match(detail.jobId, /j([0-9])/).groups[0]", "1"),
        ("[]", []),
        ("''", ""),
        ("$exists(detail.nothing)", False),
        ("[detail.nothing]", []),
        ("($sum := function($n) { $n = 0 ? 0 : $n + $sum($n - 1) }; $sum(100))", 5050),
        ("/* why */ 1", 1),
        ("'$eval(1)'", "$eval(1)"),
    ],
)
def test_values(text: str, wanted: Any) -> None:
    found = value(text)
    assert found == wanted
    assert type(found) is type(wanted)


def test_no_value_is_an_error_and_null_is_a_value() -> None:
    assert "it has no value here" in why_not("detail.nothing")
    assert value("detail.nothing", default="none") == "none"
    assert value("detail.nothing", default=None) is None
    assert value("detail.output.note", default="none") is None
    assert value("$", None) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Unexpected end of expression"),
        ("1 +", "Unexpected end of expression"),
        ("detail.(", "Unexpected end of expression"),
        ("$eval('1')", "the function $eval is not available"),
        ("($e := $eval; $e('1'))", "the function $eval is not available"),
        ("'1' ~> $eval", "the function $eval is not available"),
        ("(" * 5000, "nesting depth"),
        ("1" + " " * 20_000, "longer than 16,384 characters"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_field(text: str, why: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        expressions.compile(text, "rule.targets[1]")
    assert caught.value.message.startswith("rule.targets[1] is not a valid expression: ")
    assert why in caught.value.message
    assert caught.value.details["field"] == "rule.targets[1]"


def test_eval_is_refused_also_where_it_could_not_be_seen() -> None:
    """A quote in a regular expression hides the rest from whoever looks for strings."""
    assert why_not("""($contains(detail.jobId, /"/); $eval('1'); /"/)""") == "$eval is not available"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("'a' + 1", "The left side of the + operator must evaluate to a number"),
        ("$number('abc')", "Cannot convert 'abc' to number"),
        ("$error('no such order')", "no such order"),
        ("$unknown(1)", "non-function: $unknown"),
        ("$match('a', /(?=a)/)", "look-around"),
    ],
)
def test_what_fails_says_why(text: str, why: str) -> None:
    assert why in why_not(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("($f := function() { $f() }; $f())", "it takes too long"),
        ("($f := function() { 1 + $f() }; $f())", "it calls itself too deeply"),
        ("[1..9000000]", "it makes a sequence that is too long"),
        ("$sum([1..99000000])", "it makes a range that is too long"),
        ("[1..90000][$ in [1..90000]]", "it takes too long"),
        ("$pad('a', 2000000)", "the result is larger than 1,048,576 characters"),
    ],
)
def test_bounds_that_the_library_keeps(text: str, why: str) -> None:
    assert why_not(text) == why


SQUARE = "$a := [1..9999]; $b := $map($a, function() { $a }); $c := $map($a, function() { $b })"


@pytest.mark.parametrize(
    "text",
    [
        "$pad('a', 1000000000)",
        f"({SQUARE}; $c)",
        f"({SQUARE}; $c = $map($a, function() {{ $b }}))",
        "($s := $pad('a', 100000, 'a'); $length($replace($s, 'a', $s)))",
        "($s := $pad('a', 100000, 'a'); $join($map([1..10000], function() { $s })))",
    ],
)
def test_bounds_that_only_the_end_of_a_process_keeps(text: str) -> None:
    assert why_not(text) == "it takes too long, or too much memory"
    assert value("1 + 1") == 2  # in the next process


@pytest.mark.parametrize("pattern", ["/^(a+)+$/", "/(a*)*b/", "/(a|aa)+$/", "/^(([a-z])+.)+[A-Z]([a-z])+$/"])
def test_patterns_that_take_other_engines_for_ever(pattern: str) -> None:
    started = time.monotonic()
    value(f"$contains(text, {pattern})", {"text": "a" * 5000 + "!"})
    assert time.monotonic() - started < 5


def test_a_deep_result_is_refused_or_read_but_never_fatal() -> None:
    nested = "($f := function($a, $n) { $n = 0 ? $a : $f({'a': $a}, $n - 1) }; $f(1, DEPTH))"
    assert value(nested.replace("DEPTH", "3")) == {"a": {"a": {"a": 1}}}
    assert why_not(nested.replace("DEPTH", "20000")) in (
        "the result is nested too deeply",
        "it takes too long, or too much memory",
    )


def test_the_same_event_gives_the_same_values() -> None:
    text = "{'now': $now(), 'year': $now('[Y]', '+0100'), 'millis': $millis(), 'draws': [$random(), $random()]}"
    first = value(text, now=NOW)
    one, two = first.pop("draws")
    assert first == {"now": "2023-11-14T22:13:20.500Z", "year": "2023", "millis": 1_700_000_000_500}
    assert 0 <= one < 1
    assert one != two
    assert value(text, now=NOW)["draws"] == [one, two]
    assert value(text, now=NOW + 1)["draws"] != [one, two]


def test_the_same_event_shuffles_in_the_same_way() -> None:
    first = value("$shuffle([1..9])", now=NOW)
    assert sorted(first) == list(range(1, 10))
    assert value("$shuffle([1..9])", now=NOW) == first
    assert value("$shuffle([1..9])", now=NOW + 1) != first


def test_without_a_time_it_is_the_present() -> None:
    assert value("$millis()") == pytest.approx(time.time() * 1000, abs=60_000)


def test_the_library_is_loaded_when_it_is_needed_and_not_before() -> None:
    code = "import ostinato, ostinato.expressions, ostinato.cli.main, sys; sys.exit('jsonatapy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_its_process_has_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_SECRET_X", "hidden")
    process = processes.Process()
    environment = Path(f"/proc/{process.pid}/environ").read_bytes()
    process.end()
    assert b"PATH=" in environment
    assert b"hidden" not in environment


def test_a_process_that_was_killed_meanwhile_is_replaced() -> None:
    pool = processes.Processes()
    request: dict[str, Any] = {"texts": ["$"], "data": "7", "now": None, "seconds": 1.0, "bytes": 100}
    assert pool.ask(request, 5) == {"values": ["7"]}
    (process,) = pool._idle  # pyright: ignore[reportPrivateUsage]
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert pool.ask(request, 5) == {"values": ["7"]}
    pool.end()


def test_many_threads_share_a_few_processes() -> None:
    def double(number: int) -> int:
        return value("n * 2", {"n": number})

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert list(threads.map(double, range(200))) == [number * 2 for number in range(200)]


def test_s3_a_tenant_with_runaway_expressions_does_not_hold_up_another() -> None:
    """S-3: it never has all the processes, however many of its expressions run and wait."""
    turns = processes.Turns(processes.MOST, processes.MOST_OF_ONE)
    over = threading.Event()

    def run_away() -> None:
        with turns.turn("loud"):
            over.wait()

    loud = [threading.Thread(target=run_away) for _ in range(10)]
    for thread in loud:
        thread.start()
    for _ in range(20):
        with turns.turn("calm"):
            assert not over.is_set()
    over.set()
    for thread in loud:
        thread.join()


def test_s3_tenants_take_turns() -> None:
    turns = processes.Turns(1, 1)
    order: list[str] = []

    def take(whose: str) -> None:
        with turns.turn(whose):
            order.append(whose)

    with turns.turn("first"):
        threads = []
        for whose in ("loud", "loud", "loud", "loud", "calm", "quiet"):
            threads.append(threading.Thread(target=take, args=(whose,)))
            threads[-1].start()
            while sum(map(len, turns._waiting.values())) < len(threads):  # pyright: ignore[reportPrivateUsage]
                time.sleep(0.001)  # until it stands in the line
    for thread in threads:
        thread.join()
    assert order == ["loud", "calm", "quiet", "loud", "loud", "loud"]


def test_an_expression_that_could_not_be_read_once_may_be_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that was too busy for a moment must not have it refused for as long as the process lives."""
    text = "$sum([1, 2, 39]) /* which no other test has */"

    def too_busy(*_: Any) -> Any:
        raise processes.Ended

    with monkeypatch.context() as patch:
        patch.setattr(processes, "ask", too_busy)
        with pytest.raises(errors.InvalidInput, match="too long to read"):
            expressions.compile(text, "here")
    assert expressions.compile(text, "here").evaluate(None) == 42
