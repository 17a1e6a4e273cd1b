"""Limits of the cost of schemas and payloads, each with its reason.

Schemas and payloads come from traffic, registries and folders: each size, count and depth is
checked before memory is taken for it. Tests pass smaller limits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple


class Limits(NamedTuple):
    """Sizes are bytes where the name does not say otherwise."""

    # A named tuple: a frozen dataclass of so many fields takes 2,000 calls more at each start.

    # --- the text of one schema

    # With all that it refers to. Registries take 1 MB by default; a megabyte of types compiles in
    # up to two seconds.
    schema_chars: int = 8 << 20
    # Schemas that one refers to, directly or through others; imports of a Protobuf file.
    references: int = 1000
    # References of all of these, however often one repeats.
    lookups: int = 20_000
    # Text of all that one schema refers to, whether or not its format needs it.
    referred_chars: int = 32 << 20
    # Entries of one list of subjects, versions or references.
    listed: int = 10_000
    # Of a subject or the name of a reference; a topic's name has 249.
    name_chars: int = 4096

    # Records, enums and fixed of a schema with all that it refers to.
    avro_types: int = 10_000
    # Types of any kind.
    avro_parts: int = 200_000
    # Of a record: its reader is one function, which Python compiles in a second or two.
    avro_fields: int = 10_000
    # Of Avro's decimals and numbers of JSON: Python converts 4300 at most, in quadratic time.
    decimal_digits: int = 4096
    # An int of Java.
    fixed_size: int = 2**31 - 1
    # Message types inside each other; protoc has the same limit.
    message_nesting: int = 32
    # Of a message that a generated function reads: it asks for each field, even if few are set.
    # Larger messages are walked.
    message_fields: int = 400
    # Of a pattern in a JSON Schema; a longer one is not applied.
    pattern_chars: int = 10_000

    # --- schemas together

    # Of a capture or registry: more than any registry that we know of has.
    schemas: int = 50_000
    # Memory of their texts and names.
    gathered_bytes: int = 128 << 20
    # Memory of the texts of all sources; files of a folder.
    schema_bytes: int = 256 << 20
    # Schemas that one id has in one source: two registries, contexts or a registry that began anew
    # assign it twice. A payload is tried with each.
    texts_of_entry: int = 16
    # The same of all sources.
    schemas_of_key: int = 32
    # Subjects and ids of one schema: `"string"` has as many as there are topics.
    names_of_entry: int = 1000
    # Sources listed for one schema.
    origins: int = 10
    # Sentences about what was left out; more are counted.
    problems: int = 20
    # Files of a folder and the folders in it.
    folder_files: int = 20_000
    # Folders inside folders: packages of Protobuf.
    folder_depth: int = 16
    # Of a folder's index; of a file in the cache of a registry.
    index_bytes: int = 32 << 20
    # Of a record in a registry's topic: a subject and little else.
    journal_key: int = 8192
    # Of a request's path that decide whether it is to a registry.
    path_chars: int = 2000

    # --- compiled schemas

    # Ready at once; the oldest is compiled anew when it is needed again.
    compiled: int = 5000
    # Text of these, with what they refer to: compiled they take up to 20 times that.
    compiled_chars: int = 16 << 20
    # Of those let go before circles of objects are collected; four times that where the last ones
    # were in none, for a collection looks at all objects.
    collected_chars: int = 4 << 20
    # Text that is compiled in all: a megabyte takes up to two seconds. Five thousand schemas of 12
    # KB each are as much.
    compiling_chars: int = 64 << 20
    # Messages of a Protobuf type that are walked before its fast reader is made, which takes as
    # long as to walk some twenty, and the memory of ten thousand times their schema.
    walked: int = 16
    # Beginnings of payloads whose schema is remembered.
    prefixes: int = 10_000

    # --- one payload

    # Each may become an object of 230 bytes; brokers take messages of 1 MB by default.
    avro_bytes: int = 3 << 19
    # Each may become 150 bytes.
    protobuf_bytes: int = 2 << 20
    # Of JSON that is read as a whole, schemas included.
    json_bytes: int = 24 << 20
    # In such JSON, about: three bytes may become an object of sixty.
    json_values: int = 1_500_000
    # Arrays and objects inside each other; orjson writes 254 levels.
    json_nesting: int = 200
    # Containers inside each other, in Avro schemas, Avro payloads and messages; protobuf has the
    # same limit. The walks have up to four frames for a level, of the thousand that Python allows.
    nesting: int = 100
    # Messages of google.protobuf.Any inside each other.
    any_nesting: int = 16
    # Values without bytes (nulls, empty records) that an Avro payload has for nothing.
    empty_values: int = 65_536
    # Such values that a byte pays for.
    empty_per_byte: int = 64
    # That a compressed payload of AWS Glue expands to.
    inflated: int = 4 << 20
    # Of it, to see whether it is compressed at all.
    inflated_probe: int = 4096
    # Expansion that text never reaches.
    unusual_ratio: int = 100
    # Of such payloads together: each takes milliseconds, and a batch may have thousands.
    unusual_bytes: int = 256 << 20
    # Values tried to encode one: unions of records that differ deep inside try all of them.
    union_steps: int = 2_000_000

    # --- checks by JSON Schema; a keyword costs some 10 us

    # Keywords applied when a schema is checked by that of its draft, references included.
    schema_steps: int = 250_000
    # Keywords applied to a small value: less than a second.
    value_steps: int = 30_000
    # More of them for larger values.
    steps_per_byte: int = 4
    # For any value: some seconds.
    most_steps: int = 400_000
    # Values that took too many steps, before a schema is given up.
    slow_values: int = 3
    # Of one encoded value.
    numbers_as_text: int = 100
    # Of jsonschema's messages, which may repeat a value of megabytes.
    message_chars: int = 200
    # Of Python's stack, for a keyword inside another.
    frames_per_keyword: int = 4
    # Left for what a keyword calls.
    spare_frames: int = 120

    # --- a registry

    connect_seconds: float = 5.0
    # Of a request with its redirects, also where a registry sends a byte a second.
    total_seconds: float = 15.0
    # A schema of 8 MB, with what JSON escapes.
    answer_bytes: int = 10 << 20
    redirects: int = 3
    # In a row; no more requests follow.
    failures: int = 3
    # Ids that it lacks; more are bytes that look like ids.
    missing: int = 1000
    # That an answer is valid: ids do not change their meaning, but registries of developers begin
    # anew at 1.
    found_seconds: float = 24 * 3600.0
    # The same of one that says that there is no such schema.
    missing_seconds: float = 15 * 60.0

    # --- suggestions and comparisons of schemas, which people read

    # Paths of one schema that are suggested; the shortest come first.
    paths: int = 2000
    # Names looked at for them.
    path_names: int = 20_000
    # Of one path.
    path_steps: int = 8
    # Parts of a JSON Schema that one object may consist of.
    schema_parts: int = 1000
    # Sentences about a new version.
    changes: int = 100
    # Pairs of types; schemas with more are compared in part.
    compared_pairs: int = 100_000
    # Properties inside each other.
    compared_nesting: int = 50
    # In one sentence.
    names_listed: int = 10

    def payload(self, format: str) -> int:
        """Return the size of the largest payload of a format that is decoded."""
        return {"avro": self.avro_bytes, "protobuf": self.protobuf_bytes, "json": self.json_bytes}[
            format
        ]


LIMITS: Final = Limits()


class SchemaBudget:
    """Counts what is taken of one limit, and reports once what was left out."""

    def __init__(
        self, most: int, problems: int, report: Callable[[str], None] = lambda text: None
    ) -> None:
        """`problems`: how many different sentences are kept and reported."""
        self._most: Final = most
        self._most_problems: Final = problems
        self._report: Final = report
        self.used = 0
        self.problems: list[str] = []
        self.more = 0
        """Sentences beyond those."""

    def holds(self, size: int) -> bool:
        return self.used + size <= self._most

    def take(self, size: int, problem: str) -> bool:
        """Return whether a size was left, which is taken; else report the problem."""
        if not self.holds(size):
            self.refuse(problem)
            return False
        self.used += size
        return True

    def refuse(self, problem: str) -> None:
        if problem in self.problems:
            return
        if len(self.problems) >= self._most_problems:
            self.more += 1
            return
        self.problems.append(problem)
        self._report(problem)
