"""Reads steps from stdin, `Produce topic=a count=60`, answers each with a line of JSON, as
java/Driver.java does. And what kafka-python and aiokafka have in common.
"""

import json
import ssl
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.interop.known import Row, payload

Arguments = dict[str, str]


def serve(
    steps: Mapping[str, Callable[[Arguments], Any]], run: Callable[[Any], Any] = lambda told: told
) -> None:
    """Run steps until stdin ends: functions by their names in lower case. `run` makes an answer of
    what they return."""
    for line in sys.stdin:
        name, *pairs = line.split()
        try:
            answer = run(steps[name.lower()](dict(pair.split("=", 1) for pair in pairs)))
        except Exception as failure:  # the answer of the step, and the trace in the log
            traceback.print_exc()
            answer = {"failed": repr(failure)}
        print(json.dumps(answer), flush=True)


def topics(a: Arguments) -> list[str]:
    """The topics that are to be made."""
    return [topic for topic in a.get("topics", "").split(",") if topic]


def travelled(count: int, read: set[str]) -> dict[str, Any]:
    """The answer to a journey."""
    same = read == {f"r{index}" for index in range(count)}
    return {"written": count, "read": len(read), "same": same}


# --- kafka-python and aiokafka


def settings(a: Arguments, client: str, suffix: str = "") -> dict[str, Any]:
    """Settings every client has."""
    conf: dict[str, Any] = {
        "bootstrap_servers": a["bootstrap"].split(","),
        "client_id": a.get("client", client) + suffix,
    }
    if "user" in a:
        conf |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": a.get("mechanism", "PLAIN"),
            "sasl_plain_username": a["user"],
            "sasl_plain_password": a["password"],
        }
    if "ca" in a:
        # A context of Python's own heeds SSLKEYLOGFILE; the one that kafka-python makes does not.
        context = ssl.create_default_context(cafile=a["ca"])
        if "cert" in a:
            context.load_cert_chain(a["cert"])
        conf |= {
            "security_protocol": "SASL_SSL" if "user" in a else "SSL",
            "ssl_context": context,
        }
    if "timeout" in a:
        conf["request_timeout_ms"] = int(a["timeout"])
    return conf


def producing(a: Arguments) -> dict[str, Any]:
    """Settings of a producer."""
    codec, acks = a.get("codec", "none"), a.get("acks", "all")
    return {
        "compression_type": None if codec == "none" else codec,
        "acks": acks if acks == "all" else int(acks),
        "enable_idempotence": a.get("idempotent", "false") == "true",
        "linger_ms": 20,
    }


def reading(a: Arguments) -> dict[str, Any]:
    """Settings of a consumer with short waits."""
    return {
        "group_id": a.get("group"),
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "isolation_level": a.get("isolation", "read_uncommitted"),
        "session_timeout_ms": 10_000,
        "heartbeat_interval_ms": 300,
        "fetch_max_wait_ms": 200,
    }


def rows(found: Mapping[Any, Iterable[Any]]) -> list[Row]:
    """What one poll gives, by partition."""
    return [
        Row(
            r.topic,
            r.partition,
            r.offset,
            r.timestamp,
            payload(r.key),
            payload(r.value),
            [[name, payload(value)] for name, value in r.headers],
        )
        for records in found.values()
        for r in records
    ]
