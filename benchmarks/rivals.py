"""Other relays for the proxy's benchmark: fetched and built into the cache folder at first use.

Each function gives the command that relays `port` to `upstream`, both on loopback, and the version;
`Missing` tells why one cannot be had here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from tests.interop.maven import CACHE, Artifact, JavaClasses, classpath, jars

TOXIPROXY = "github.com/Shopify/toxiproxy/v2"
TOXIPROXY_VERSION = "v2.5.0"
KROXYLICIOUS_VERSION = "0.12.0"
LOGGING = Artifact("org.slf4j:slf4j-simple:2.0.17")
JAVA = ("java", "-Xmx400m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
NO_OP = "class Nothing:\n    def tcp_message(self, flow):\n        pass\n\naddons = [Nothing()]\n"
INSIDE = "KAFKASCOPE_BENCH_NAMESPACE"


class Missing(Exception):
    """A rival that this machine does not have, and why."""


def _need(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            raise Missing(f"no {tool} on the PATH")


def _run(*command: str, at: Path) -> str:
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise Missing(f"{command[0]}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def enter_namespace() -> None:
    """Start this program again in a network of its own, where listeners on all interfaces are on
    loopback only; return when that is not possible, or when already inside."""
    if os.environ.get(INSIDE) or not (shutil.which("unshare") and shutil.which("ip")):
        return
    inside = ("unshare", "--net", "--")
    if subprocess.run([*inside, "ip", "link", "set", "lo", "up"], capture_output=True).returncode:
        return
    script = 'ip link set lo up && exec "$@"'
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*inside, "sh", "-c", script, "sh", sys.executable, *sys.argv])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def mitmdump(folder: Path, upstream: int, port: int) -> tuple[list[str], str]:
    """mitmproxy's command line with an add-on that does nothing."""
    if importlib.util.find_spec("mitmproxy") is None:
        raise Missing("mitmproxy is not installed")
    script = folder / "nothing.py"
    script.write_text(NO_OP)
    started = "from mitmproxy.tools.main import mitmdump; mitmdump()"
    command = [sys.executable, "-c", started, "-q", "--set", f"confdir={folder / 'mitmproxy'}"]
    command += ["--mode", f"reverse:tcp://127.0.0.1:{upstream}@127.0.0.1:{port}", "-s", str(script)]
    from importlib.metadata import version

    return command, version("mitmproxy")


def haproxy(folder: Path, upstream: int, port: int) -> tuple[list[str], str]:
    """HAProxy with one thread, as our proxy has one: what forwarding costs in C."""
    _need("haproxy")
    config = folder / f"haproxy-{port}.cfg"
    config.write_text(
        "global\n    nbthread 1\n"
        "defaults\n    mode tcp\n    timeout connect 5s\n"
        "    timeout client 10m\n    timeout server 10m\n"
        f"listen bench\n    bind 127.0.0.1:{port}\n    server far 127.0.0.1:{upstream}\n"
    )
    version = re.findall(r"version (\d[\d.]*)", _run("haproxy", "-v", at=folder))[0]
    return ["haproxy", "-db", "-f", str(config)], version


def toxiproxy(folder: Path, upstream: int, port: int) -> tuple[list[str], str]:
    """Toxiproxy without toxics."""
    _need("go")
    home = CACHE / "rivals" / f"toxiproxy-{TOXIPROXY_VERSION}"
    server = home / "toxiproxy-server"
    if not server.exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "go.mod").write_text("module local/toxiproxy\n\ngo 1.21\n")
        _run("go", "get", f"{TOXIPROXY}/cmd/server@{TOXIPROXY_VERSION}", at=home)
        _run("go", "build", "-o", server.name, f"{TOXIPROXY}/cmd/server", at=home)
    config = folder / f"toxiproxy-{port}.json"
    entry = {"name": "bench", "listen": f"127.0.0.1:{port}", "upstream": f"127.0.0.1:{upstream}"}
    config.write_text(json.dumps([entry | {"enabled": True}]))
    command = [str(server), "-host", "127.0.0.1", "-port", str(free_port())]
    return [*command, "-config", str(config)], TOXIPROXY_VERSION.removeprefix("v")


def kroxylicious(folder: Path, upstream: int, port: int) -> tuple[list[str], str]:
    """Kroxylicious without filters. It listens on all interfaces: only in a namespace."""
    if not os.environ.get(INSIDE):
        raise Missing("it listens on all interfaces, and a network namespace cannot be made here")
    classes = kroxylicious_classes()
    config = folder / f"kroxylicious-{port}.yaml"
    config.write_text(
        "virtualClusters:\n"
        "  - name: bench\n"
        f"    targetCluster: {{bootstrapServers: '127.0.0.1:{upstream}'}}\n"
        "    gateways:\n"
        "      - name: default\n"
        f"        portIdentifiesNode: {{bootstrapAddress: '127.0.0.1:{port}'}}\n"
    )
    command = [*JAVA, "-cp", classes.path, "RunKroxylicious", str(config)]
    return command, KROXYLICIOUS_VERSION


def kroxylicious_classes() -> JavaClasses:
    """Its jars and our starter."""
    _need("java", "javac", "mvn")
    wanted = (Artifact(f"io.kroxylicious:kroxylicious-runtime:{KROXYLICIOUS_VERSION}"), LOGGING)
    try:
        lib = jars(f"kroxylicious-{KROXYLICIOUS_VERSION}", wanted)
    except RuntimeError as error:
        raise Missing(str(error)[-300:]) from error
    home = lib.parent / "starter"
    if not (home / "RunKroxylicious.class").exists():
        home.mkdir(exist_ok=True)
        source = Path(__file__).parent / "java" / "RunKroxylicious.java"
        _run("javac", "-nowarn", "-cp", classpath(lib), "-d", str(home), str(source), at=home)
    return JavaClasses(home, lib)


def prepare() -> dict[str, str]:
    """Fetch and build everything while the network is there; why some cannot be had."""
    reasons = {}
    for name, fetch in (
        ("toxiproxy", lambda: toxiproxy(CACHE / "rivals", 1, 1)),
        ("kroxylicious", kroxylicious_classes),
    ):
        try:
            (CACHE / "rivals").mkdir(parents=True, exist_ok=True)
            fetch()
        except (Missing, subprocess.TimeoutExpired) as error:
            reasons[name] = str(error)
    return reasons


RIVALS = {
    "haproxy": haproxy,
    "mitmdump": mitmdump,
    "kroxylicious": kroxylicious,
    "toxiproxy": toxiproxy,
}
