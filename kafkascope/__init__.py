"""Protocol analyzer and proxy for the Apache Kafka wire protocol.

The packages below this name live in folders of the same names at the root of the repository:

- `kafkascope.dissectors`: schemas of every version of every API, record batches, embedded formats.
- `kafkascope.captures`: capture files, live capture, packets, TCP reassembly.
- `kafkascope.analyzer`: conversations, exchanges, filters, statistics, findings, exports, Spark.
- `kafkascope.proxy`: the proxy, its rules and recorder, `serve` and `replay`.
- `kafkascope.tui`: the terminal UI and the command line.

Importing this package imports none of them.
"""

__all__: list[str] = []
