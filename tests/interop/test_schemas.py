"""Real serializers with a real registry: what was written is what is decoded, wherever the schemas
come from."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.exchanges.seen_schemas import seen_in
from kafkascope.schemas.model import SchemaKey
from kafkascope.schemas.registry import Registry
from kafkascope.tui.cli import main
from tests.interop.brokers import Cluster
from tests.interop.conftest import Brokers
from tests.interop.drivers import go_program, js_program
from tests.interop.needs import need
from tests.interop.registries import Apicurio, serializers
from tests.interop.sniff import sniff
from tests.kit.schemas import by_key, form

pytestmark = pytest.mark.interop

CLIENTS = Path(__file__).parent / "clients"
PROGRAM = CLIENTS / "with_serializers.py"
MISTAKES = CLIENTS / "with_mistakes.py"
WAYS = ("capture", "registry", "folder")


class Recorded(NamedTuple):
    """A capture, what was written in it, and the registry that still runs."""

    capture: Path
    registry: Apicurio
    written: list[dict[str, Any]]


class Registered(NamedTuple):
    """A broker and a registry that run."""

    broker: Cluster
    registry: Apicurio

    def sniffed(self, path: Path, *program: str | Path) -> str:
        """Run a client, with its packets in a file; gives what it printed."""
        url = f"{self.registry.url}/apis/ccompat/v7"
        with sniff(path, [*self.broker.ports("PLAINTEXT"), self.registry.port]):
            command = [*program, self.broker.bootstrap(), url]
            done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@pytest.fixture(scope="module")
def registered(brokers: Brokers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registered]:
    need("java", "mvn", "tcpdump")
    broker = brokers("4.4.0")
    with Apicurio(tmp_path_factory.mktemp("registry")) as registry:
        yield Registered(broker, registry)


@pytest.fixture(scope="module")
def recorded(registered: Registered, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    path = tmp_path_factory.mktemp("schemas") / "written.pcap"
    said = registered.sniffed(path, serializers(), PROGRAM)
    return Recorded(path, registered.registry, list(map(json.loads, said.splitlines())))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def run(*words: str) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


def taken(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a broker took of what was written; what it refused, as the topic was new, is
    sent again."""
    return [
        {
            "topic": each["topic"],
            "id": each.get("value_schema", {}).get("id"),
            "value": each.get("value_decoded", each["value"]),
        }
        for each in records
        if each["source"] == "produce" and each["value"] is not None and each["offset"] is not None
    ]


def in_order(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(values, key=json.dumps)


@pytest.mark.parametrize("way", WAYS)
def test_values_are_decoded_as_they_were_written(
    recorded: Recorded, way: str, tmp_path: Path
) -> None:
    options: list[str] = []
    if way == "registry":
        options = ["--registry", f"{recorded.registry.url}/apis/ccompat/v7"]
    elif way == "folder":
        run("schemas", str(recorded.capture), "-o", str(tmp_path / "schemas"))
        options = ["--schemas", str(tmp_path / "schemas")]
    said = run("records", str(recorded.capture), *options, "--json")
    records = [json.loads(line) for line in said.splitlines()]
    assert in_order(taken(records)) == in_order(recorded.written)
    assert {each["value_schema"]["source"] for each in records} == {way}


def test_the_registry_says_what_the_traffic_said(recorded: Recorded) -> None:
    seen = by_key(seen_in([recorded.capture]).schemas())
    registry = Registry(f"{recorded.registry.url}/apis/ccompat/v7")
    for key, schema in seen.items():
        if key.namespace == "id":
            own = registry.schema(key)
            assert own is not None
            assert form(own) == form(schema)
            assert own.references == schema.references
    assert registry.schema(SchemaKey("id", 424_242)) is None
    assert registry.problems == []


def test_apicurios_own_api_gives_the_same_texts(recorded: Recorded) -> None:
    compatible = Registry(f"{recorded.registry.url}/apis/ccompat/v7")
    own = Registry(f"{recorded.registry.url}/apis/registry/v2")
    found = [own.schema(SchemaKey("globalId", number)) for number in range(1, 5)]
    texts = {each.text for each in found if each is not None}
    ids = {each["id"] for each in recorded.written}
    assert texts >= {schema.text for n in ids if (schema := compatible.schema(SchemaKey("id", n)))}
    assert own.schema(SchemaKey("globalId", 424_242)) is None
    assert own.schema(SchemaKey("contentId", 424_242)) is None
    assert own.problems == []


@pytest.mark.parametrize("language", ["go", "js"])
def test_serializers_of_other_languages(
    registered: Registered, language: str, tmp_path: Path
) -> None:
    here = Path(__file__).parent
    command = js_program(here / "schemas_js")
    if language == "go":
        command = [go_program(here / "schemas_go")]
    path = tmp_path / "written.pcap"
    written = list(map(json.loads, registered.sniffed(path, *command).splitlines()))
    records = [json.loads(line) for line in run("records", str(path), "--json").splitlines()]
    assert in_order(taken(records)) == in_order(written)
    said = run("check", str(path), "--json", "--fail-on", "never").splitlines()
    assert not [line for line in said if '"name":"schema-' in line]


@pytest.fixture(scope="module")
def mistaken(registered: Registered, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mistakes") / "mistakes.pcap"
    registered.sniffed(path, serializers(), MISTAKES)
    return path


@pytest.mark.parametrize("way", WAYS)
def test_what_is_wrong_with_schemas_is_told_with_who_wrote_it(
    mistaken: Path, registered: Registered, way: str, tmp_path: Path
) -> None:
    options: list[str] = []
    if way == "registry":
        options = ["--registry", f"{registered.registry.url}/apis/ccompat/v7"]
    elif way == "folder":
        run("schemas", str(mistaken), "-o", str(tmp_path / "schemas"))
        options = ["--schemas", str(tmp_path / "schemas")]
    said = run("check", str(mistaken), *options, "--json", "--fail-on", "never")
    every = [json.loads(line) for line in said.splitlines()]
    found = [each for each in every if each["name"].startswith("schema-")]
    told = {(each["name"], *about(each)) for each in found}
    assert told == {
        ("schema-breaks", "schema-breaks", "shop-2"),
        ("schema-unknown", "schema-unknown", "of-staging"),
        ("schema-mixed", "schema-mixed", "script"),
        ("schema-mixed", "schema-mixed", "javascript"),
        ("schema-of-key", "schema-of-key", "wrong-subject"),
    }
    texts = {each["name"]: each["text"] for each in found}
    assert ", offset " in next(each["text"] for each in found if "script" in about(each))
    assert "id 60" in texts["schema-unknown"]
    assert "amount" in texts["schema-breaks"]
    for each in found:
        exchanges = run("ls", str(mistaken), "-Y", each["filter"], "--json").splitlines()
        assert [one for one in map(json.loads, exchanges) if one["client_id"] in about(each)]


def about(finding: dict[str, Any]) -> tuple[str, str]:
    """Topic and client of a finding."""
    named = dict(each.split("=", 1) for each in finding["entities"])
    return named["topic"], named["client"]
