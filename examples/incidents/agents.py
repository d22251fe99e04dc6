"""Agents that read incident reports with plain rules: the same answer each time, offline, and for nothing.

An agent is a function of `raw_data` and `parent_output`. It answers with what its schema says, and with the words of
the report (or the ids of the incidents) on which it bases that. Reports look like `{"text": …, "reportedAt": …}`,
questions like `{"question": …, "incidents": […], "found": […]}`, where an incident is `{"incident_id": …, "fields":
{"place": …}}`.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ostinato import Context, Ostinato

Output = dict[str, Any]
DOMAIN = "incidents"

# --- ingestion: one report in, a few facts out -------------------------------------------------------------------

PLACE = re.compile(
    r"(?:[A-Z][a-z]+ )+"
    r"(?:Bridge|Hill|Lane|Market|Park|Quay|Road|Row|Square|Street|Terrace|Tunnel|Walk|Yard)\b"
)
LEADING_WORDS = re.compile(r"^(?:The|A|An|In|On|At) ")


def place(raw_data: Mapping[str, Any], parent_output: object = None) -> Output:
    """The first name of a street, a square or the like."""
    found = PLACE.search(raw_data["text"])
    if found is None:
        return {"place": None, "evidence": []}
    return {"place": LEADING_WORDS.sub("", found[0]), "evidence": [found[0]]}


CLOCK = re.compile(
    r"\b(?P<hour>\d{1,2}):(?P<minute>\d{2})(?: ?(?P<half>am|pm))?\b|\b(?P<full>\d{1,2}) ?(?P<side>am|pm)\b|"
    r"\b(?P<named>noon|midnight)\b"
)
THE_DAY_BEFORE = re.compile(r"\b(?:yesterday|last night)\b", re.IGNORECASE)


def time(raw_data: Mapping[str, Any], parent_output: object = None) -> Output:
    """The time of day that the report names, on the day of the report; or else the time of the report."""
    text, reported = raw_data["text"], datetime.datetime.fromisoformat(raw_data["reportedAt"])
    found = CLOCK.search(text)
    if found is None:
        return {"at": reported.isoformat(timespec="minutes"), "stated": False, "evidence": []}
    hour, minute = _clock(found)
    at = reported.replace(hour=hour, minute=minute, second=0, microsecond=0)
    earlier = THE_DAY_BEFORE.search(text)
    if earlier is not None:
        at -= datetime.timedelta(days=1)
    evidence = [found[0]] if earlier is None else [earlier[0], found[0]]
    return {"at": at.isoformat(timespec="minutes"), "stated": True, "evidence": evidence}


def _clock(found: re.Match[str]) -> tuple[int, int]:
    if found["named"]:
        return (12 if found["named"] == "noon" else 0), 0
    hour, minute = int(found["hour"] or found["full"]), int(found["minute"] or 0)
    half = found["half"] or found["side"]
    return (hour if half is None else hour % 12 + (12 if half == "pm" else 0)), minute


def _words(*stems: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(stems)})\w*", re.IGNORECASE)


CATEGORIES = {  # in the order in which they win when a report has as many words of one as of another
    "hazard": _words(r"gas\b", "chemical", "toxic", "vapour", "leaking", "bomb", "unexploded", "wires", r"ice\b",
                     "slipped"),
    "crime": _words("robbed", "stolen", "thief", "burgl", "broke the window", "ran off", "slashed", "knife",
                    "threatened", "vandal", "sprayed", "police"),
    "accident": _words("crash", "collided", "collision", "overturned", "skidded", "tram hit", "ran into", "cyclist"),
    "noise": _words("loud", "noise", "drilling", "music", "barking", "howling", "roaring", "humming", "shouting",
                    "singing"),
    "outage": _words("electricity", r"power\b", "outage", "blackout", "cut off", "internet", "telephone", "heating",
                     "street lights"),
    "weather": _words("storm", "gust", "hail", "snow", "lightning", "thunder", r"winds?\b", "tree fell"),
    "flood": _words("flood", "water", r"tide\b", "river", "overflow", "burst", "sandbags", "knee-deep"),
    "fire": _words(r"fires?\b", "smoke", "flame", "burning", "blaze", "alight"),
}  # fmt: skip


def category(raw_data: Mapping[str, Any], parent_output: object = None) -> Output:
    """The category with the most words in the report."""
    found = {name: pattern.findall(raw_data["text"]) for name, pattern in CATEGORIES.items()}
    best = max(found, key=lambda name: len(found[name]))
    return {"category": best if found[best] else "other", "evidence": found[best]}


SEVERITIES = ["low", "medium", "high", "critical"]
USUAL = {"fire": 2, "flood": 2, "hazard": 2}
WORSE = {
    _words("is dead", "died", "killed", "several", "thousand"): 4,
    _words("trapped", "unconscious", "badly", "evacuated", "burns in", "brigade"): 3,
    _words("injured", "hospital", "broken", "wounded", "robbed", "ran off", "slashed", "breathing", "whole of"): 2,
}
HARMLESS = _words("small", "nobody was hurt", "only scratches", "dry so far", "puddles")


def severity(raw_data: Mapping[str, Any], parent_output: Mapping[str, Any] | None = None) -> Output:
    """What is usual for the category, unless the report has words for something better or worse."""
    known: Mapping[str, Any] = (parent_output or {}).get("category") or {}
    level, evidence = USUAL.get(known.get("category", ""), 1), []
    text = raw_data["text"]
    for pattern, worse in WORSE.items():
        if worse > level and (found := pattern.findall(text)):
            level, evidence = worse, found
    if not evidence and (found := HARMLESS.findall(text)):
        level, evidence = 1, found
    return {"severity": SEVERITIES[level - 1], "level": level, "evidence": evidence}


LONGEST_SUMMARY = 120


def summary(raw_data: Mapping[str, Any], parent_output: object = None) -> Output:
    """The first sentence, or as many whole words of it as fit."""
    sentence = re.split(r"(?<=[.!?;])\s", raw_data["text"].strip(), maxsplit=1)[0].rstrip(".;")
    if len(sentence) > LONGEST_SUMMARY:
        sentence = sentence[: LONGEST_SUMMARY - 1].rsplit(" ", 1)[0] + "…"
    return {"summary": sentence, "evidence": []}


# --- query: a question and what was saved in, an answer and the ids of the incidents out --------------------------

DAY = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


def count(raw_data: Mapping[str, Any], parent_output: object = None) -> Output:
    """How many there are, and of which kind."""
    found = _asked_for(raw_data)
    kinds = Counter(map(_category, found))
    return {"count": len(found), "byCategory": dict(_most_first(kinds)), "evidence": _ids(found)}


def where(raw_data: Mapping[str, Any], parent_output: object = None) -> Output:
    """The places, the busiest first."""
    found = [incident for incident in _asked_for(raw_data) if incident["fields"].get("place")]
    places = Counter(incident["fields"]["place"] for incident in found)
    return {
        "places": [{"place": name, "count": number} for name, number in _most_first(places)],
        "evidence": _ids(found),
    }


def changes(raw_data: Mapping[str, Any], parent_output: object = None) -> Output:
    """Which categories have more, or fewer, incidents since the day of the question than in as many days before it."""
    day = DAY.search(raw_data["question"])
    if day is None:
        return {"since": None, "more": [], "fewer": [], "evidence": []}
    since = datetime.date.fromisoformat(day[0])
    asked = _of_category(raw_data)
    after = [incident for incident in asked if _day(incident) >= since]
    length = max((_day(incident) for incident in after), default=since) - since + datetime.timedelta(days=1)
    before = [incident for incident in asked if since - length <= _day(incident) < since]
    difference = Counter(map(_category, after))
    difference.subtract(map(_category, before))
    return {
        "since": since.isoformat(),
        "more": sorted(name for name, number in difference.items() if number > 0),
        "fewer": sorted(name for name, number in difference.items() if number < 0),
        "evidence": _ids(after),
    }


def related(raw_data: Mapping[str, Any], parent_output: object = None) -> Output:
    """The reports that a search has found to be most like the question, best first."""
    found = raw_data.get("found", [])
    return {"related": [incident["fields"].get("summary", "") for incident in found], "evidence": _ids(found)}


def _asked_for(raw_data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The incidents of the category and since the day that the question names, if it does."""
    day = DAY.search(raw_data["question"])
    since = datetime.date.min if day is None else datetime.date.fromisoformat(day[0])
    return [incident for incident in _of_category(raw_data) if _day(incident) >= since]


