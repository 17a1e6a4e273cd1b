"""Notes of the user about a capture, kept in a file beside it: marks and comments on exchanges,
exchanges to ignore, names of topic ids. Exchanges are kept by id, as their numbers depend on how a
capture is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.transform.marks import SCHEMA
from kafkascope.dissectors.values import Uuid
from kafkascope.tui.settings.config import put_json


class Notes:
    """Keeps notes about exchanges; `known` is their form for filters."""

    def __init__(self, path: Path | None = None, input_: str = "") -> None:
        self.path, self.input = path, input_
        """The capture, as the user named it; empty for several, and for a pipe."""
        self.marked: set[int] = set()
        """Numbers of exchanges."""
        self.ignored: set[int] = set()
        self.comments: dict[int, str] = {}
        self.topics: dict[bytes, str] = {}
        """Topic id -> the name that the user gave it."""
        self.known = Known(marked=self.marked, ignored=self.ignored, comments=self.comments)
        self.said = ""
        """Why the file could not be read or written."""
        self._waiting: dict[str, dict[str, Any]] = {}
        """Notes from the file by exchange id, as long as their exchanges have not come."""
        self._looked = 0
        if path is not None:
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            read = json.loads(path.read_text("utf-8"))
            entries, topics = read["exchanges"], read.get("topics", {})
            self.topics = {bytes(Uuid.parse(id_)): str(name) for id_, name in topics.items()}
            self._waiting = {
                str(each["id"]): {
                    "marked": bool(each.get("marked")),
                    "ignored": bool(each.get("ignored")),
                    "comment": str(each.get("comment", "")),
                }
                for each in entries
            }
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self.said = f"{path.name}: cannot be read ({error}); marks are not kept"
            self.path = None

    def give_names(self, session: Session) -> None:
        """Give a session the names of topics; those that the capture tells replace them."""
        for topic_id, name in self.topics.items():
            session.context.names.learn(topic_id, name)

    def resolve(self, session: Session) -> bool:
        """Find the exchanges of notes from the file; return whether any came."""
        size = len(session) + session.dropped
        if not self._waiting or size == self._looked:
            return False
        begin, self._looked = max(0, self._looked - session.dropped), size
        found = False
        ids = session.ids(begin)
        for id_ in list(self._waiting):
            index = _find(ids, id_)
            if index is None:
                continue
            entry = self._waiting.pop(id_)
            number = session.columns["number"][begin + index]
            if entry["marked"]:
                self.marked.add(number)
            if entry["ignored"]:
                self.ignored.add(number)
            if entry["comment"]:
                self.comments[number] = entry["comment"]
            found = True
        return found

    @property
    def home(self) -> str:
        """Where notes are kept, as a sentence."""
        if self.path is None:
            return "Marks and comments are not saved: the input is not a file."
        return f"Marks and comments are saved in {self.path}."

    def mark(self, number: int, session: Session) -> None:
        """Mark an exchange, or unmark it."""
        self.marked ^= {number}
        self._write(session)

    def ignore(self, number: int, session: Session) -> None:
        """Ignore an exchange, or no more."""
        self.ignored ^= {number}
        self._write(session)

    def name_topic(self, topic_id: bytes, name: str, session: Session) -> None:
        self.topics[topic_id] = name
        session.context.names.learn(topic_id, name)
        self._write(session)

    def comment(self, number: int, text: str, session: Session) -> None:
        """Comment on an exchange; an empty text removes the comment."""
        if text:
            self.comments[number] = text
        else:
            self.comments.pop(number, None)
        self._write(session)

    def _write(self, session: Session) -> None:
        if self.path is None:
            return
        entries: list[dict[str, Any]] = [
            {
                "id": session.ids(index, index + 1).hex(),
                "number": number,
                "marked": number in self.marked,
                "ignored": number in self.ignored,
                "comment": self.comments.get(number),
            }
            for number in sorted(self.marked | self.ignored | self.comments.keys())
            if (index := session.index_of(number)) is not None
        ]
        entries += [{"id": id_, **each} for id_, each in self._waiting.items()]
        entries = [{name: value for name, value in each.items() if value} for each in entries]
        topics = {str(Uuid(id_)): name for id_, name in self.topics.items()}
        content = {"schema": SCHEMA, "exchanges": entries, **({"topics": topics} if topics else {})}
        try:
            if entries or topics:
                put_json(self.path, content, indent=1, shared=True)
            else:
                self.path.unlink(missing_ok=True)
        except OSError as error:
            self.said = f"marks are kept only until you leave: {error.strerror or error}"
            self.path = None


def _find(ids: bytes, id_: str) -> int | None:
    """Return the place of an id, in hexadecimal, among ids of eight bytes each."""
    try:
        octets = bytes.fromhex(id_) if len(id_) == 16 else b""
    except ValueError:
        octets = b""
    at = ids.find(octets) if octets else -1
    while at >= 0 and at % 8:
        at = ids.find(octets, at + 1)
    return None if at < 0 else at // 8
