"""Captures, and logs of brokers, into tables: on Spark or in this process, once or as files are
completed. Says what was written and what is damaged, and returns exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.filter.bind import IN_TASKS, bind, demand
from kafkascope.analyzer.pipeline import runner
from kafkascope.analyzer.pipeline.follow import ClosedRule, catch_up, follow
from kafkascope.analyzer.pipeline.places import is_remote, listed, size_of
from kafkascope.analyzer.pipeline.runner import Result, Used
from kafkascope.analyzer.pipeline.store import Store
from kafkascope.analyzer.pipeline.tables.collect import TableOptions
from kafkascope.analyzer.reading.options import ReadOptions, SchemaOptions
from kafkascope.analyzer.terminal import say
from kafkascope.captures.inputs.keylogs import read_key_logs
from kafkascope.captures.parts.split import SPLIT_BYTES
from kafkascope.errors import INTERRUPTED, PARTIAL

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import Legs
    from kafkascope.analyzer.logdir.opening import AtRest
    from kafkascope.captures.tls.keys.keylog import KeyLog
    from kafkascope.schemas.known import KnownSchemas
    from kafkascope.schemas.model import Schema

# Bytes on the disk of the shuffle for one of the captures.
SHUFFLED: Final = 1.2


def bound_in_tasks(text: str) -> str:
    """Return a filter that tasks can judge; `FilterError`."""
    if not text.strip():
        return ""
    why = "{} is not known yet while tables are made"
    demand(bind(text), text, IN_TASKS, why, "make tables of all, then kafkascope ls DIR -Y ...")
    return text.strip()


@dataclass(frozen=True)
class Conversion:
    """Inputs, the tables that are made of them, and where to."""

    inputs: tuple[str, ...]
    output: str
    options: TableOptions
    schemas: SchemaOptions
    keylog: tuple[str, ...] = ()
    used: Used = "refuse"
    """Treatment of tables that are already in `output`."""
    split_bytes: int = SPLIT_BYTES
    """Bytes that one task reads."""
    rule: ClosedRule | None = None
    """When a file is complete; None: all inputs are, and are converted at once."""
    once: bool = False
    """Whether files are converted that are complete by now, not those that come."""
    strict: bool = False
    """Whether damaged input is an error, not a partial result."""
    quiet: bool = False

    @cached_property
    def keys(self) -> KeyLog | None:
        return read_key_logs(self.keylog)

    def check(self) -> None:
        """Raise what is wrong with output and key logs, before Spark starts; with a `rule` each
        look at the inputs does so."""
        if self.rule is None:
            runner.check_use(self.output, Store(self.output).manifests(), self.used)
            _ = self.keys

    def run(self, engine: Any = runner.PLAIN) -> int:
        """Convert on an engine; return the exit code."""
        if (rule := self.rule) is None:
            given = {**self._how(engine), "keys": self.keys, "used": self.used}
            return self._finish(runner.run(self.inputs, self.output, self.options, **given))
        if self.once:
            return max(map(self._finish, self._look(rule, engine)), default=0)
        try:
            follow(partial(self._look, rule, engine), self._finish)
        except KeyboardInterrupt:
            # What is complete counts; the next run goes on from there.
            return INTERRUPTED
        return 0

    def _look(self, rule: ClosedRule, engine: Any) -> Iterator[Result]:
        # Key logs are read again: what was opened since has lines that are new.
        given = {**self._how(engine), "keys": read_key_logs(self.keylog)}
        return catch_up(self.inputs, self.output, self.options, rule, **given)

    def _how(self, engine: Any) -> dict[str, Any]:
        schemas = self._known_schemas()
        return {"engine": engine, "split_bytes": self.split_bytes, "schemas": schemas}

    def _known_schemas(self) -> KnownSchemas | None:
        """Return what keys and values are decoded with; None where no table shows them, or the
        user wants none of it."""
        wanted, options = self.schemas, self.options
        given = wanted.folders or wanted.assigned or wanted.registry
        if wanted.off or not (options.records or options.full or given):
            return None
        from kafkascope.analyzer.reading.schemas import known_of

        return known_of(wanted, complete=self._seen_schemas, quiet=self.quiet)

    def _seen_schemas(self) -> list[Schema]:
        """Return the schemas inside the captures."""
        from kafkascope.analyzer.exchanges.seen_schemas import seen_in

        files = listed(self.inputs)
        if any(map(is_remote, files)):
            if not self.quiet:
                say("schemas inside the captures are read of local files only: give --schemas")
            return []
        legs: Legs = "both" if self.options.both_legs else "client"
        decode_as = self.options.decode_as
        return seen_in(files, keylog=self.keylog, decode_as=decode_as, legs=legs).schemas()

    def of_logs(self, files: list[AtRest], text: str) -> int:
        """Convert the records of Kafka's own files that a filter chooses; return the exit code."""
        from kafkascope.analyzer.pipeline.tables.logs import chosen_by
        from kafkascope.analyzer.reading.at_rest import known_at_rest, payloads_at_rest

        payloads = payloads_at_rest(ReadOptions((), schemas=self.schemas, quiet=self.quiet), files)
        wanted = chosen_by(text, known_at_rest(payloads))
        result = runner.run_logs(files, self.output, self.options, wanted, payloads, self.used)
        rows, count = result.manifest["rows"], len(result.manifest["files"])
        batches = f"{rows['records']} records in {rows['record_batches']} batches"
        return self._report(result, [], f"{batches} of {count} segment{'s' * (count != 1)}")

    def _finish(self, result: Result) -> int:
        manifest, remarks = result.manifest, list[str]()
        if result.order is not None:
            from kafkascope.analyzer.reading.remarks import copies

            remarks += copies(result.order, [file["path"] for file in manifest["files"]])
        remarks += manifest.get("left_out", ())  # older batches have none
        files, chosen = len(manifest["files"]), manifest["rows"]["exchanges"]
        exchanges = f"{chosen:,} of " if manifest["options"].get("filter") else ""
        read = "lines" if result.of_logs else "packets"
        exchanges += f"{manifest['exchanges']:,} exchanges from {manifest['packets']:,} {read}"
        return self._report(result, remarks, f"{exchanges} in {files} file{'s' * (files != 1)}")

    def _report(self, result: Result, remarks: list[str], written: str) -> int:
        """Print what is damaged, left out and written; return the exit code."""
        for damage in result.damage:
            say(damage)
        if not self.quiet:
            for remark in remarks:
                say(remark)
            say(f"{written} written to {self.output} (batch {result.manifest['batch_id']})")
        return (1 if self.strict else PARTIAL) if result.damage else 0


def on_spark(
    conversion: Conversion,
    *,
    tasks: int | None,
    settings: dict[str, str],
    debug: bool,
    **cluster: Any,
) -> int:
    """Run a conversion on Spark, and end the session that was started for it; return the exit code.
    `debug`: errors of Spark are raised as they are, not as a sentence."""
    from kafkascope.analyzer.spark.engine import Spark
    from kafkascope.analyzer.spark.progress import shown
    from kafkascope.analyzer.spark.session import session, spoken

    # A batch of a followed folder is small.
    size = 0 if conversion.rule else sum(map(size_of, listed(conversion.inputs)))
    shuffled = int(SHUFFLED * size)
    with session(shuffle_bytes=shuffled, settings=settings, **cluster) as spark_session:
        try:
            with shown(spark_session, size, quiet=conversion.quiet):
                return conversion.run(Spark(spark_session, tasks))
        except Exception as error:
            text = None if debug else spoken(error)
            if text is None:
                raise
            raise text from None
