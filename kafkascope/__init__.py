"""Protocol analyzer and proxy for the Apache Kafka wire protocol.

    import kafkascope as ks

The names below are loaded when they are first used; docs/library.md tells what they do and what
stays stable. The packages below this name are for kafkascope itself, and change:

- `kafkascope.dissectors`: schemas of every version of every API, record batches, embedded formats.
- `kafkascope.captures`: capture files, live capture, packets, TCP reassembly.
- `kafkascope.analyzer`: conversations, exchanges, filters, statistics, findings, exports, Spark.
- `kafkascope.proxy`: the proxy, its rules and recorder, `serve` and `replay`.
- `kafkascope.library`: what is behind the names below.
- `kafkascope.tui`: the terminal UI and the command line.

Importing this package imports none of them.
"""

from typing import TYPE_CHECKING, Any

from kafkascope.errors import Error

if TYPE_CHECKING:
    from kafkascope.dissectors.errors import DissectError
    from kafkascope.library.messages import SurplusBytes, decode, encode, struct

__all__ = [
    "DissectError",
    "Error",
    "SurplusBytes",
    "decode",
    "encode",
    "struct",
]

_HOMES = {
    "DissectError": "dissectors.errors",
    "SurplusBytes": "library.messages",
    "decode": "library.messages",
    "encode": "library.messages",
    "struct": "library.messages",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kafkascope' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"kafkascope.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
