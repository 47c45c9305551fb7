"""Tokens: which are taken, why others are not, and where the keys come from."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import time
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from issuers import AUDIENCE, ISSUER, Issuer, jwks_server, saying

from cogwork.config.errors import ConfigurationError
from cogwork.config.oauth_settings import OAuth
from cogwork.config.reading import parse
from cogwork.container.security.oauth import jwks, key_store
from cogwork.container.security.oauth.checker import TokenChecker
from cogwork.container.security.oauth.jwks import JwksError, parse_keys, read_keys
from cogwork.container.security.permissions import permissions_of_anonymous
from cogwork.sasl.sides import Grant, LoginBusyError, TokenError

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

NOW_S = int(time.time())


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def file(issuer: Issuer, tmp_path: Path) -> str:
    path = tmp_path / "jwks.json"
    path.write_bytes(issuer.jwks())
    return str(path)


def options(place: str, **more: Any) -> OAuth:
    return OAuth(issuer=ISSUER, audience=[AUDIENCE], jwks=place, **more)


def check(place: str, token: str, **more: Any) -> Grant:
    return asyncio.run(TokenChecker(options(place, **more)).check(token))


@pytest.mark.parametrize("key", ["rsa", "ec", "ed"])
def test_a_token_of_each_kind_of_key_is_taken(issuer: Issuer, file: str, key: str) -> None:
    found = check(file, issuer.token(key=key, exp=NOW_S + 3600))
    assert found == Grant("ann", (), NOW_S + 3610.0)


def test_a_token_that_names_no_key_is_taken_by_the_one_that_suits(
    issuer: Issuer, file: str
) -> None:
    claims = {"iss": ISSUER, "aud": ["x", AUDIENCE], "sub": "ann", "exp": NOW_S + 3600}
    assert check(file, jwt.encode(claims, issuer.keys["ec"][1], "ES256")).user == "ann"


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    parts = (json.dumps(each).encode() for each in (header, claims))
    told = (base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
    return ".".join((*told, ""))


def signed_by_public_key(issuer: Issuer) -> str:
    """The attack on those that take HMACs: the public key is the secret."""
    public = issuer.keys["rsa"][1].public_key()
    secret = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW_S + 3600}
    told = unsigned({"alg": "HS256", "kid": "rsa"}, claims).removesuffix(".")
    signature = hmac.digest(secret, told.encode(), "sha256")
    return f"{told}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


BAD: dict[str, tuple[Callable[[Issuer], str], str]] = {
    "none": (
        lambda _: unsigned({"alg": "none"}, {"sub": "ann", "exp": NOW_S + 3600}),
        "algorithm is 'none'",
    ),
    "hmac": (signed_by_public_key, "algorithm is 'HS256'"),
    "expired": (lambda it: it.token(exp=NOW_S - 60), "it has expired"),
    "future nbf": (lambda it: it.token(nbf=NOW_S + 36000), "from the future"),
    "future iat": (lambda it: it.token(iat=NOW_S + 36000), "from the future"),
    "audience": (lambda it: it.token(aud="other"), "another audience"),
    "issuer": (lambda it: it.token(iss="https://evil.example"), "another issuer"),
    "no exp": (lambda it: it.token(exp=None), "no claim exp"),
    "no aud": (lambda it: it.token(aud=None), "no claim aud"),
    "no user": (lambda it: it.token(sub=None), "claim sub names no user"),
    "empty user": (lambda it: it.token(""), "claim sub names no user"),
    "unseen user": (lambda it: it.token("a\nb"), "claim sub names no user"),
    "long user": (lambda it: it.token("x" * 300), "longer than 256"),
    "endless": (lambda it: it.token(exp=10**400), "claims cannot be read"),
    "never": (lambda it: it.token(exp="soon"), "claims cannot be read"),
    "wrong key": (lambda _: Issuer().token(), "not signed by the key"),
    "unknown key": (
        lambda it: jwt.encode({}, it.keys["ec"][1], "ES256", {"kid": "old"}),
        "no key 'old' for ES256",
    ),
    "other key": (
        lambda it: jwt.encode({}, it.keys["rsa"][1], "RS256", {"kid": "ec"}),
        "no key 'ec' for RS256",
    ),
    "critical": (
        lambda it: jwt.encode({}, it.keys["ec"][1], "ES256", {"kid": "ec", "crit": ["b64"]}),
        "critical extension|no token",
    ),
    "truncated": (lambda it: it.token()[:-20], "not signed by the key|no token"),
    "two parts": (lambda it: it.token().rpartition(".")[0], "it is no token"),
    "garbage": (lambda _: "garbage", "it is no token"),
    "deep": (
        lambda _: base64.urlsafe_b64encode(b"[" * 9000).rstrip(b"=").decode() + ".e30.",
        "it is no token",
    ),
    "empty": (lambda _: "", "it is no token"),
    "a megabyte": (lambda _: "x" * (1 << 20), "over 16384"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_good_says_why_and_never_the_token(issuer: Issuer, file: str, name: str) -> None:
    make, says = BAD[name]
    token = make(issuer)
    with pytest.raises(TokenError, match=says) as caught:
        check(file, token)
    assert not token or len(token) < 10 or token[:60] not in str(caught.value)


def test_clocks_may_be_apart_by_the_leeway(issuer: Issuer, file: str) -> None:
    now_s = int(time.time())
    late = issuer.token(exp=now_s - 100, nbf=now_s + 100)
    assert check(file, late, leeway_s=600.0).expires_at_s == now_s + 500
    with pytest.raises(TokenError, match=r"future|expired"):
        check(file, late, leeway_s=0.0)


@pytest.mark.parametrize(
    ("claims", "rules", "groups"),
    [
        ({"groups": ["a", "b"]}, {"groups_claim": "groups"}, ("a", "b")),
        ({"groups": ["a"]}, {}, ()),
        ({"scope": "a:r b:w"}, {"groups_claim": "scope", "groups": {"b:w": "b"}}, ("b",)),
        ({"realm": {"roles": ["a"]}}, {"groups_claim": "realm.roles"}, ("a",)),
        ({"x.y": ["a"], "x": {"y": ["b"]}}, {"groups_claim": "x.y"}, ("a",)),
        ({"groups": 7}, {"groups_claim": "groups", "default_groups": ["all"]}, ("all",)),
        (
            {"groups": ["all", 1]},
            {"groups_claim": "groups", "default_groups": ["all"]},
            ("all", "1"),
        ),
    ],
)
def test_claims_become_groups(
    issuer: Issuer, file: str, claims: Any, rules: Any, groups: tuple[str, ...]
) -> None:
    assert check(file, issuer.token(**claims), **rules).groups == groups


def test_another_claim_may_name_the_user(issuer: Issuer, file: str) -> None:
    token = issuer.token(email="ann@example.org")
    assert check(file, token, user_claim="email").user == "ann@example.org"


# -- keys


def test_secrets_and_keys_for_other_purposes_are_left_out(issuer: Issuer) -> None:
    rsa = issuer.jwk("rsa")
    others = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared", "use": "sig"},
        rsa | {"use": "enc", "kid": "enc"},
        rsa | {"n": "!", "kid": "broken"},
        rsa | {"alg": "HS256", "kid": "hmac"},
        "text",
    ]
    found = parse_keys(json.dumps({"keys": [*others, rsa | {"alg": "PS256"}]}).encode())
    assert [(key.name, key.algorithms) for key in found] == [("rsa", ("PS256",))]
    with pytest.raises(JwksError, match="none of its 5 keys"):
        parse_keys(json.dumps({"keys": others}).encode())


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (b"<html>", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no set of keys"),
        (b'{"keys": {}}', "no set of keys"),
        (b'{"keys": []}', "none of its 0 keys"),
        (b" " * ((1 << 20) + 1), "more than 1048576 bytes"),
    ],
)
def test_what_is_no_set_of_keys_says_why(tmp_path: Path, document: bytes, says: str) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(document)
    with pytest.raises(JwksError, match=says):
        read_keys(options(str(path)))


def test_a_set_is_fetched(issuer: Issuer) -> None:
    with jwks_server(issuer.jwks()) as server:
        assert [key.name for key in read_keys(options(server.url))] == ["rsa", "ec", "ed"]


def test_what_a_server_may_not_do_says_so(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        for _ in range(20):
            request.wfile.write(b" ")
            time.sleep(0.05)

    monkeypatch.setattr(jwks, "TIMEOUT_S", 0.3)
    with jwks_server(issuer.jwks()) as other, jwks_server(b"") as server:
        answers = {
            "it redirects": saying(b"", 302, Location=other.url),
            "the status 503": saying(b"", 503),
            "more than 1048576 bytes": saying(b" " * ((1 << 20) + 1)),
            "longer than 0.3 s": drip,
        }
        for says, answer in answers.items():
            server.answer = answer
            with pytest.raises(JwksError, match=says):
                read_keys(options(server.url))
        assert other.asked == 0
    with pytest.raises(JwksError, match=r"cannot be fetched: .*refused"):
        read_keys(options(server.url))
    with pytest.raises(JwksError, match="No such file"):
        read_keys(options("/no/such/jwks.json"))


def test_keys_are_read_again_for_a_new_name_and_at_most_so_often(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        with jwks_server(issuer.jwks("rsa")) as server:
            checker = TokenChecker(options(server.url))
            tokens = [issuer.token(key="rsa")] * 5
            await asyncio.gather(*map(checker.check, tokens))
            assert server.asked == 1
            server.answer = saying(issuer.jwks())
            with pytest.raises(TokenError, match="no key 'ec'"):
                await checker.check(issuer.token(key="ec"))
            assert server.asked == 1  # it was asked just now
            monkeypatch.setattr(key_store, "PAUSE_S", 0.0)
            assert (await checker.check(issuer.token(key="ec"))).user == "ann"
            assert server.asked == 2
            server.answer = saying(b"garbage")
            with pytest.raises(TokenError, match="no key 'old'"):
                await checker.check(jwt.encode({}, issuer.keys["ec"][1], "ES256", {"kid": "old"}))
            assert server.asked == 3
            await checker.check(issuer.token(key="rsa"))

    with caplog.at_level(logging.WARNING, "cogwork"):
        asyncio.run(run())
    (told,) = caplog.messages
    assert "it is not JSON; the old keys go on" in told


def test_without_any_keys_a_login_is_put_off(
    tmp_path: Path, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(LoginBusyError, match="no keys"):
        check(str(tmp_path / "none.json"), issuer.token())
    assert "No such file or directory; no token can be checked" in caplog.text


def test_keys_that_are_taken_out_hold_no_longer_than_until_the_next_look(
    issuer: Issuer, file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def run() -> None:
        monkeypatch.setattr(key_store, "PAUSE_S", 0.0)
        checker = TokenChecker(options(file, refresh_s=0.0))
        await checker.check(issuer.token(key="ec"))
        (tmp_path / "jwks.json").write_bytes(issuer.jwks("rsa"))
        with pytest.raises(TokenError, match="no key 'ec'"):
            await checker.check(issuer.token(key="ec"))

    asyncio.run(run())


# -- the configuration


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('jwks = "http://login.example.org/"', "expected a file, an https:// URL"),
        ('jwks = "https://a:b@login.example.org/"', "a URL with a user"),
        ('jwks = "ftp://login.example.org/"', "expected a file, an https:// URL"),
        ('jwks = "https://[/"', "expected a file, an https:// URL"),
        ('jwks = "x.json"\nca = "ca.pem"', "authorities for a file"),
        ('jwks = "x.json"\nalgorithms = ["HS256"]', "one of .*RS256"),
        ('jwks = "x.json"\nalgorithms = ["none"]', "one of .*RS256"),
        ('jwks = "x.json"\nrefresh_s = 1', "a number from 10"),
        ('jwks = "x.json"\ngroups = { a = "b" }', "without groups_claim"),
        ('jwks = "x.json"\ngroups_claim = "x"\ngroups = { a = "" }', "a group's name"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused(line: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        parse(f'[oauth]\nissuer = "i"\naudience = ["a"]\n{line}\n')
    assert "a:b" not in str(caught.value)


def test_with_tokens_nobody_is_anonymous_unless_it_is_said() -> None:
    text = '[oauth]\nissuer = "i"\naudience = ["a"]\njwks = "x.json"\n'
    assert permissions_of_anonymous(parse(text)) == []
    assert permissions_of_anonymous(parse("")) != []
