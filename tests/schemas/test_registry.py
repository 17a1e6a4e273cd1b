"""The registry client against registries on loopback that behave, hang, drip, redirect and lie."""

from __future__ import annotations

import os
import re
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any

import orjson
import pytest

from kafkascope.schemas import registry_http
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Reference, SchemaKey
from kafkascope.schemas.registry import Registry
from kafkascope.schemas.registry_http import HttpClient, RegistryCache, address_of
from tests.kit.authority import Authority

AVRO = '{"type": "record", "name": "R", "fields": []}'
GUID = "f0225c91-ba20-f19f-3f5c-d09fa528d344"
MISSING = (404, {"error_code": 40403, "message": "Schema not found"})
X = {"name": "X", "subject": "x/y", "version": 2}
BASIC = {
    "/schemas/ids/1": (200, {"schema": AVRO, "references": [X]}),
    "/schemas/ids/1/versions": (200, [{"subject": "s", "version": 4}]),
    "/subjects/x%2Fy/versions/2": (200, X | {"id": 7, "schema": '"int"'}),
    f"/schemas/guids/{GUID}": (200, {"schema": '"long"'}),
    "/apis/registry/v2/ids/globalIds/5": (200, b'{"type": "string"}'),
    "/apis/registry/v2/ids/globalIds/5/references": (200, []),
    "/apis/registry/v2/ids/globalIds/6": (404, {"name": "ArtifactNotFoundException"}),
}


class Fake:
    """A registry with answers by path."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                found = outer.answers.get(self.path, (404, {"error_code": 40403}))
                if callable(found):
                    found(self)
                    return
                status, body, *more = found
                data = body if isinstance(body, bytes) else orjson.dumps(body)
                self.send_response(status)
                for name, value in more:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        # HTTPServer would ask the resolver for our name.
        self.server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[Fake]:
        thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in (registry_http.USER, registry_http.PASSWORD, registry_http.TOKEN):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def key(number: int) -> SchemaKey:
    return SchemaKey("id", number)


def quick(url: str, seconds: float = 0.6) -> Registry:
    """A registry whose patience is that of a test."""
    return Registry(url, client=HttpClient(address_of(url), total_seconds=seconds))


def test_a_schema_with_its_subjects_and_what_it_refers_to() -> None:
    with Fake(BASIC).running() as fake:
        registry = Registry(fake.url)
        first, second = registry.with_references(key(1))
        assert (first.text, first.format, first.keys) == (AVRO, "avro", (key(1),))
        assert first.subjects == (("s", 4),)
        assert first.references == (Reference("X", "x/y", 2),)
        assert (first.source, first.origin) == ("registry", fake.url)
        assert (second.text, second.subjects) == ('"int"', (("x/y", 2),))
        assert registry.problems == []


def test_each_is_asked_for_once_and_kept_for_other_runs(home: Path) -> None:
    with Fake(BASIC).running() as fake:
        one = Registry(fake.url)
        for _ in range(3):
            assert one.schema(key(1)) is not None
            assert one.schema(key(2)) is None
        assert fake.asked == ["/schemas/ids/1", "/schemas/ids/1/versions", "/schemas/ids/2"]
        other = Registry(fake.url)
        assert other.schema(key(1)) == one.schema(key(1))
        assert other.schema(key(2)) is None
        assert len(fake.asked) == 3
        modes = {stat.S_IMODE(p.stat().st_mode) for p in (home / "cache").rglob("*") if p.is_file()}
        assert modes == {0o600}
        (folder,) = (home / "cache" / "kafkascope" / "registries").iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_was_kept_grows_old(home: Path) -> None:
    now = [1000.0]
    cache = RegistryCache("http://x", home, lambda: now[0])
    cache.put("a", {"x": 1})
    cache.put("b", False)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ({"x": 1}, False, None)
    now[0] += 3600
    assert (cache.get("a"), cache.get("b")) == ({"x": 1}, None)
    now[0] += LIMITS.found_seconds
    assert cache.get("a") is None
    for file in cache.path.iterdir():
        file.write_bytes(b'{"value": ')
    assert cache.get("a") is None


def test_a_damaged_cache_is_as_none(home: Path) -> None:
    with Fake(BASIC).running() as fake:
        Registry(fake.url).schema(key(1))
        for content in (
            b"[]",
            b'{"time": 9e99, "value": 1}',
            b"\xff",
            b'{"time":1,"value":{"keys":1}}',
        ):
            for file in (home / "cache").rglob("*.json"):
                file.write_bytes(content)
            assert Registry(fake.url).schema(key(1)) is not None


def test_a_cache_folder_that_cannot_be_made_costs_nothing(home: Path) -> None:
    (home / "cache").write_text("no folder")
    with Fake(BASIC).running() as fake:
        assert Registry(fake.url).schema(key(1)) is not None


def test_guids_and_ids_of_apicurio() -> None:
    with Fake(BASIC).running() as fake:
        registry = Registry(fake.url)
        guid = registry.schema(SchemaKey("guid", GUID))
        assert guid.text == '"long"'
        assert registry.schema(SchemaKey("globalId", 5)) is None
        for base in ("/apis/registry/v2", "/apis/ccompat/v7"):
            own = Registry(fake.url + base)
            found = own.schema(SchemaKey("globalId", 5))
            assert found.keys == (SchemaKey("globalId", 5),)
            assert own.schema(SchemaKey("globalId", 6)) is None
            assert own.problems == []
        assert Registry(fake.url).schema(SchemaKey("fingerprint", 5)) is None


def hangs(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(5)


def raw(data: bytes, drip: bytes = b"") -> Callable[[BaseHTTPRequestHandler], None]:
    """Send these bytes, and then others again and again, slowly."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):
            handler.wfile.write(data)
            while drip:
                handler.wfile.write(drip)
                handler.wfile.flush()
                time.sleep(0.05)

    return send


