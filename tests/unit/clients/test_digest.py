"""A login with a token: DIGEST-MD5 by the example of its RFC, and servers that can't be trusted with it."""

from __future__ import annotations

import base64
import re

import pytest

from airflow_kstream.clients.rpc.sasl import DigestLogin, LoginToken, NoProtection, digest

OFFER = b'realm="default",nonce="a b\\"c",qop="auth",charset=utf-8,algorithm=md5-sess'
TOKEN = LoginToken(b"identifier", b"password")


def test_both_proofs_are_those_of_the_example_in_rfc_2831() -> None:
    words = ("chris", "secret", "elwood.innosoft.com", "OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")
    assert digest(*words, "AUTHENTICATE") == "d388dad90d4bbd760a152321f2143af7"
    assert digest(*words, "") == "ea40f60335c427b5527b84dbabcdfffd"


def test_a_server_that_knows_the_password_is_believed_and_no_other() -> None:
    login = DigestLogin(TOKEN, "/default")
    said = dict(re.findall(r'([a-z-]+)="?((?:[^",\\]|\\.)*)', login.step(OFFER).decode()))
    user, password = (base64.b64encode(half).decode() for half in (TOKEN.identifier, TOKEN.password))
    proof = digest(user, password, "default", said["nonce"], said["cnonce"], "/default", "")
    login.end(f"rspauth={proof}".encode())
    assert login.agreed
    login.end(b"rspauth=" + b"0" * 32)
    assert not login.agreed


def test_a_server_that_says_nothing_last_is_not_believed() -> None:
    login = DigestLogin(TOKEN, "/default")
    login.end(b"rspauth=")
    assert not login.agreed


def test_a_server_that_wants_protection_is_refused() -> None:
    with pytest.raises(NoProtection, match="auth-conf"):
        DigestLogin(TOKEN, "/default").step(OFFER.replace(b'"auth"', b'"auth-int,auth-conf"'))


def test_neither_half_of_a_token_is_in_its_repr() -> None:
    assert repr(TOKEN) == "LoginToken()"
