"""Sealing and opening, as values: what opens, what does not, and that neither says anything it should not."""

import base64
import subprocess
import sys

import pytest

from ostinato import Keyring, encryption, errors
from ostinato.core import codec

ONE, TWO = bytes(range(32)), bytes(range(1, 33))
SECRET = b'{"card":"4111-1111"}'


def text(**keys: bytes) -> str:
    return ",".join(f"{key_id}:{base64.b64encode(key).decode()}" for key_id, key in keys.items())


def test_what_is_sealed_opens_again_and_looks_different_each_time() -> None:
    ring = Keyring({"one": ONE})
    first, second = ring.seal(SECRET, b"here"), ring.seal(SECRET, b"here")
    assert first != second
    assert SECRET not in first
    assert ring.open(first, b"here") == ring.open(second, b"here") == SECRET
    assert codec.seal_key_id(first) == "one"


def test_the_first_key_encrypts_and_all_decrypt() -> None:
    old, new = Keyring({"one": ONE}), Keyring({"two": TWO, "one": ONE})
    assert new.open(old.seal(SECRET, b""), b"") == SECRET
    assert codec.seal_key_id(new.seal(SECRET, b"")) == "two"


def test_nothing_is_sealed_twice_and_plain_stays_readable_unless_refused() -> None:
    ring = Keyring({"one": ONE})
    sealed = ring.seal(SECRET, b"")
    assert ring.seal(sealed, b"") is sealed
    assert ring.open(SECRET, b"") == SECRET
    with pytest.raises(errors.DecryptionFailed, match="not encrypted"):
        Keyring({"one": ONE}, accept_plain=False).open(SECRET, b"")


@pytest.mark.parametrize("wrong", ["place", "key", "id", "bit", "short", "empty"])
def test_everything_else_fails_closed_and_names_the_key_and_nothing_more(wrong: str) -> None:
    ring = Keyring({"one": ONE})
    sealed = ring.seal(SECRET, b"here")
    reader, place = ring, b"here"
    if wrong == "place":
        place = b"there"
    elif wrong == "key":
        reader = Keyring({"one": TWO})
    elif wrong == "id":
        reader = Keyring({"two": ONE})
    elif wrong == "bit":
        sealed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    elif wrong == "short":
        sealed = sealed[:-20]
    else:
        sealed = sealed[:17]
    with pytest.raises(errors.DecryptionFailed, match="'one'") as caught:
        reader.open(sealed, place)
    assert caught.value.details == {"keyId": "one"}
    assert "4111" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_id_of_the_key_cannot_be_changed() -> None:
    both = Keyring({"one": ONE, "two": ONE})
    sealed = both.seal(SECRET, b"")
    with pytest.raises(errors.DecryptionFailed, match="'two'"):
        both.open(codec.seal_head("two") + sealed[17:], b"")


def test_a_sealed_payload_without_keys_says_what_is_missing() -> None:
    with pytest.raises(errors.DecryptionFailed, match=r"'one'.*OSTINATO_ENCRYPTION_KEYS"):
        codec.decode(Keyring({"one": ONE}).seal(SECRET, b""))


def test_keys_are_read_from_text() -> None:
    assert Keyring.parse(text(one=ONE, two=TWO)).ids == ("one", "two")
    assert base64.b64encode(ONE).decode() not in repr(Keyring.parse(text(one=ONE)))


@pytest.mark.parametrize(
    "wrong",
    ["", "one", "one:", "one:short", f"one:{'A' * 44}!", text(one=ONE) + "," + text(one=TWO), text(**{"an id": ONE})],
)
def test_bad_keys_are_refused_without_showing_them(wrong: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        Keyring.parse(wrong)
    assert "AAAA" not in str(caught.value)


def test_new_keys_are_new() -> None:
    assert len(encryption.new_key()) == 32
    assert encryption.new_key() != encryption.new_key()


def test_cryptography_is_imported_only_when_encryption_is_on() -> None:
    code = "import sys, ostinato.cli.main, ostinato.engine.engine, ostinato.app; print('cryptography' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
