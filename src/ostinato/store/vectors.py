"""Comparing vectors in SQLite: by sqlite-vec where it is installed, otherwise by functions of the same names.

A vector is one byte for each dimension, from -127 to 127. Only two functions are used, so that vectors live in an
ordinary table, in the same transaction as everything else. Ours take some twenty times as long.
"""

from __future__ import annotations

import array
import functools
import importlib.util
import math
import operator
import os
from typing import Any

from ostinato.core import codec

Connection = Any
"""An apsw.Connection, whose own types are too loose to check against."""


def equip(connection: Connection) -> None:
    """Give a connection what the statements need."""
    extension = _extension()
    if extension is None:
        connection.create_scalar_function("vec_int8", _read, 1, deterministic=True)
        connection.create_scalar_function("vec_distance_cosine", _distance, 2, deterministic=True)
        return
    connection.enable_load_extension(True)
    connection.load_extension(extension)
    connection.enable_load_extension(False)


def described() -> str:
    return "Python (install ostinato[search] for more speed)" if _extension() is None else "sqlite-vec"


@functools.cache
def _extension() -> str | None:
    """Where sqlite-vec is, if it is installed and can be loaded here."""
    import apsw

    found = importlib.util.find_spec("sqlite_vec")  # not imported: it would load sqlite3, and numpy where there is one
    if found is None or found.origin is None:
        return None
    path = os.path.join(os.path.dirname(found.origin), "vec0")
    trial: Connection = apsw.Connection(":memory:")
    try:
        trial.enable_load_extension(True)
        trial.load_extension(path)
    except (apsw.Error, AttributeError):
        return None
    finally:
        trial.close()
    return path


def _read(value: str | bytes | None) -> bytes | None:
    """A vector, from JSON or as it is stored."""
    return array.array("b", codec.decode(value)).tobytes() if isinstance(value, str) else value


def _distance(one: bytes | None, other: bytes | None) -> float | None:
    """1 minus the cosine of the angle."""
    if one is None or other is None:
        return None
    numbers = memoryview(one).cast("b")
    likeness = sum(map(operator.mul, numbers, _numbers(other)))
    return 1 - likeness / math.sqrt(sum(map(operator.mul, numbers, numbers)) * _square(other))


@functools.lru_cache(maxsize=8)
def _numbers(vector: bytes) -> list[int]:
    """Those of the vector that is asked for, which is the same for all that it is compared to."""
    return list(memoryview(vector).cast("b"))


@functools.lru_cache(maxsize=8)
def _square(vector: bytes) -> int:
    return sum(map(operator.mul, _numbers(vector), _numbers(vector)))
