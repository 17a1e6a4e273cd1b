"""A value that is edited while its frame is held arrives at a real consumer with a real
deserializer."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.proxy.rules.faults import parse_fault
from tests.interop.conftest import Brokers
from tests.interop.needs import need
from tests.interop.processes import until
from tests.interop.proxied import Proxied
from tests.interop.registries import Apicurio, serializers

pytestmark = pytest.mark.interop

PROGRAM = Path(__file__).parent / "clients" / "with_deserializers.py"
PATIENCE_S = 120.0
READ: dict[str, dict[str, Any]] = {
    "avro": {"name": "Grace", "ages": {"first": 1, "second": 2**50}, "owes": "99999.99"},
    "protobuf": {"name": "Grace", "ages": {"first": "1", "second": str(2**50)}},
    "json": {"name": "Grace", "ages": {"first": 1, "second": 2**50}},
}


@pytest.fixture(scope="module")
def registry(brokers: Brokers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need("java", "mvn")
    with Apicurio(tmp_path_factory.mktemp("edits")) as running:
        yield f"{running.url}/apis/ccompat/v7"


def record_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """The one record of a frame, once its value is decoded."""
    if "topic_data" in body:
        part = body["topic_data"][0]["partition_data"][0]
    else:
        part = body["responses"][0]["partitions"][0]
    (batch,) = part["records"]["batches"]
    assert batch["codec"] == "lz4"
    (record,) = batch["records"]
    return record if "value_decoded" in record else None


class Desk:
    """Somebody who sits at the proxy."""

    def __init__(self, proxied: Proxied) -> None:
        self._proxied = proxied
        self._proxy = proxied.proxies["PLAINTEXT"]

    def do(self, what: Callable[[], Any]) -> Any:
        """Call something in the proxy's loop."""

        async def called() -> Any:
            return what()

        return self._proxied.run(called())

    def rule(self, text: str) -> None:
        """Replace the rules by one; what is held stays."""
        rules = self._proxy.rules
        self.do(lambda: (rules.clear(), rules.add(parse_fault(text))))

    def held(self) -> tuple[int, dict[str, Any]]:
        """A frame that is held, once its value can be read: the schema may have to be fetched."""

        def look() -> tuple[int, dict[str, Any]] | None:
            for number in self._proxy.held:
                body = self._proxy.held.body(number)
                if body is not None and record_of(body) is not None:
                    return number, body
            return None

        found: tuple[int, dict[str, Any]] = until(lambda: self.do(look))
        return found

    def release(self, number: int) -> None:
        """Let a frame go as it is."""
        self.do(lambda: self._proxy.held.release(number))

    def edit(self, number: int, body: dict[str, Any]) -> None:
        """Let a frame go with another body."""
        self.do(lambda: self._proxy.held.edit(number, body))


@pytest.mark.parametrize("where", ["Produce", "Fetch", "rule"])
@pytest.mark.parametrize("kind", READ)
def test_an_edited_value_is_read_by_a_real_deserializer(
    brokers: Brokers, registry: str, kind: str, where: str, tmp_path: Path, monkeypatch: Any
) -> None:
    """By hand while its frame is held, or by a rule about the answers to Fetch."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    topic = f"edited-{kind}-{where.lower()}"
    schemas = SchemaOptions(registry=registry)
    with Proxied(brokers("4.4.0"), tmp_path / "seen", ("PLAINTEXT",), schemas=schemas) as proxied:
        desk = Desk(proxied)
        desk.rule(f"api == Produce and topic == {topic} -> hold")
        command = [str(serializers()), str(PROGRAM), proxied.bootstrap(), registry, kind, topic]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
            try:
                number, body = desk.held()
                if where == "Fetch":
                    # By now the schema is known: the answer is held for what its value says.
                    desk.rule("api == Fetch and record.value.name == Ada -> hold")
                    desk.release(number)
                    number, body = desk.held()
                record = record_of(body)
                assert record is not None
                assert record["value_decoded"]["name"] == "Ada"
                record["value_decoded"]["name"] = "Grace"
                record["value_decoded"]["ages"] = {"first": 1, "second": 2**50}
                if kind == "avro":
                    assert record["value_decoded"]["owes"] == "12.50"
                    record["value_decoded"]["owes"] = "99999.99"
                if where == "rule":
                    text = json.dumps(record["value_decoded"])
                    desk.rule(f"api == Fetch and topic == {topic} -> records set value '{text}'")
                    desk.release(number)
                else:
                    desk.edit(number, body)
                out, said = client.communicate(timeout=PATIENCE_S)
            finally:
                client.kill()
        assert client.returncode == 0, said.decode()[-3000:]
        assert json.loads(out) == READ[kind]
