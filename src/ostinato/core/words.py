"""Words, as they are indexed and asked for: the same ones whichever database looks them up.

Text is cut into words here and not by the databases, whose own ways differ. A word has only letters and digits, so that
no query can be anything but a list of words, whatever somebody typed.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence

MOST_WORDS = 5_000
"""How much of a text is indexed."""
MOST_ASKED = 32
LONGEST = 64
"""Characters of a word; the rest of it is not looked at."""
SNIPPET = 240

_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Scripts that put no spaces between words: Thai, Lao, kana, Han. They are cut into pairs of characters."""
_ACCENTS = dict.fromkeys(range(0x300, 0x370))
_COMMON = frozenset(
    {
        "a", "about", "after", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
        "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its",
        "many", "me", "much", "my", "no", "not", "of", "on", "or", "our", "since", "so", "some", "than", "that",
        "the", "their", "them", "then", "there", "these", "they", "this", "to", "up", "us", "was", "we", "were",
        "what", "when", "where", "which", "who", "why", "will", "with", "you", "your",
    }
)  # fmt: skip


def of_text(text: str) -> list[str]:
    """Its words in order, without case and accents."""
    found: list[str] = []
    words, paired = _patterns()
    for match in words.finditer(_folded(text)):
        word = match.group()
        if paired.match(word):
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        else:
            found.append(word[:LONGEST])
        if len(found) >= MOST_WORDS:
            break
    return found[:MOST_WORDS]


def of_query(text: str) -> list[str]:
    """What to look for, each word once."""
    return telling(dict.fromkeys(of_text(text)))[:MOST_ASKED]


def telling(words: Iterable[str]) -> list[str]:
    """Without those that say nothing in English, unless there are no others."""
    given = list(words)
    return [word for word in given if word not in _COMMON] or given


def snippet(text: str, asked: Sequence[str], longest: int = SNIPPET) -> str:
    """A part of the text around the first word that was asked for, or its beginning."""
    start = 0
    if len(text) > longest and asked:
        # Only as a rule does folding leave every character in its place: the part may be off by a few.
        found = re.search("|".join(rf"\b{re.escape(word)}" for word in asked), _folded(text))
        if found is not None and found.start() > longest // 2:
            start = min(found.start() - longest // 3, len(text) - longest)
    part = text[start : start + longest].strip()
    return f"{'…' if start else ''}{part}{'…' if start + longest < len(text) else ''}"


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What a word is, and one that is cut into pairs. Compiling them takes milliseconds, and few processes need it."""
    return re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+"), re.compile(rf"[{_UNSPACED}]")


def _folded(text: str) -> str:
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text).translate(_ACCENTS)
    return unicodedata.normalize("NFC", plain.casefold())
