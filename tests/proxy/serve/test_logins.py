"""Clients log in to a served capture."""

import base64
import json
import struct

import pytest

from kafkascope.proxy.replay.peer import PeerError
from kafkascope.proxy.sasl import Credentials, tokens
from kafkascope.proxy.serve.logins import Accounts, Denied, Login
from tests.kit.served import ask, serving
from tests.kit.wire import framed

USERS = {"alice": "alice-secret", "b=o,b": "pässword"}


def logged_in(users: dict[str, str], mechanism: str, name: str, password: str) -> bool:
    login = Login(Accounts(users))
    assert login.handshake(1, mechanism)["error_code"] == 0
    client = tokens(Credentials(mechanism, name, password))
    token = next(client)
    try:
        while True:
            token = client.send(login.token(token))
    except StopIteration:
        return login.done


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", sorted(USERS))
def test_users_come_in_with_their_passwords_only(mechanism, name):
    assert logged_in(USERS, mechanism, name, USERS[name])
    for wrong_name, wrong in ((name, "wrong"), ("mallory", USERS[name])):
        with pytest.raises(Denied) as denied:
            logged_in(USERS, mechanism, wrong_name, wrong)
        assert not any(secret in str(denied.value) for secret in (*USERS.values(), "wrong"))


def bearer(**claims: str) -> bytes:
    parts = [base64.urlsafe_b64encode(json.dumps(e).encode()) for e in ({"alg": "none"}, claims)]
    token = b".".join(part.rstrip(b"=") for part in parts) + b"."
    return b"n,,\x01auth=Bearer " + token + b"\x01\x01"


def test_without_users_everybody_comes_in_who_needs_no_proof():
    assert logged_in({}, "PLAIN", "anybody", "anything")
    login = Login(Accounts())
    assert login.handshake(1, "SCRAM-SHA-256")["error_code"] == 33
    assert login.handshake(1, "OAUTHBEARER")["mechanisms"] == ["PLAIN", "OAUTHBEARER"]
    assert login.token(bearer(sub="anybody")) == b""


def test_unsecured_tokens_are_for_users():
    login = Login(Accounts(USERS))
    login.handshake(1, "OAUTHBEARER")
    assert login.token(bearer(sub="alice")) == b""
    assert login.done
    for token in (bearer(sub="mallory"), bearer(), b"n,,\x01auth=Bearer x\x01\x01", b"", b"\xff"):
        login.handshake(1, "OAUTHBEARER")
        with pytest.raises(Denied):
            login.token(token)


@pytest.mark.parametrize("token", [b"", b"n,,", b"n,,n=alice", b"p=x,,n=alice,r=1", b"\xff\0\0"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_nonsense_is_denied(mechanism, token):
    login = Login(Accounts(USERS))
    with pytest.raises(Denied):
        login.token(token)
    login.handshake(1, mechanism)
    with pytest.raises(Denied):
        login.token(token)
    with pytest.raises(Denied):
        login.token(token)


def test_secrets_are_not_shown():
    assert "alice-secret" not in repr(Accounts(USERS))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_only_users_are_served_when_there_are_some(mechanism):
    async with serving("libraries.pcap", users=USERS) as served:
        known = Credentials(mechanism, "alice", USERS["alice"])
        assert (await ask(await served.peer(credentials=known), "Metadata", 12, topics=None))[
            "topics"
        ]
        with pytest.raises(PeerError, match="does not match"):
            await served.peer(credentials=Credentials(mechanism, "alice", "wrong"))
        assert served.says("authentication failed: the password of 'alice'")
        stranger = await served.peer()
        await served.works(stranger)
        with pytest.raises(PeerError):
            await ask(stranger, "Metadata", 12)
        assert served.says("Metadata before authentication")
        assert not served.says("wrong")
        assert not served.says(USERS["alice"])


async def test_old_clients_send_bare_tokens():
    def handshake(number: int) -> bytes:
        return framed(struct.pack(">hhih", 17, 0, number, -1) + b"\0\5PLAIN")

    async with serving("libraries.pcap", users=USERS) as served:
        link = await served.link()
        assert (await link.ask(handshake(5)))[4:10] == struct.pack(">ih", 5, 0)
        assert await link.ask(framed(b"\0alice\0alice-secret")) == framed(b"")
        versions = framed(struct.pack(">hhih", 18, 0, 6, -1))
        assert (await link.ask(versions))[4:10] == struct.pack(">ih", 6, 0)
        await link.ask(handshake(7))
        link.send(framed(b"\0alice\0wrong"))
        assert await link.rest() == b""
        assert served.says("the password of 'alice'")
