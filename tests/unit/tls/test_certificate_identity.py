"""Whom a certificate names."""

from __future__ import annotations

import pytest

from cogwork.tls.identity import IdentityFrom, identity_of, names_of

CERTIFICATE = {
    "subject": (
        (("countryName", "NZ"),),
        (("organizationName", "Acme, Inc."),),
        (("commonName", "billing"),),
    ),
    "subjectAltName": (
        ("DNS", "a.example"),
        ("DNS", "b.example"),
        ("email", "ann@acme.example"),
        ("URI", "spiffe://acme/ns/billing/sa/web"),
    ),
}


@pytest.mark.parametrize(
    ("kind", "user"),
    [
        ("cn", "billing"),
        ("dn", "CN=billing,O=Acme\\, Inc.,C=NZ"),
        ("san-dns", None),
        ("san-email", "ann@acme.example"),
        ("san-uri", "spiffe://acme/ns/billing/sa/web"),
    ],
)
def test_one_name_of_the_kind_is_the_user(kind: IdentityFrom, user: str | None) -> None:
    assert identity_of(CERTIFICATE, kind) == user


@pytest.mark.parametrize("kind", ["cn", "dn", "san-dns", "san-email", "san-uri"])
def test_a_certificate_without_the_name_is_nobody(kind: IdentityFrom) -> None:
    assert names_of({}, kind) == []
    assert identity_of({}, kind) is None
    assert identity_of({}, kind, {"*": "anybody"}) is None


@pytest.mark.parametrize(
    ("kind", "users", "user"),
    [
        ("san-dns", {"*.example": "host"}, "host"),
        ("san-dns", {"A.EXAMPLE": "host"}, "host"),
        ("san-dns", {"a.*": "a", "b.*": "b"}, None),
        ("san-dns", {"*": "all"}, None),
        ("san-uri", {"spiffe://acme/ns/*/sa/*": "service"}, "service"),
        ("san-uri", {"spiffe://acme/*": "service"}, None),
        ("san-email", {"*@acme.example": "staff"}, "staff"),
        ("san-email", {"*@*.example": "staff"}, "staff"),
        ("cn", {"billing": "first", "*": "second"}, "first"),
        ("cn", {"bill": "first"}, None),
        ("cn", {"b.lling": "first"}, None),
        ("dn", {"CN=*,O=Acme\\, Inc.,C=NZ": "acme"}, "acme"),
        ("dn", {"CN=*,C=NZ": "acme"}, None),
    ],
)
def test_patterns_map_names_to_users(
    kind: IdentityFrom, users: dict[str, str], user: str | None
) -> None:
    assert identity_of(CERTIFICATE, kind, users) == user


def test_a_value_cannot_pretend_to_be_more_parts() -> None:
    forged = {"subject": ((("commonName", "x,O=Acme"),),)}
    assert identity_of(forged, "dn") == "CN=x\\,O=Acme"
    assert identity_of(forged, "dn", {"CN=*,O=Acme": "acme"}) is None