def _of_category(raw_data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    named = re.findall("|".join(CATEGORIES), raw_data["question"].lower())
    return [one for one in raw_data["incidents"] if not named or _category(one) in named]


# An incident may lack what the agent for it failed to find out.


def _category(incident: Mapping[str, Any]) -> str:
    return incident["fields"].get("category", "other")


def _day(incident: Mapping[str, Any]) -> datetime.date:
    at = incident["fields"].get("at")
    return datetime.date.min if at is None else datetime.datetime.fromisoformat(at).date()


def _ids(incidents: Iterable[Mapping[str, Any]]) -> list[str]:
    return [incident["incident_id"] for incident in incidents]


def _most_first(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


FUNCTIONS: dict[str, Callable[..., Output]] = {
    f"incidents.{function.__name__}": function
    for function in (place, time, category, severity, summary, count, where, changes, related)
}
"""By the names that the definitions know them under."""


# --- in an application -------------------------------------------------------------------------------------------

RELATED = 5
COUNTED = ("incidents.count", "incidents.where", "incidents.changes")


def register(app: Ostinato) -> None:
    """Those that read a report are plain functions. Those that answer questions get what was saved before: all of it,
    by its fields, to count; or the few reports that are most like the question, by `ctx.search`."""

    async def saved() -> list[dict[str, Any]]:
        incidents: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = await app.results.list(domain=DOMAIN, cursor=cursor, most=500)
            incidents += map(incident, page)
            cursor = page.cursor
            if cursor is None:
                return incidents

    def over_saved(function: Callable[..., Output]) -> Callable[..., Any]:
        async def answer(raw_data: dict[str, Any]) -> Output:
            return function({**raw_data, "incidents": await saved()})

        return answer

    async def searched(ctx: Context, raw_data: dict[str, Any]) -> Output:
        hits = await ctx.search(raw_data["question"], domain=DOMAIN, most=RELATED)
        return related({**raw_data, "found": [incident(hit) for hit in hits]})

    for name, function in FUNCTIONS.items():
        app.agent(name)(over_saved(function) if name in COUNTED else searched if function is related else function)


def incident(found: Any) -> dict[str, Any]:
    return {"incident_id": found.result_id, "fields": found.document["synthesized"]}
