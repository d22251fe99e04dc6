"""Signatures, and what receivers must refuse."""

import base64
import hashlib
import hmac

import pytest

from ostinato import errors, outgoing

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = 1_614_265_330
BODY = b'{"test": 2432232314}'


def test_the_signature_is_that_of_the_standard() -> None:
    """The example that the libraries of Standard Webhooks test themselves with."""
    headers = outgoing.sign(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", NOW, BODY)
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    outgoing.verify(SECRET, headers, BODY, NOW)


def test_another_text_stands_for_its_own_bytes() -> None:
    headers = outgoing.sign("grüße", "m1", NOW, b"x")
    wanted = hmac.new("grüße".encode(), b"m1.%d.x" % NOW, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(wanted).decode()}"


def test_names_of_headers_may_be_written_in_any_way() -> None:
    headers = {name.title(): value for name, value in outgoing.sign(SECRET, "m1", NOW, BODY).items()}
    outgoing.verify(SECRET, headers, BODY, NOW)


def test_one_of_several_signatures_is_enough() -> None:
    headers = outgoing.sign(SECRET, "m1", NOW, BODY)
    headers["webhook-signature"] = f"v1,AAAA v2,{'x' * 9} {headers['webhook-signature']}"
    outgoing.verify(SECRET, headers, BODY, NOW)


@pytest.mark.parametrize("late", [-300, 0, 300])
def test_a_clock_may_be_a_little_wrong(late: int) -> None:
    outgoing.verify(SECRET, outgoing.sign(SECRET, "m1", NOW, BODY), BODY, NOW + late)


@pytest.mark.parametrize("late", [-301, 301, 86400])
def test_an_old_message_is_refused(late: int) -> None:
    with pytest.raises(errors.InvalidSignature, match="too old"):
        outgoing.verify(SECRET, outgoing.sign(SECRET, "m1", NOW, BODY), BODY, NOW + late)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook-id", "m2"),
        ("webhook-timestamp", str(NOW + 1)),
        ("webhook-timestamp", "now"),
        ("webhook-timestamp", "-1"),
        ("webhook-timestamp", "1" * 400),
        ("webhook-signature", "v1,"),
        ("webhook-signature", "v1"),
        ("webhook-signature", "v1,ä"),
        ("webhook-signature", "\ud800"),
        ("webhook-id", ""),
        ("webhook-timestamp", ""),
        ("webhook-signature", ""),
    ],
)
def test_what_was_changed_is_refused(name: str, value: str) -> None:
    headers = outgoing.sign(SECRET, "m1", NOW, BODY)
    with pytest.raises(errors.InvalidSignature):
        outgoing.verify(SECRET, headers | {name: value}, BODY, NOW)


def test_another_version_of_the_same_signature_is_refused() -> None:
    headers = outgoing.sign(SECRET, "m1", NOW, BODY)
    headers["webhook-signature"] = headers["webhook-signature"].replace("v1,", "v1a,")
    with pytest.raises(errors.InvalidSignature):
        outgoing.verify(SECRET, headers, BODY, NOW)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_not base64!", "whsec_ä"])
def test_a_secret_must_be_one(secret: str) -> None:
    with pytest.raises(errors.InvalidInput, match="secret"):
        outgoing.sign(secret, "m1", NOW, BODY)


@pytest.mark.parametrize("message", ["", "a.b", "a b", "a\r\nb", "ä"])
def test_an_id_must_be_safe_to_sign(message: str) -> None:
    with pytest.raises(errors.InvalidInput, match="id"):
        outgoing.sign(SECRET, message, NOW, BODY)
