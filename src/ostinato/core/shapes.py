"""What a regular expression asks of a text, in words: for those whose text it refuses, who need not read it."""

from __future__ import annotations

import ast
import re
from typing import Final

_NAME = re.compile(
    r"(?P<dollar>\\\$\?)?(?:\[A-Za-z0-9\]\[A-Za-z0-9|\[\^\\W_\]\[\\w(?P<low>))(?P<marks>[^\]]+)\]\{0,(?P<more>\d+)\}"
)
_WITHOUT = re.compile(r"\[\^(?P<signs>[^\]]+)\](?:[*+]|\{(?P<least>\d+),(?P<most>\d+)\})")
_NOT_ENDING = re.compile(r"\(\?!\.\*\\\.\((?P<ends>[a-z|]+)\)-\\d\+\$\)")
_ONLY = re.compile(r"\[(?P<signs>[^^\]][^\]]*)\][*+]")
_PAIR = re.compile(r"\[\^\\x00=\]\{1,(?P<key>\d+)\}=\[\^\\x00\]\{0,(?P<value>\d+)\}")
_REFUSED = re.compile(r"Expected `str` matching regex (?P<shown>'.*'|\".*\")", re.DOTALL)
_OTHERS: Final = {
    r"[^\x00=]": "it must begin with the name of a tag, and not with = or NUL",
    "(?:[0-9a-f]{2})+": "it must be pairs of the digits 0 to 9 and a to f",
    "[ -~]*": "use letters, digits and signs of ASCII",
}
_KINDS: Final = (("A-Z", "capital letters"), ("a-z", "small letters"), ("0-9", "digits"))
_SIGNS: Final = ((r"\x00-\x1f", "control characters"), (r"\x7f-\x9f", ""), (r"\x00", "NUL"))


def in_words(pattern: str) -> str:
    """What a text must be like to match."""
    bare = pattern.removesuffix(r"(?!\n)").removesuffix("$").removeprefix("^")
    if found := _NOT_ENDING.match(bare):
        ends = " or ".join(f".{end}-" for end in found["ends"].split("|"))
        return f"{in_words(bare[found.end() :])}, and not ending in {ends} and a number"
    if bare in _OTHERS:
        return _OTHERS[bare]
    if found := _NAME.fullmatch(bare):
        marks = ["spaces" if mark == " " else mark for mark in ("" if found["low"] is None else "_") + found["marks"]]
        words = f"use 1 to {int(found['more']) + 1} letters, digits, {_listed(marks)}, "
        return f"{words}starting with a letter or digit{' (or with $ before it)' if found['dollar'] else ''}"
    if found := _PAIR.fullmatch(bare):
        return f"write key=value, with 1 to {found['key']} characters before the = and up to {found['value']} after it"
    if found := _WITHOUT.fullmatch(bare):
        length = f" of {found['least']} to {found['most']} characters" if found["most"] else ""
        return f"it must be a text{length} without {_listed(_signs(found['signs']))}"
    if found := _ONLY.fullmatch(bare):
        return f"use {_listed(_kinds(found['signs']))} only"
    return "it has signs in it, or in a place, that are not allowed there"


def explain(sentence: str) -> str:
    """What msgspec says of a value, without the pattern that it may have failed to match."""
    if found := _REFUSED.fullmatch(sentence):
        return f"the text is not valid: {in_words(ast.literal_eval(found['shown']))}"
    return sentence


def _signs(excluded: str) -> list[str]:
    """What may not be there."""
    named: list[str] = []
    for sign, name in _SIGNS:
        if sign in excluded:
            excluded = excluded.replace(sign, "")
            named.append(name)
    return [name for name in (*named, *excluded) if name]


def _kinds(allowed: str) -> list[str]:
    if "A-Za-z" in allowed:
        return ["letters", *_kinds(allowed.replace("A-Za-z", ""))]
    named = [name for kind, name in _KINDS if kind in allowed]
    for kind, _ in _KINDS:
        allowed = allowed.replace(kind, "")
    return [*named, *allowed]


def _listed(words: list[str]) -> str:
    """As one says them: a, b or c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