BAD = {
    "hangs": (hangs, "no response within"),
    "drips": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", b" "), "no response within"),
    "drips headers": (raw(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), "(no response within|not HTTP)"),
    "garbage": (raw(b"\x00\x01\x02 garbage \r\n\r\n" * 9), "not HTTP"),
    "closes": (raw(b""), "connection failed"),
    "endless header": (raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000), "not HTTP"),
    "many headers": (raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000 + b"\r\n"), "not HTTP"),
    "short": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}"), "truncated"),
    "not JSON": ((200, b"<html>hello</html>"), "response contains no schema"),
    "no schema": ((200, {"schema": 7}), "response contains no schema"),
    "HTML 404": ((404, b"<html>"), "no such path"),
    "error": ((500, {"error_code": 50001}), "status 500"),
    "10 MB": ((200, {"schema": '"' + "x" * (10 << 20) + '"'}), "more than 10 MB"),
    "9 MB of schema": ((200, {"schema": '"' + "x" * (9 << 20) + '"'}), "a schema of 9 MB"),
    "gzip": ((200, b"\x1f\x8b", ("Content-Encoding", "gzip")), "content encoding"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_goes_wrong_is_one_sentence_after_a_few_requests(name: str) -> None:
    answer, sentence = BAD[name]
    with Fake({f"/schemas/ids/{n}": answer for n in range(9)}).running() as fake:
        registry = quick(fake.url)
        begun = time.monotonic()
        assert [registry.schema(key(n)) for n in range(9)] == [None] * 9
        assert time.monotonic() - begun < 4
        assert len(fake.asked) <= LIMITS.failures
        (problem,) = registry.problems
        assert problem.startswith(f"registry {fake.url}: ")
        assert re.search(sentence, problem)
        assert len(problem) < 200


def test_one_failure_does_not_end_it() -> None:
    answers: dict[str, Any] = {f"/schemas/ids/{n}": (500, b"") for n in (1, 2, 4, 5)}
    answers["/schemas/ids/3"] = answers["/schemas/ids/6"] = (200, {"schema": '"int"'})
    with Fake(answers).running() as fake:
        registry = quick(fake.url, 5)
        found = [registry.schema(key(n)) is not None for n in range(1, 7)]
        assert found == [False, False, True, False, False, True]
        assert registry.problems == []


@pytest.mark.parametrize(
    ("location", "follows"),
    [
        ("/elsewhere", True),
        ("{url}/elsewhere", True),
        ("http://localhost:{port}/elsewhere", False),
        ("https://127.0.0.1:{port}/elsewhere", False),
        ("http://127.0.0.1:1/elsewhere", False),
        ("//example.com/elsewhere", False),
        ("http://[/", False),
        ("file:///etc/passwd", False),
        ("/schemas/ids/1", False),
    ],
)
def test_redirects_stay_at_the_host(location: str, follows: bool) -> None:
    with Fake({"/elsewhere": (200, {"schema": AVRO})}).running() as fake:
        place = location.format(url=fake.url, port=fake.port)
        fake.answers["/schemas/ids/1"] = (302, b"", ("Location", place))
        registry = quick(fake.url, 5)
        assert (registry.schema(key(1)) is not None) is follows
        assert all(path in fake.answers or path.endswith("/versions") for path in fake.asked)
        assert len(fake.asked) <= 4 * LIMITS.failures


@pytest.mark.parametrize("status", [401, 403])
def test_who_is_refused_does_not_try_again(status: int) -> None:
    with Fake({f"/schemas/ids/{n}": (status, b"") for n in range(5)}).running() as fake:
        registry = quick(fake.url, 5)
        assert [registry.schema(key(n)) for n in range(5)] == [None] * 5
        assert len(fake.asked) == 1
        assert "access is denied" in registry.problems[0]


def test_the_environment_has_user_password_or_token(monkeypatch: pytest.MonkeyPatch) -> None:
    with Fake(BASIC).running() as fake:
        monkeypatch.setenv(registry_http.USER, "me")
        monkeypatch.setenv(registry_http.PASSWORD, "s3cret")
        registry = Registry(fake.url)
        registry.schema(key(1))
        monkeypatch.setenv(registry_http.TOKEN, "t0ken")
        Registry(fake.url).schema(key(3))
        found = [each.get("authorization") for each in fake.headers]
        assert found == ["Basic bWU6czNjcmV0"] * 2 + ["Bearer t0ken"]
        monkeypatch.setenv(registry_http.TOKEN, "t0k\r\nX: en")
        broken = quick(fake.url, 5)
        bad = Registry(fake.url)
        bad.schema(key(4))
        assert broken.problems == []
        assert "t0k" not in str(bad.problems)
    monkeypatch.setenv(registry_http.TOKEN, "t0ken")
    assert "unencrypted" in Registry("http://registry.example").problems[0]


@pytest.mark.parametrize(
    "url",
    [
        *("http://me:s3cret@host:1", "http://s3cret@host", "ftp://host", "host:8081", "http://"),
        *("http://host:99999", "http://host/?q=s", "http://host/a b", "http://host\n/x"),
        "http://[::1",
    ],
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="registry") as caught:
        Registry(url)
    assert "s3cret" not in str(caught.value)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    registry = quick(f"http://127.0.0.1:{port}")
    assert [registry.schema(key(n)) for n in range(5)] == [None] * 5
    assert "refused" in registry.problems[0]
    assert len(registry.problems) == 1


def test_a_listener_that_never_speaks_tls() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(9)
        registry = quick(f"https://127.0.0.1:{silent.getsockname()[1]}")
        begun = time.monotonic()
        assert registry.schema(key(1)) is None
        assert time.monotonic() - begun < 3


def test_tls_is_verified(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("server", "127.0.0.1"))
    fake = Fake(BASIC)
    fake.server.socket = context.wrap_socket(fake.server.socket, server_side=True)
    with fake.running():
        url = f"https://127.0.0.1:{fake.port}"
        stranger = Registry(url)
        assert stranger.schema(key(1)) is None
        assert "certificate is not trusted" in stranger.problems[0]
        trusted = Registry(url, ca_file=os.fspath(authority.certificate))
        assert trusted.schema(key(1)) is not None
        other = f"https://localhost:{fake.port}"
        other_name = Registry(other, ca_file=os.fspath(authority.certificate))
        assert other_name.schema(key(2)) is None
        assert "certificate" in other_name.problems[0]
    with pytest.raises(OSError, match=r".*"):
        Registry("https://localhost:1", ca_file="/nowhere")
