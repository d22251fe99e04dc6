"""Six agents without memory: an explicit payload in, a structured answer with its evidence out, the same each time.

They are plain rules, offline and for nothing, where a language model would do the same work: what they are told is a
*prompt*, which has a version.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Answer = dict[str, Any]
Prompt = Mapping[str, Any]
SENTENCE = re.compile(r"(?<=[.!?])\s+")
WORD = re.compile(r"[a-z']+")
SHOUTING = re.compile(r"\b(?:buy|win|click|order|free|unbeatable)\b", re.IGNORECASE)
COMMON = frozenset(
    WORD.findall(
        "a an and are as at be but by for from has have in is it its of on or that the their they this to was were "
        "which who will with"
    )
)
COLOURS = {
    "nature": (46, 125, 50), "city": (69, 90, 100), "energy": (249, 168, 37), "health": (198, 40, 40),
    "science": (40, 53, 147), "culture": (106, 27, 154),
}  # fmt: skip
GREY = (120, 120, 120)


def words(text: str) -> list[str]:
    return [word for word in WORD.findall(text.lower()) if word not in COMMON]


def discoverer(feed: Iterable[Mapping[str, str]]) -> list[Answer]:
    """What there is to be looked at, each once, in the order of the feed."""
    found: dict[str, Answer] = {}
    for number, entry in enumerate(feed):
        found.setdefault(entry["id"], {"title": entry["title"], "file": entry["file"], "number": number})
    return [{"id": item_id, "payload": payload} for item_id, payload in found.items()]


def shingles(text: str, size: int = 4) -> set[tuple[str, ...]]:
    told = words(text)
    return {tuple(told[start : start + size]) for start in range(len(told) - size + 1)}


def screener(prompt: Prompt, text: str, earlier: Mapping[str, str]) -> Answer:
    """Whether somebody has told this before: in which, and how much of it."""
    mine = shingles(text)
    shared = {name: len(mine & shingles(other)) / max(1, len(mine)) for name, other in earlier.items()}
    nearest = max(shared, key=lambda name: shared[name], default=None)
    if nearest is None or shared[nearest] < prompt["overlap"]:
        return {"duplicate_of": None, "evidence": []}
    return {"duplicate_of": nearest, "evidence": [f"{shared[nearest]:.0%} of it is in {nearest}"]}


def scorer(prompt: Prompt, text: str, taxonomy: Mapping[str, Sequence[str]]) -> Answer:
    """0 to 100. What is too short, or shouts, is sorted out before anything is counted."""
    told = words(text)
    if len(told) < prompt["words"] // 2:
        return {"score": 0, "evidence": [f"{len(told)} words"]}
    shouting = sorted({found.lower() for found in SHOUTING.findall(text)})
    if len(shouting) > 2:
        return {"score": 0, "evidence": shouting}
    known = {word for subject in taxonomy.values() for word in subject}
    found = sorted({word for word in told if word in known})
    length = min(1.0, len(told) / prompt["words"])
    return {"score": round(length * min(100, 40 + 10 * len(found))), "evidence": found}


def summarizer(prompt: Prompt, text: str) -> Answer:
    """The sentences whose words are used most, in the order in which they stand."""
    sentences = SENTENCE.split(" ".join(text.split()))
    counts = Counter(words(text))

    def weight(number: int) -> float:
        told = words(sentences[number])
        return sum(counts[word] for word in told) / (len(told) + 4) if told else 0.0

    chosen = sorted(sorted(range(len(sentences)), key=weight, reverse=True)[: prompt["sentences"]])
    return {"summary": " ".join(sentences[number] for number in chosen), "evidence": chosen}


def tagger(prompt: Prompt, text: str, taxonomy: Mapping[str, Sequence[str]]) -> Answer:
    """The subjects whose words it has, those with most of them first."""
    counts = Counter(words(text))
    found = {subject: sorted({word for word in known if counts[word]}) for subject, known in taxonomy.items()}
    ranked = sorted((s for s in found if found[s]), key=lambda s: (-sum(counts[word] for word in found[s]), s))
    tags = ranked[: prompt["most"]]
    return {"tags": tags, "evidence": {tag: found[tag] for tag in tags}}


def thumbnailer(prompt: Prompt, title: str, text: str, taxonomy: Mapping[str, Sequence[str]]) -> tuple[bytes, Answer]:
    """A picture of the article: a bar for each word of its title, in the colour of its subject."""
    tags = tagger({"most": 1}, text, taxonomy)["tags"]
    colour = COLOURS.get(tags[0] if tags else "", GREY)
    width, height = prompt["width"], prompt["height"]
    bars = [len(word) for word in title.split()]
    wide = width / len(bars)
    rows: list[bytes] = []
    for y in range(height):
        row = bytearray(b"\0")  # no filter
        for x in range(width):
            tall = height * bars[min(int(x / wide), len(bars) - 1)] / (max(bars) + 1)
            row += bytes(colour if height - y <= tall else (245, 245, 245))
        rows.append(bytes(row))
    return png(width, height, b"".join(rows)), {"width": width, "height": height, "evidence": tags}


def png(width: int, height: int, rows: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
