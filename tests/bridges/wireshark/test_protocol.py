"""The extcap protocol, without Wireshark: calls, sentences, and the commands that capture."""

import re
import subprocess
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.commands.capture import capture
from kafkascope.bridges.wireshark import folders, protocol
from kafkascope.bridges.wireshark.protocol import LIVE, PROXY, ExtcapCall, WrongCall, read_call
from kafkascope.proxy.cli import proxy

SENTENCE = re.compile(r"(extcap|interface|dlt|arg|value) ((?:\{[^{}=]+=[^{}]*\})+)")


def parts(line: str) -> tuple[str, dict[str, str]]:
    """A sentence as Wireshark reads it."""
    match = SENTENCE.fullmatch(line)
    assert match is not None, line
    return match[1], dict(re.findall(r"\{([^{}=]+)=([^{}]*)\}", match[2]))


def test_interfaces() -> None:
    head, *lines = map(parts, protocol.interface_sentences("1.2"))
    assert head == ("extcap", {"version": "1.2", "help": protocol.HELP, "display": "kafkascope"})
    assert lines == [
        ("interface", {"value": PROXY, "display": "Kafka proxy"}),
        ("interface", {"value": LIVE, "display": "Kafka live capture"}),
    ]


@pytest.mark.parametrize("interface", [PROXY, LIVE])
def test_options_of_an_interface(interface: str) -> None:
    lines = [parts(line) for line in protocol.config_sentences(interface, ["lo", "eth0", "a{b}"])]
    args = [told for kind, told in lines if kind == "arg"]
    assert [told["number"] for told in args] == [str(n) for n in range(len(args))]
    assert [told["call"] for told in args] == [arg.call for arg in protocol.ARGS[interface]]
    assert {"string", "boolflag", "selector", "fileselect"} >= {told["type"] for told in args}
    (dlt,) = protocol.dlt_sentences(interface)
    assert parts(dlt)[0] == "dlt"
    values = [told for kind, told in lines if kind == "value"]
    if interface == LIVE:
        assert [(told["value"], told.get("default")) for told in values] == [
            ("lo", "true"),
            ("eth0", None),
        ]
    else:
        assert values == []


def test_calls_are_read() -> None:
    assert read_call(["--extcap-interfaces", "--extcap-version=4.0"]).interfaces
    assert read_call(["--extcap-interface", PROXY, "--extcap-dlts"]) == ExtcapCall(
        interface=PROXY, dlts=True
    )
    assert read_call([f"--extcap-interface={LIVE}", "--extcap-config"]).config
    assert read_call(["--extcap-interface", LIVE, "--extcap-cleanup-postkill"]) == ExtcapCall(
        interface=LIVE
    )
    asked = read_call(
        [
            *("--extcap-interface", PROXY, "--capture", "--fifo", "/tmp/x y"),
            *("--extcap-capture-filter", "tcp", "--upstream", "b:9092", "--tls"),
            *("--fault", "api == Fetch -> delay 1s", "--upstream-tls", "--extcap-control-in", "/c"),
        ]
    )
    assert (asked.capture, asked.fifo, asked.capture_filter) == (True, "/tmp/x y", "tcp")
    assert asked.options == {
        "--upstream": "b:9092",
        "--tls": "",
        "--fault": "api == Fetch -> delay 1s",
        "--upstream-tls": "",
    }


@pytest.mark.parametrize(
    "words",
    [
        ["--extcap-interface"],
        ["--nonsense"],
        ["--extcap-interface", PROXY, "--ports", "1"],
        ["--extcap-interface", "other", "--ports", "1"],
        ["--extcap-interface", PROXY, "--upstream"],
    ],
)
def test_wrong_calls(words: list[str]) -> None:
    with pytest.raises(WrongCall):
        read_call(words)


@given(st.lists(st.sampled_from(["--capture", "--fifo", "--extcap-interface", PROXY]) | st.text()))
def test_any_call_is_read_or_refused(words: list[str]) -> None:
    try:
        asked = read_call(words)
        protocol.words_of(asked)
    except WrongCall:
        pass


@pytest.mark.parametrize("interface", ["", "other"])
def test_interfaces_that_are_none(interface: str) -> None:
    for ask in (
        lambda: protocol.dlt_sentences(interface),
        lambda: protocol.config_sentences(interface, []),
        lambda: protocol.words_of(ExtcapCall(interface=interface)),
    ):
        with pytest.raises(WrongCall, match="unknown interface"):
            ask()


def parsed(command: click.Command, words: list[str]) -> dict[str, object]:
    """What a command of ours makes of such words; a usage error fails the test."""
    assert command.name == words[0]
    context = click.Context(command, ignore_unknown_options=False)
    command.parse_args(context, words[1:])
    return context.params


