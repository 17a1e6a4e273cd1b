"""The extras: the modules of each, what needs them, and the one function that asks for them.

`kafkascope doctor` prints this table. Nothing else looks for a module of an extra.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.errors import Error


class MissingExtra(Error):
    """An extra that is not installed; `str()` names what needs it and how to install it."""


class Extra(NamedTuple):
    """One extra of pyproject.toml."""

    modules: tuple[str, ...]
    """All of them can be found where the extra is installed."""
    uses: tuple[str, ...]
    """What needs it, as the first words of the error message."""


EXTRAS: Final[dict[str, Extra]] = {
    "tui": Extra(
        ("textual",), ("kafkascope open", "kafkascope demo --tour", "kafkascope proxy --open")
    ),
    "web": Extra(("textual", "textual_serve", "aiohttp"), ("kafkascope open --web",)),
    "proxy": Extra(
        ("mitmproxy",), ("kafkascope proxy", "kafkascope serve --tls", "kafkascope.Proxy")
    ),
    "tls": Extra(
        ("cryptography",),
        (
            "--keylog",
            "kafkascope.open(keylog)",
            "kafkascope tls-keys check FILE CAPTURE",
            "decrypting with the keys inside a capture",
            "TLS decryption in a Spark worker",
        ),
    ),
    "schemas": Extra(
        ("google.protobuf", "jsonschema"),
        ("--schema FILE.proto or FILE.json", "decoding by a protobuf or JSON schema"),
    ),
    "parquet": Extra(
        ("pyarrow",),
        (
            "kafkascope export to Parquet",
            "kafkascope spark",
            "reading tables of kafkascope spark",
            "Capture.to_arrow",
        ),
    ),
    "spark": Extra(
        ("pyspark", "pandas", "pyarrow"), ("kafkascope spark --engine spark", "kafkascope.spark")
    ),
    "mcp": Extra(("mcp",), ("kafkascope integrations mcp",)),
    "telemetry": Extra(("opentelemetry.proto",), ("decoding the metrics of PushTelemetry",)),
}

_EXTRA_OF: Final = {use: name for name, extra in EXTRAS.items() for use in extra.uses}


def installed(name: str) -> bool:
    """Return whether the modules of an extra can be found. None is imported: mcp and pyspark take
    a second."""
    return all(map(_can_be_found, EXTRAS[name].modules))


def missing(use: str) -> str:
    """Return the error message for a use in `EXTRAS`; empty where its extra is installed."""
    name = _EXTRA_OF[use]
    if installed(name):
        return ""
    package = f"'kafkascope[{name}]'"
    return (
        f"{use} needs the extra '{name}': "
        f"pip install {package}, or pipx inject kafkascope {package}"
    )


def require(use: str, instead: str = "") -> None:
    """Raise `MissingExtra` where the extra for a use is not installed. `instead`: a command that
    works without it."""
    if message := missing(use):
        raise MissingExtra(f"{message}. Without it: {instead}" if instead else message)


def _can_be_found(module: str) -> bool:
    from importlib.util import find_spec

    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # no parent package, or hidden from the import system
        return False
    # A mere folder of that name on the path is a namespace package, which has no origin.
    return spec is not None and spec.origin is not None
