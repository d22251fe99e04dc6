"""Documents from outside, read one level at a time, so that an error names the very field and what to do about it."""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections.abc import Collection, Iterable
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

import msgspec

from ostinato import errors
from ostinato.core import codec, shapes

T = TypeVar("T", bound=msgspec.Struct)

_PLACE = re.compile(r" - at (?:`key` in )?`\$(?P<path>[^`]*)`$")

LONGEST_HINT = 128
LONGEST_SENTENCE = 300
MOST_COMPARED = 1000
"""Finding the nearest name must stay cheap, whatever was sent."""


def read(document: Any, kind: type[T], field: str = "") -> T:
    """Turn an object into a struct; `field` is where the object stands in the whole document."""
    check_names(document, kind, field)
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise _located(error, field, kind) from None
    except RecursionError:
        raise errors.InvalidPayload(codec.too_deep(field or "the document")) from None
    except UnicodeEncodeError:
        raise no_text(field or "the document") from None
    except AttributeError:
        raise no_json(field or "the document") from None


def convert(document: Any, kind: Any, what: str, root: str = "") -> Any:
    """Turn a document into a struct whose fields are told by where they stand in it, below `root`."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        sentence, path = explained(error)
        at = f" - at `${path}`" if path else ""
        field = (root + path).removeprefix(".") or what
        raise errors.InvalidInput(f"{what} is not valid: {sentence}{at}", field=field) from None
    except UnicodeEncodeError:
        raise no_text(what) from None
    except AttributeError:
        raise no_json(what) from None
    except RecursionError:
        raise errors.InvalidPayload(codec.too_deep(what)) from None


def check_type(value: Any, kind: Any, field: str) -> None:
    """Refuse a value that is not of this type."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _located(error, field) from None
    except UnicodeEncodeError:
        raise no_text(field) from None
    except AttributeError:
        raise no_json(field) from None


def no_text(field: str) -> errors.InvalidInput:
    return errors.InvalidInput(codec.lone_surrogate(field), field=field)


def no_json(field: str) -> errors.InvalidInput:
    """What can be asked for items by key is taken for an object, and may turn out not to have any keys."""
    return errors.InvalidInput(
        f"{field} has something in it that JSON does not know: use dicts, lists, strings, numbers, booleans and None",
        field=field,
    )


def cut(sentence: str) -> str:
    """What is said of a value may repeat it, whatever its length."""
    return sentence if len(sentence) <= LONGEST_SENTENCE else sentence[:LONGEST_SENTENCE] + "..."