def test_the_proxy_is_started_with_its_own_options() -> None:
    asked = read_call(
        [
            *("--extcap-interface", PROXY, "--upstream", " broker:9092 ", "--listen", "[::1]:1"),
            *("--upstream-tls", "--fault", "-> delay 1s", "--upstream-ca", ""),
        ]
    )
    told = parsed(proxy, protocol.words_of(asked))
    assert told["upstream"] == "broker:9092"
    assert told["listen"] == "[::1]:1"
    assert told["faults"] == ("-> delay 1s",)
    assert (told["upstream_tls"], told["tls"], told["quiet"], told["until_eof"]) == (
        *(True, False),
        *(True, True),
    )


@pytest.mark.parametrize("value", ["false", "true"])
def test_flags_may_have_values(value: str) -> None:
    asked = read_call(["--extcap-interface", PROXY, "--upstream", "b", f"--tls={value}"])
    assert ("--tls" in protocol.words_of(asked)) == (value == "true")


def test_a_capture_is_started_with_its_own_options() -> None:
    asked = read_call(
        [
            *("--extcap-interface", LIVE, "--interface", "-odd", "--ports", "9092, 9094-9096"),
            *("--extcap-capture-filter", "host 10.0.0.1 or vlan"),
        ]
    )
    told = parsed(capture, [*protocol.words_of(asked), "-w", "x"])
    assert told["interface"] == "-odd"
    assert told["capture_filter"] == (
        "(host 10.0.0.1 or vlan) and tcp and (port 9092 or portrange 9094-9096)"
    )
    assert told["quiet"] is True
    assert (told["keylog"], told["secrets"]) == ((), False)


def test_secrets_are_captured_where_a_key_log_is_named() -> None:
    asked = read_call(
        ["--extcap-interface", LIVE, "--interface", "lo", "--keylog", " /tmp/-odd keys.log "]
    )
    told = parsed(capture, [*protocol.words_of(asked), "-w", "x"])
    assert (told["keylog"], told["secrets"]) == (("/tmp/-odd keys.log",), True)


@pytest.mark.parametrize(
    ("interface", "said"),
    [
        (PROXY, "Broker is missing; in a terminal: -o extcap.kafkascope_proxy.upstream:VALUE"),
        (LIVE, "Interface is missing; in a terminal: -o extcap.kafkascope_live.interface:VALUE"),
    ],
)
def test_what_is_required_is_asked_for(interface: str, said: str) -> None:
    with pytest.raises(WrongCall, match=said):
        protocol.words_of(ExtcapCall(interface=interface))


@pytest.mark.parametrize("ports", ["x", "0", "65536", "1-", "9-8", "1;2", "9092 or 1", "-1", "٣"])
def test_ports_that_are_none(ports: str) -> None:
    with pytest.raises(WrongCall):
        protocol.bpf(ports, "")


NEW = """\
Temp:                	/tmp
Personal Plugins:    	/home/u/.local/lib/wireshark/plugins/4.2
Personal Extcap path:	/home/u/.local/lib/wireshark/extcap
Global Extcap path:  	/usr/lib/x86_64-linux-gnu/wireshark/extcap
"""
OLD = """\
Personal Plugins:    	/home/u/.local/lib/wireshark/plugins/4.0
Extcap path:         	/usr/lib/x86_64-linux-gnu/wireshark/extcap
"""
SHARED = Path("/usr/lib/x86_64-linux-gnu/wireshark/extcap")


@pytest.mark.parametrize(
    ("text", "personal", "shared"),
    [
        (NEW, Path("/home/u/.local/lib/wireshark/extcap"), SHARED),
        (OLD, None, SHARED),
        ("", None, None),
        ("no folders\n:\n", None, None),
    ],
)
def test_folders_of_wireshark(text: str, personal: Path | None, shared: Path | None) -> None:
    assert folders.read_folders(text) == (personal, shared)


def test_the_program_starts_its_command(tmp_path: Path) -> None:
    command = ["/bin/echo", "it's", "$HOME", 'a "b"']
    path = folders.put(tmp_path / "new" / "folder", protocol.script(command))
    done = subprocess.run([path, "--more", "x  y"], capture_output=True, text=True, check=True)
    assert done.stdout == 'it\'s $HOME a "b" --more x  y\n'
    assert path.stat().st_mode & 0o777 == 0o755
    assert list(path.parent.iterdir()) == [path]


def test_only_ours_is_replaced_and_removed(tmp_path: Path) -> None:
    other = tmp_path / folders.NAME
    other.write_text("#!/bin/sh\n")
    with pytest.raises(FileExistsError):
        folders.put(tmp_path, protocol.script(["x"]))
    assert folders.take_away(tmp_path) is None
    assert other.read_text() == "#!/bin/sh\n"
    other.unlink()
    other.symlink_to(tmp_path / "gone")
    with pytest.raises(FileExistsError):
        folders.put(tmp_path, protocol.script(["x"]))
    other.unlink()
    folders.put(tmp_path, protocol.script(["x"]))
    path = folders.put(tmp_path, protocol.script(["y"]))
    assert "exec y " in path.read_text()
    assert folders.take_away(tmp_path) == path
    assert not path.exists()
    assert folders.take_away(tmp_path / "none") is None
