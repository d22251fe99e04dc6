"""References and redaction, as values."""

import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from ostinato import errors, secrets

VALUE = 'pä"ss\\word/4111'
KNOWN = {"API": VALUE, "OTHER": "word/4111-more", "SHORT": "abc", "PIN": "12345678"}


def redactor(**values: str) -> secrets.Redactor:
    made = secrets.Redactor()
    for name, value in (values or KNOWN).items():
        made.add(f"secret://{name}", value)
    return made


async def test_references_are_resolved_wherever_they_stand() -> None:
    made = secrets.Redactor()
    given = {"a": "secret://API", "b": ["secret://PIN", {"c": "secret://SHORT"}], "d": "not secret://API", "e": 1}
    found = await secrets.resolve(given, KNOWN.get, made)
    assert found == {"a": VALUE, "b": ["12345678", {"c": "abc"}], "d": "not secret://API", "e": 1}
    assert made.text(f"<{VALUE}>") == "<***>"


async def test_a_source_may_be_asynchronous() -> None:
    async def source(name: str) -> str | None:
        return KNOWN.get(name)

    assert await secrets.resolve("secret://API", source, secrets.Redactor()) == VALUE


@pytest.mark.parametrize("reference", ["secret://NONE", "secret://", "secret://../etc/passwd", "secret://a/b"])
async def test_an_unknown_secret_is_named(reference: str) -> None:
    with pytest.raises(errors.UnknownSecret, match="secret://"):
        await secrets.resolve(reference, KNOWN.get, secrets.Redactor())


async def test_what_a_source_raises_is_not_repeated() -> None:
    def source(name: str) -> str:
        raise ValueError(VALUE)

    with pytest.raises(errors.OstinatoError, match="secret://API could not be read: ValueError") as caught:
        await secrets.resolve("secret://API", source, secrets.Redactor())
    assert not isinstance(caught.value, errors.TerminalError)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "leak",
    [
        VALUE,
        f"before{VALUE}after",
        json.dumps({"k": VALUE}),
        json.dumps({"k": VALUE}, ensure_ascii=False),
        json.dumps(json.dumps(VALUE)),
        repr(VALUE),
        repr(VALUE.encode()),
        "https://x/?q=p%C3%A4%22ss%5Cword%2F4111",
        VALUE.encode().hex(),
        VALUE + "-more",
    ],
)
def test_a_secret_is_hidden_in_every_form(leak: str) -> None:
    hidden = redactor().text(leak)
    assert "***" in hidden
    assert "4111" not in hidden
    assert "-more" not in hidden


def test_keys_numbers_and_bytes_are_redacted_too() -> None:
    made = redactor()
    assert made.value({VALUE: 1, "n": 12345678, "f": [12345678.5, True, None]}) == {
        "***": 1,
        "n": "***",
        "f": ["***", True, None],
    }
    data = secrets.codec.encode({"raw": base64.b64encode(VALUE.encode()).decode(), "fine": "secret://API"})
    assert secrets.codec.decode(made.payload(data)) == {"raw": "***", "fine": "secret://API"}


def test_a_short_value_is_not_redacted() -> None:
    assert redactor().text("abc abcdef") == "abc abcdef"


def test_each_line_of_a_key_is_a_secret() -> None:
    assert redactor(KEY="-----BEGIN KEY-----\nMIIEvQIBADAN\n").text("bad line MIIEvQIBADAN") == "bad line ***"


def test_a_secret_in_a_new_task_becomes_its_reference_again() -> None:
    task = {"taskId": "a", "name": "f", "input": {"key": VALUE, "url": f"https://{VALUE}@x", "short": "abc"}}
    assert redactor().document([task])[0]["input"] == {"key": "secret://API", "url": "https://***@x", "short": "abc"}


def test_secrets_come_from_files_and_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_SECRET_A", "from the environment")
    assert secrets.from_environment("A") == "from the environment"
    assert secrets.from_environment("B") is None
    (tmp_path / "A").write_text("from a file\n")
    monkeypatch.setenv("OSTINATO_SECRETS_DIR", str(tmp_path))
    assert secrets.from_environment("A") == "from a file"
    assert secrets.from_environment("B") is None


def test_log_lines_tracebacks_and_fields_are_redacted(caplog: pytest.LogCaptureFixture) -> None:
    log = secrets.RedactingLog(logging.getLogger("test.secrets"), {"job_id": f"x{VALUE}"}, redactor())
    with caplog.at_level(logging.INFO):
        log.info("plain %s and %r", VALUE, {"k": VALUE})
        log.info("%(a)s", {"a": VALUE})
        log.info("wrong %d", VALUE)
        try:
            raise ValueError(VALUE)
        except ValueError as error:
            log.exception("it failed")
            log.error("so did this", exc_info=error)
        log.debug("not heard %s", VALUE)
    shown: list[Any] = [caplog.text, *[vars(record) for record in caplog.records]]
    assert len(caplog.records) == 5
    assert caplog.text.count("ValueError: ***") == 2
    assert VALUE not in repr(shown)
    assert {record.filename for record in caplog.records} == {"test_secrets.py"}
