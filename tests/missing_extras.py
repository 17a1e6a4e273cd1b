"""One command, or lines of Python, for each use that an extra has: what to run without it."""

from typing import Final

from kafkascope.extras import EXTRAS
from tests.kit.samples import ROOT

CAPTURE: Final = str(ROOT / "captures" / "samples" / "sasl-old.pcap")
TLS: Final = ROOT / "tests" / "analyzer" / "captures" / "tls"
KEYS_INSIDE: Final = str(TLS / "tls13-dsb.pcapng.gz")
UPSTREAM: Final = ("--upstream", "127.0.0.1:1")

COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "kafkascope open": ("open", CAPTURE),
    "kafkascope demo --tour": ("demo", "--tour"),
    "kafkascope proxy --open": ("proxy", *UPSTREAM, "--open"),
    "kafkascope open --web": ("open", CAPTURE, "--web"),
    "kafkascope proxy": ("proxy", *UPSTREAM, "-w", "proxy.pcapng"),
    "kafkascope serve --tls": ("serve", CAPTURE, "--tls"),
    "--keylog": ("ls", CAPTURE, "--keylog", "env"),
    "kafkascope tls-keys check FILE CAPTURE": ("tls-keys", "check", "keys.log", CAPTURE),
    "--schema FILE.proto or FILE.json": ("ls", CAPTURE, "--schema", "orders=order.proto"),
    "kafkascope export to Parquet": ("export", CAPTURE, "-o", "rows.parquet"),
    "kafkascope spark": ("spark", CAPTURE, "-o", "tables"),
    "reading tables of kafkascope spark": ("stats", "latency", "stored"),
    "kafkascope spark --engine spark": ("spark", CAPTURE, "-o", "tables", "--engine", "spark"),
    "kafkascope integrations mcp": ("integrations", "mcp", CAPTURE),
}
"""Each is refused: exit code 5, the message, and nothing else. `stored` has a folder _manifest."""

PYTHON: Final[dict[str, str]] = {
    "kafkascope.Proxy": "import kafkascope; kafkascope.Proxy('127.0.0.1:1').start()",
    "kafkascope.open(keylog)": f"import kafkascope; kafkascope.open({CAPTURE!r}, keylog='keys')",
    "Capture.to_arrow": f"import kafkascope; kafkascope.open({CAPTURE!r}).to_arrow()",
    "kafkascope.spark": "import kafkascope.spark",
    "TLS decryption in a Spark worker": (
        "from kafkascope.analyzer.pipeline.tables.collect import TableOptions; "
        "from kafkascope.analyzer.pipeline.tasks import TaskConfig, Task; "
        "Task(TaskConfig(TableOptions(), [], {}, keys=b''), print)"
    ),
}
"""Each raises `MissingExtra`."""

NOTES: Final[dict[str, str]] = {
    "decrypting with the keys inside a capture": (
        "from kafkascope.analyzer.exchanges.offline import open_capture\n"
        f"with open_capture([{KEYS_INSIDE!r}]) as capture:\n"
        "    list(capture.exchanges())\n"
        "    notes = capture.key_log_errors()\n"
    ),
    "decoding by a protobuf or JSON schema": (
        "from kafkascope.schemas.known import KnownSchemas\n"
        "from kafkascope.schemas.model import PayloadError, Schema\n"
        "schema = Schema('json', '{}', (), (), (), 'folder', '')\n"
        "try:\n"
        "    notes = not KnownSchemas([schema]).compiled(schema)\n"
        "except PayloadError as error:\n"
        "    notes = error\n"
    ),
    "decoding the metrics of PushTelemetry": (
        "from kafkascope.dissectors.embedded import Around, decode\n"
        "found = decode('PushTelemetryRequest', 'metrics', b'\\n\\0', Around())\n"
        "notes = found.note\n"
    ),
}
"""Each goes on, with the message among its notes; with the extra there are none."""


USES = [(name, use) for name, extra in EXTRAS.items() for use in extra.uses]


def message(name: str, use: str) -> str:
    return (
        f"{use} needs the extra '{name}': pip install 'kafkascope[{name}]', "
        f"or pipx inject kafkascope 'kafkascope[{name}]'"
    )
