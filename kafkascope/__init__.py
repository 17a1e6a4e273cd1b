"""Protocol analyzer and proxy for the Apache Kafka wire protocol.

    import kafkascope as ks

The names below are loaded when they are first used; docs/library.md describes what they do and what
stays stable. The packages below this name are for kafkascope itself, and change:

- `kafkascope.dissectors`: schemas of every version of every API, record batches, embedded formats.
- `kafkascope.captures`: capture files, live capture, packets, TCP reassembly.
- `kafkascope.analyzer`: conversations, exchanges, filters, statistics, findings, exports, Spark.
- `kafkascope.kernel`: typed Python that reads ordinary connections, compiled where it can be.
- `kafkascope.proxy`: the proxy, its rules and recorder, `serve` and `replay`.
- `kafkascope.library`: what is behind the names below.
- `kafkascope.tui`: the terminal UI and the command line.

Importing this package imports none of them.
"""

from typing import TYPE_CHECKING, Any

from kafkascope.errors import Error

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.errors import FilterError
    from kafkascope.captures.errors import CaptureError, CutShort, NotACapture, NotAllowed
    from kafkascope.dissectors.errors import (
        BadChecksum,
        DissectError,
        Malformed,
        TooLarge,
        Truncated,
        UnknownApi,
        UnknownVersion,
    )
    from kafkascope.extras import MissingExtra
    from kafkascope.library.capture import Capture, open
    from kafkascope.library.errors import NotStarted, UsageError
    from kafkascope.library.exchange import Exchange
    from kafkascope.library.finding import Finding
    from kafkascope.library.messages import SurplusBytes, decode, encode, struct
    from kafkascope.library.proxy import Broker, Proxy
    from kafkascope.library.record import Record
    from kafkascope.library.tables import Table
    from kafkascope.proxy.control.attach import NoProxy, RequestRefused
    from kafkascope.schemas.model import PayloadError
    from kafkascope.schemas.registry_http import RegistryError

__all__ = [
    "BadChecksum",
    "Broker",
    "Capture",
    "CaptureError",
    "CutShort",
    "DissectError",
    "Error",
    "Exchange",
    "FilterError",
    "Finding",
    "Malformed",
    "MissingExtra",
    "NoProxy",
    "NotACapture",
    "NotAllowed",
    "NotStarted",
    "PayloadError",
    "Proxy",
    "Record",
    "RegistryError",
    "RequestRefused",
    "SurplusBytes",
    "Table",
    "TooLarge",
    "Truncated",
    "UnknownApi",
    "UnknownVersion",
    "UsageError",
    "decode",
    "encode",
    "open",
    "struct",
]

_HOMES = {
    "BadChecksum": "dissectors.errors",
    "Broker": "library.proxy",
    "Capture": "library.capture",
    "CaptureError": "captures.errors",
    "CutShort": "captures.errors",
    "DissectError": "dissectors.errors",
    "Exchange": "library.exchange",
    "FilterError": "analyzer.filter.errors",
    "Finding": "library.finding",
    "Malformed": "dissectors.errors",
    "MissingExtra": "extras",
    "NoProxy": "proxy.control.attach",
    "NotACapture": "captures.errors",
    "NotAllowed": "captures.errors",
    "NotStarted": "library.errors",
    "PayloadError": "schemas.model",
    "Proxy": "library.proxy",
    "Record": "library.record",
    "RegistryError": "schemas.registry_http",
    "RequestRefused": "proxy.control.attach",
    "SurplusBytes": "library.messages",
    "Table": "library.tables",
    "TooLarge": "dissectors.errors",
    "Truncated": "dissectors.errors",
    "UnknownApi": "dissectors.errors",
    "UnknownVersion": "dissectors.errors",
    "UsageError": "library.errors",
    "decode": "library.messages",
    "encode": "library.messages",
    "open": "library.capture",
    "struct": "library.messages",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from kafkascope.release import release

        return release()
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kafkascope' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"kafkascope.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
