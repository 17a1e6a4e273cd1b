"""How to get a key log from each kind of client: one declaration for `tls-keys` and docs/tls.md."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["AGENT", "WAYS", "Way"]

AGENT: Final = "extract-tls-secrets-4.0.0.jar"


class Way(NamedTuple):
    """What one kind of client offers."""

    word: str
    """What users call it, as an argument of `tls-keys`."""
    who: str
    do: tuple[str, ...]
    """Lines to type or to write, the shortest way first; what stands behind # says when."""
    works: str
    lacks: str
    """What this way does not give, and what looks like a way and is none."""
    tried: str
    """With which this was tried."""


WAYS: Final = (
    Way(
        "java",
        "Java: kafka-clients, and what is made of it",
        (
            "mvn dependency:copy -Dartifact=name.neykov:extract-tls-secrets:4.0.0"
            " -DoutputDirectory=.",
            f"JAVA_TOOL_OPTIONS=-javaagent:$PWD/{AGENT}=$PWD/keys.log java ...",
            f"java -jar {AGENT} PID $PWD/keys.log    # a program that is running",
        ),
        "TLS 1.3 and 1.2; in 1.2 the lines name sessions (`RSA Session-ID:`), which is enough",
        "connections that were there before the agent",
        "kafka-clients 2.4.1, 3.9.2 and 4.4.0 on Java 17",
    ),
    Way(
        "broker",
        "every client, at the broker",
        (
            f"java -jar {AGENT} PID $PWD/keys.log    # a broker that is running",
            f"JAVA_TOOL_OPTIONS=-javaagent:$PWD/{AGENT}=$PWD/keys.log"
            " bin/kafka-server-start.sh ...",
        ),
        "TLS 1.3 and 1.2, all clients of this broker; the agent comes as for java",
        "connections that were there before the agent, and those to other brokers: each needs it."
        " The agent makes a file that others may read: `install -m 600 /dev/null keys.log` first",
        "Kafka 4.4.0 on Java 17",
    ),
    Way(
        "librdkafka",
        "librdkafka: confluent-kafka for Python, Go, .NET and JavaScript, kcat",
        (
            "kafkascope tls-keys broker    # the secrets of these clients, from the other side",
            "SSLKEYLOGFILE=$PWD/keys.log LD_PRELOAD=$PWD/keylog.so kcat ..."
            "    # keylog.c: docs/tls.md",
        ),
        "at the broker, always; with LD_PRELOAD where the program loads the system's libssl, as"
        " kcat of Linux distributions does",
        "SSLKEYLOGFILE alone leaves an empty file; LD_PRELOAD does nothing for the wheels of"
        " confluent-kafka, which have a libssl of their own inside",
        "confluent-kafka 2.16 from PyPI, kcat of Debian 12",
    ),
    Way(
        "python",
        "Python without librdkafka: aiokafka, kafka-python",
        (
            'ssl_context=ssl.create_default_context(cafile="ca.pem")    # in the program',
            "SSLKEYLOGFILE=$PWD/keys.log python app.py",
        ),
        "TLS 1.3 and 1.2; aiokafka's `create_ssl_context` does as well",
        "kafka-python with `ssl_cafile=` makes a context of its own that writes nothing: give it"
        " `ssl_context=`",
        "aiokafka 0.14, kafka-python 3.0",
    ),
    Way(
        "go",
        "Go: franz-go, and whatever takes a tls.Config",
        ("tls.Config{KeyLogWriter: file}    // in the program: os.OpenFile(..., 0o600)",),
        "TLS 1.3 and 1.2; resumed connections of 1.2 have no line, the first one's does for them",
        "no variable of the environment: the program has to do it",
        "franz-go 1.22",
    ),
    Way(
        "node",
        "Node.js: kafkajs",
        ("NODE_OPTIONS=--tls-keylog=$PWD/keys.log node app.js",),
        "TLS 1.3 and 1.2",
        "packages that are made of librdkafka",
        "kafkajs 2.2 on Node 20",
    ),
    Way(
        "proxy",
        "every client that can be told another address",
        (
            "kafkascope proxy --upstream BROKER:9093 --upstream-tls --upstream-ca ca.pem --tls"
            " -w session.pcapng",
        ),
        "no key log at all: the proxy ends TLS itself and records plain bytes",
        "clients have to trust its CA (printed at the start); a client's own certificate is not"
        " passed on to the broker",
        "kafka-clients, librdkafka, aiokafka, kafka-python, franz-go, kafkajs",
    ),
)
"""In the order of the documentation."""
