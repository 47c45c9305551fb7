"""Reply codes and reply texts of AMQP 0-9-1."""

from __future__ import annotations

import pickle

import pytest

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import is_utf8, octets_of, text_of

SOFT = {200, 311, 312, 313, 403, 404, 405, 406}


@pytest.mark.parametrize("code", ReplyCode)
def test_an_error_closes_the_channel_or_the_connection(code: ReplyCode) -> None:
    assert ProtocolError(code, "").is_hard == (code not in SOFT)


def test_a_reply_text_begins_with_the_name_of_the_code() -> None:
    error = ProtocolError(ReplyCode.NOT_FOUND, "no queue 'q' in vhost '/'", 50, 10)
    assert str(error) == error.reply_text == "NOT_FOUND - no queue 'q' in vhost '/'"


def test_a_long_reply_text_is_cut_to_a_short_string() -> None:
    long = ProtocolError(ReplyCode.NOT_FOUND, "q" * 300).reply_text
    assert len(long) == 255
    assert long.endswith("qqq...")
    whole = ProtocolError(ReplyCode.NOT_FOUND, "q" * (255 - len("NOT_FOUND - "))).reply_text
    assert (len(whole), whole[-1]) == (255, "q")


def test_no_character_of_a_reply_text_is_cut() -> None:
    for before in range(4):
        text = ProtocolError(ReplyCode.NOT_FOUND, "q" * before + "€" * 100).reply_text
        assert 252 < len(octets_of(text)) <= 255
        assert text.endswith("€...")


def test_a_method_at_fault_is_named_once() -> None:
    error = ProtocolError(ReplyCode.SYNTAX_ERROR, "x").of_method(60, 40).of_method(10, 11)
    assert (error.code, error.explanation) == (ReplyCode.SYNTAX_ERROR, "x")
    assert (error.class_id, error.method_id) == (60, 40)


def test_an_error_is_pickled_whole() -> None:
    error = pickle.loads(pickle.dumps(ProtocolError(ReplyCode.SYNTAX_ERROR, "x", 60, 40)))
    assert (error.reply_text, error.class_id, error.method_id) == ("SYNTAX_ERROR - x", 60, 40)


@pytest.mark.parametrize("octets", [b"", b"caf\xc3\xa9", b"\xff", b"\xed\xa0\x80", b"\xc3", b"\0"])
def test_text_keeps_every_octet(octets: bytes) -> None:
    assert octets_of(text_of(octets)) == octets


def test_text_tells_whether_its_octets_are_utf8() -> None:
    assert is_utf8(text_of(b"caf\xc3\xa9"))
    assert not is_utf8(text_of(b"caf\xe9"))
    assert not is_utf8(text_of(b"\xed\xa0\x80"))