@functools.cache
def fields_of(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Looking at a struct evaluates its annotations, which takes far longer than to check a document against it."""
    return msgspec.structs.fields(kind)


def check_names(document: Any, kind: type[msgspec.Struct], field: str = "") -> dict[str, Any]:
    """Refuse what is not an object, a field that the struct does not have, and the lack of one that it must have."""
    given = as_object(document, field)
    fields = fields_of(kind)
    known = [part.encode_name for part in fields]
    for name in given:
        if name not in known:
            raise errors.InvalidInput(
                f"{join(field, short_text(name))} is not a known field: {nearest(name, known)}"
                f"the fields are {', '.join(known)}",
                field=join(field, short_text(name)),
            )
    for part in fields:
        if part.required and part.encode_name not in given:
            where = join(field, part.encode_name)
            raise errors.InvalidInput(f"{where} is missing: it is required", field=where)
    return given


def as_object(value: Any, field: str) -> dict[str, Any]:
    """A copy, one level deep, of what must be an object."""
    try:
        return msgspec.convert(value, dict[str, Any])
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError, AttributeError):
        raise errors.InvalidInput(
            f"{field or 'the document'} must be an object with names and values, not {short(value)}",
            field=field or "document",
        ) from None


def as_list(value: Any, field: str, least: int, most: int) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise errors.InvalidInput(f"{field} must be a list, not {short(value)}", field=field)
    items = list(cast("Iterable[Any]", value))
    if not least <= len(items) <= most:
        raise errors.InvalidInput(f"{field} has {len(items):,} items: there must be {least:,} to {most:,}", field=field)
    return items


def check_text(value: Any, field: str, longest: int) -> str:
    """Refuse what is not a text of 1 to `longest` printable characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= longest or not _is_clean(value):
        raise errors.InvalidInput(
            f"{field} must be a text of 1 to {longest} characters without control characters, not {short(value)}",
            field=field,
        )
    return value


def check_seconds(value: float | None, field: str, longest: float) -> None:
    """Refuse a time that is no time. (NaN fails every comparison, and so this one.)"""
    if value is not None and not (isinstance(value, (int, float)) and 0 < value <= longest):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.InvalidInput(
            f"{field} must be more than 0 and at most {longest:,.0f} seconds, not {short(value)}", field=field
        )


def check_version(value: Any, field: str = "version") -> int:
    """Refuse what is not the number of a version."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**31:
        raise errors.InvalidInput(f"{field} must be 1 to {2**31 - 1:,}, not {short(value)}", field=field)
    return value


def look_up(document: Any, path: str) -> Any:
    """The value at a path like `metadata.entities_changed`. What is null is as good as not there: both are None."""
    for name in path.split("."):
        if not isinstance(document, dict):
            return None
        document = cast("dict[str, Any]", document).get(name)
    return document


def check_path(value: str, field: str) -> None:
    check_text(value, field, 256)
    if "" in value.split("."):
        raise errors.InvalidInput(f"{field} {value!r} is not a path: use names with dots in between", field=field)


def join(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean 'this'? `, or nothing, to be put into a message."""
    if len(name) > LONGEST_HINT:
        return ""
    close = difflib.get_close_matches(name, itertools.islice(known, MOST_COMPARED), n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def listed(names: Collection[str], most: int = 5) -> str:
    """The first of many names, and how many more there are."""
    more = len(names) - most
    shown = ", ".join(itertools.islice(names, most))
    return f"{shown} and {more:,} more" if more > 0 else shown


def short(value: object) -> str:
    """A value in a message: a few words, however large or deep it is."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 256:
        return "a very large number"
    try:
        return short_text(repr(value[:60] if isinstance(value, str) else value))
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"
    except Exception:  # it cannot say what it is, or has a number in it that is too long to be written down
        return f"a {type(value).__name__}"


def short_text(text: str) -> str:
    """The beginning of a text, in a form that can be sent back whatever was sent."""
    cut = text if len(text) <= 60 else text[:57] + "..."
    return cut.encode("utf-8", "backslashreplace").decode()


def _is_clean(text: str) -> bool:
    """No control characters, and no lone surrogates: neither can be shown, and not every database takes them."""
    return not any(ord(sign) < 32 or 127 <= ord(sign) < 160 or 0xD800 <= ord(sign) < 0xE000 for sign in text)


def explained(error: msgspec.ValidationError) -> tuple[str, str]:
    """What is wrong, and at which place in what was read: `.tasks[0].name`, or nothing for all of it."""
    sentence, path = str(error), ""
    if found := _PLACE.search(sentence):
        sentence, path = sentence[: found.start()], found["path"]
    return cut(shapes.explain(sentence)), path


def _located(
    error: msgspec.ValidationError, field: str, kind: type[msgspec.Struct] | None = None
) -> errors.InvalidInput:
    sentence, path = explained(error)
    if kind is not None and sentence.startswith("Invalid enum value"):
        sentence += _choices(kind, path.removeprefix("."))
    at = field + path if path.startswith("[") or not path else join(field, path.removeprefix("."))
    return errors.InvalidInput(f"{at or 'the document'} is not valid: {sentence}", field=at or "document")


def _choices(kind: type[msgspec.Struct], name: str) -> str:
    """`: use one of these`, for a field of the struct itself that takes only certain words."""
    types = [part.type for part in fields_of(kind) if part.encode_name == name]
    words = [
        word
        for one in types
        for part in (one, *get_args(one))
        if get_origin(part) is Literal
        for word in get_args(part)
    ]
    return f": use one of {', '.join(map(str, words))}" if words else ""
