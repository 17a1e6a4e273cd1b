"""Part of a request log as a log of its own: lines of chosen exchanges, in the order of reading.

Lines stay as they were, but for those that a container runtime has split and those with secrets:
these are printed anew, and so are all lines of an anonymized log. Two steps, as in `cut`:
`CutLines.add` notes where lines are, `CutLines.write` reads them again. Sans-I/O, apart from the
`Read` and `Sink` that it is given.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.requestlog.containers import LineReader
from kafkascope.analyzer.requestlog.fields import NotUnderstood
from kafkascope.analyzer.requestlog.model import NO_RESPONSES, NOT_LOGGED, LogLine
from kafkascope.analyzer.requestlog.parsing import completed_of
from kafkascope.analyzer.requestlog.printing import line_of, prefix_of
from kafkascope.analyzer.transform import secrets
from kafkascope.dissectors.registry import API_VERSIONS
from kafkascope.dissectors.values import Uuid

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.columns import Read
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.requestlog.model import Address, Completed, LoggedBody
    from kafkascope.analyzer.transform.redaction import Redaction
    from kafkascope.captures.formats.write import Sink

# Of a note: rank and time of the line, file, offset, size.
_FIELDS: Final = 5


class CutLines:
    """Lines of chosen exchanges on their way to another log."""

    def __init__(self, redaction: Redaction) -> None:
        """`redaction`: of level `none` for lines as they are, without secrets; else `all`."""
        self._redaction = redaction
        self._notes = array("q")
        self.written = 0
        self.left_out = 0
        """Lines of text forms that are not printed anew, as their requests were not understood."""

    def add(self, exchange: Exchange) -> None:
        """Choose the line of an exchange."""
        if exchange.request is not None and exchange.logged is not None:
            (part,) = exchange.request.frame.parts
            logged = exchange.logged
            end_ns = exchange.time_ns + logged.total_ns
            self._notes.extend((logged.rank, end_ns, part.file, part.at, part.size))

    def write(self, sink: Sink, read: Read) -> None:
        """Write the lines. `NotKept` when they cannot be read again."""
        for written_ns, file, at, size in self._in_order():
            line = self._line(read(file, at, size), written_ns)
            if line is None:
                self.left_out += 1
            else:
                sink.write(line + b"\n")
                self.written += 1

    def _in_order(self) -> Iterator[tuple[int, int, int, int]]:
        notes = self._notes
        begins = sorted(range(0, len(notes), _FIELDS), key=notes.__getitem__)
        return ((notes[i + 1], notes[i + 2], notes[i + 3], notes[i + 4]) for i in begins)

    def _line(self, data: bytes, written_ns: int) -> bytes | None:
        """Return the line to write; None to leave it out."""
        reader = LineReader()
        # Between the parts of a split line there may be lines of another stream.
        lines = (line for line in (*reader.feed(data), *reader.finish()) if not line.offset)
        line = next(lines, None)
        if not isinstance(line, LogLine):
            return None  # the file has changed
        try:
            completed = completed_of(line, written_ns)
        except NotUnderstood:
            return None
        changed = redacted(completed, self._redaction)
        # A line in a text form may say more than its bodies: paths of the broker's disk.
        if changed == completed and self._redaction.level == "none":
            text = data.removesuffix(b"\n")
            if b"\n" not in text:
                return text
            return prefix_of(written_ns, line.level) + line.message
        unread = changed.form == "text" and changed.request.body is None
        return None if unread and changed.api_key != API_VERSIONS else line_of(changed)


def redacted(completed: Completed, redaction: Redaction) -> Completed:
    """Return a completed request as it may leave; of level `none` without its secrets."""
    key, version = completed.api_key, completed.api_version
    completed = completed._replace(
        request=_side(completed.request, redaction, secrets.in_request(key, version)),
        response=_side(completed.response, redaction, secrets.in_response(key, version)),
    )
    if redaction.level != "all":
        return completed
    names = redaction.names
    software = redaction.software(f"{completed.software_name} {completed.software_version}")
    name, _, release = software.rpartition(" ")
    broker, client, _ = completed.connection

    def address(address: Address) -> Address:
        return names.host(address[0]), address[1]

    return completed._replace(
        client_id=completed.client_id and names.name(completed.client_id, "clientId"),
        connection=completed.connection._replace(
            broker=broker and address(broker), client=address(client)
        ),
        principal=names.name(completed.principal, "principal"),
        listener=redaction.listener(completed.listener),
        software_name=name,
        software_version=release,
        record_sizes={
            (
                names.uuid(topic) if isinstance(topic, Uuid) else names.name(topic, "topicName"),
                at,
            ): n
            for (topic, at), n in completed.record_sizes.items()
        },
    )


def _side(logged: LoggedBody, redaction: Redaction, secret: bool) -> LoggedBody:
    if logged.body is None or logged.layout is None:
        # As in a capture, what cannot be read is hidden as a whole where a secret may be.
        unread = logged.gap not in (NOT_LOGGED, NO_RESPONSES) and secret
        return replace(logged, gap=NOT_LOGGED) if unread else logged
    return replace(logged, body=redaction.body(logged.layout, logged.body))
