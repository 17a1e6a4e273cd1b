"""Who a token says its sender is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.sasl import user_of


@pytest.mark.parametrize(
    ("mechanism", "token", "user"),
    [
        ("PLAIN", b"\0alice\0secret", "alice"),
        ("PLAIN", b"admin\0alice\0secret", "alice"),
        ("PLAIN", b"no separators", ""),
        ("SCRAM-SHA-256", b"n,,n=b=2Co=3Db,r=abc", "b,o=b"),
        ("SCRAM-SHA-512", b"c=biws,r=abc,p=xyz", ""),
        ("OAUTHBEARER", b"n,a=carol,\x01auth=Bearer x\x01\x01", "carol"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer x\x01\x01", ""),
        ("GSSAPI", b"\x60\x82", ""),
    ],
)
def test_the_user_of_a_token(mechanism: str, token: bytes, user: str) -> None:
    assert user_of(mechanism, token) == user


@given(st.sampled_from(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"]), st.binary(max_size=60))
def test_any_token_has_a_user_or_none(mechanism: str, token: bytes) -> None:
    assert isinstance(user_of(mechanism, token), str)
