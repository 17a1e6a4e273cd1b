"""What may import what, seen from fresh processes, and public names."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafkascope import proxy
from tests.kit.samples import ROOT

HEALTHY = ROOT / "captures" / "samples" / "sasl-old.pcap"
PACKAGES = (
    "analyzer",
    "bridges",
    "captures",
    "dissectors",
    "kernel",
    "library",
    "proxy",
    "schemas",
    "tui",
)
HEAVY = ("scapy", "construct", "mitmproxy", "textual", "pyspark", "numpy", "pyarrow", "pandas")


def loaded(statement: str) -> set[str]:
    """The modules that a fresh process holds after a statement."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_the_import_name_alone_loads_no_package() -> None:
    modules = loaded("import kafkascope")
    assert {name for name in modules if name.startswith("kafkascope")} == {
        "kafkascope",
        "kafkascope.errors",
    }


def test_the_import_name_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "kafkascope", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.startswith("kafkascope ")


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    assert loaded(f"import kafkascope.{package}").isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "module",
    ["captures.merge.inputs", "captures.streams.streams", "analyzer.conversation.conversation"],
)
def test_the_core_loads_none_of_the_heavy_libraries(module: str) -> None:
    assert loaded(f"import kafkascope.{module}").isdisjoint(HEAVY)


def test_importing_the_command_line_loads_no_message_module() -> None:
    modules = loaded("import kafkascope.tui.cli")
    assert modules.isdisjoint({*HEAVY, "kafkascope.dissectors.registry"})
    assert not [name for name in modules if name.startswith("kafkascope.dissectors.messages.")]


LATER = (
    "kafkascope.analyzer.filter.bind",
    "kafkascope.analyzer.session.session",
    "kafkascope.dissectors.embedded",
    "logging",
)
"""What `check` needs only for a filter, for the UI, for groups and for the proxy."""


DETECTORS = ("sequences", "shares", "tls", "zookeeper_sessions")
"""What has nothing to look at in a capture of plaintext Kafka without transactions."""


def loaded_by(command: str) -> set[str]:
    """The modules that a fresh process holds after a command about a healthy capture."""
    statement = f"import sys; sys.argv = {['kafkascope', command, str(HEALTHY)]}\n"
    statement += (
        "from kafkascope.tui.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass"
    )
    return loaded(statement)


def test_check_loads_only_what_a_capture_needs() -> None:
    modules = loaded_by("check")
    assert "kafkascope.analyzer.findings.unanswered" in modules
    assert modules.isdisjoint({*HEAVY, *LATER})
    assert modules.isdisjoint(f"kafkascope.analyzer.findings.{name}" for name in DETECTORS)


def test_a_list_of_exchanges_loads_no_statistic() -> None:
    modules = loaded_by("ls")
    assert "kafkascope.analyzer.statistics.table" in modules
    assert "kafkascope.analyzer.statistics.accumulators" not in modules
    assert "kafkascope.analyzer.statistics.clients" not in modules
    assert "kafkascope.schemas.model" not in modules


def test_public_names_of_the_proxy_exist() -> None:
    assert [name for name in proxy.__all__ if not hasattr(proxy, name)] == []


def test_exec_appears_once() -> None:
    folders = ("kafkascope", *PACKAGES)
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    users = [path.relative_to(ROOT) for path in sources if "exec(compile(" in path.read_text()]
    assert users == [Path("kafkascope/source.py")]


@pytest.mark.parametrize("words", ["export -o {}/x.parquet", "spark -q --engine plain -o {}/x"])
def test_tables_are_written_without_pandas(words: str, tmp_path: Path) -> None:
    # pyarrow imports it with the first list, where it is installed: 0.3 s.
    sample = "captures/samples/java-codecs.pcap"
    command = [*words.format(tmp_path).split(), sample]
    command = [sys.executable, "-X", "importtime", "-m", "kafkascope", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "pyarrow" in done.stderr
    assert "pandas." not in done.stderr
