"""A folder of schemas: `17.avsc`, `17.proto`, `17.json` by id, others by name, and an index.

`index.json` lists objects: `file`, `type`, one or more of `id`, `globalId`, `contentId`, `guid`,
`subjects` (with versions) and `references`; a file with several ids has several. The number of a
file that it does not list counts as `id` and as `globalId`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from kafkascope.extras import require
from kafkascope.private import PrivateFile
from kafkascope.schemas.framing import Side
from kafkascope.schemas.known import Assigned
from kafkascope.schemas.limits import LIMITS, Limits, SchemaBudget
from kafkascope.schemas.model import Format, Namespace, Reference, Schema, SchemaKey, Selector
from kafkascope.schemas.parts import (
    FORMATS,
    elements,
    guid_key,
    number_of,
    references_of,
    subject_in,
    subject_of,
)

INDEX: Final = "index.json"
ENDINGS: Final[dict[str, Format]] = {".avsc": "avro", ".proto": "protobuf", ".json": "json"}
_ENDING: Final = {kind: ending for ending, kind in ENDINGS.items()}
_TYPES: Final = {kind: name for name, kind in FORMATS.items()}
_NUMBERS: Final[tuple[Namespace, ...]] = ("id", "globalId", "contentId")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Folder(NamedTuple):
    """The schemas of a folder."""

    schemas: list[Schema]
    """Those without keys serve references; their subject is their path in the folder."""
    problems: list[str]
    """Sentences about files that could not be used."""


class _Reading:
    """Reads files below a folder, within limits for all of them."""

    def __init__(self, root: Path, limits: Limits = LIMITS) -> None:
        self.root: Final = root
        self.limits: Final = limits
        self._budget: Final = SchemaBudget(limits.schema_bytes, limits.problems)

    def problem(self, name: str, text: str) -> None:
        self._budget.refuse(f"{self.root / name}: {text}")

    def problems(self) -> list[str]:
        more = self._budget.more
        said = [f"{self.root}: {more} more files cannot be used"] if more else []
        return self._budget.problems + said

    def names(self) -> Iterator[str]:
        count = 0
        depth = len(self.root.parts)
        for place, folders, files in os.walk(self.root):
            inside = len(Path(place).parts) - depth
            deeper = inside < self.limits.folder_depth
            folders[:] = sorted(each for each in folders if deeper and each[0] != ".")
            for name in sorted(files, key=lambda name: (number_of(Path(name).stem) or 0, name)):
                if Path(name).suffix.lower() not in ENDINGS or name[0] == ".":
                    continue
                count += 1
                if count > (most := self.limits.folder_files):
                    self.problem("", f"more than {most} files; the rest is skipped")
                    return
                yield str((Path(place) / name).relative_to(self.root))

    def text(self, name: str) -> str | None:
        """Return the text of a file, or None with a problem."""
        most = self.limits.index_bytes if name == INDEX else self.limits.schema_chars
        try:
            # A FIFO would wait for a writer.
            descriptor = os.open(self.root / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    self.problem(name, "no file")
                    return None
                data = file.read(most + 1)
        except OSError as error:
            self.problem(name[:200], error.strerror or "cannot be read")
            return None
        if len(data) > most:
            self.problem(name, f"larger than {most >> 20} MB")
            return None
        together = f"skipped: all files together exceed {self.limits.schema_bytes >> 20} MB"
        if not self._budget.take(len(data), f"{self.root / name}: {together}"):
            return None
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.problem(name, "not UTF-8 text")
            return None


def read_folder(path: str | os.PathLike[str], limits: Limits = LIMITS) -> Folder:
    """Read a folder; each file that cannot be used, or the folder itself, adds a problem."""
    root = Path(path)
    reading = _Reading(root, limits)
    try:
        with os.scandir(root):
            pass
    except OSError as error:
        return Folder([], [f"{root}: cannot read the folder of schemas: {error.strerror}"])
    indexed = _index(reading)
    out: list[Schema] = []
    for name, entries in indexed.items():
        text = reading.text(name)
        if text is not None:
            out.append(_listed(entries, text, root / name))
    for name in reading.names():
        if name != INDEX and name not in indexed:
            text = reading.text(name)
            if text is not None:
                out.append(_unlisted(name, text, root))
    return Folder(out, reading.problems())


def _index(reading: _Reading) -> dict[str, list[dict[str, Any]]]:
    """Return the entries of each file that the index lists."""
    out: dict[str, list[dict[str, Any]]] = {}
    there = os.path.lexists(reading.root / INDEX)
    if not there or (text := reading.text(INDEX)) is None:
        return out
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        reading.problem(INDEX, f"not JSON: {error}")
        return out
    if isinstance(value, dict):
        value = value.get("schemas")
    if not isinstance(value, list):
        reading.problem(INDEX, "not a list of schemas")
        return out
    for at, entry in enumerate(value[: reading.limits.folder_files]):
        name = entry.get("file") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name or "\0" in name:
            reading.problem(INDEX, f"entry {at + 1} has no file")
        elif name.startswith(("/", "\\")) or ".." in Path(name).parts:
            reading.problem(INDEX, f"entry {at + 1} points outside the folder")
        elif _kind(entry, name) is None:
            reading.problem(INDEX, f"entry {at + 1} has an unknown type")
        else:
            out.setdefault(os.path.normpath(name), []).append(entry)
    return out


def _kind(entry: dict[str, Any], name: str) -> Format | None:
    """Return the format of a file by its entry, else by its name."""
    named = entry.get("type")
    usual = ENDINGS.get(Path(name).suffix.lower())
    return FORMATS.get(named.upper(), usual) if isinstance(named, str) else usual


def _unlisted(name: str, text: str, root: Path) -> Schema:
    kind = ENDINGS[Path(name).suffix.lower()]
    origin = str(root / name)
    number = number_of(Path(name).stem)
    if number is not None and os.sep not in name:
        keys = [SchemaKey("id", number)] if number < 2**31 else []
        return Schema(kind, text, (*keys, SchemaKey("globalId", number)), origin=origin)
    # Protobuf files import each other by their paths.
    return Schema(kind, text, subjects=((name.replace(os.sep, "/"), 0),), origin=origin)


def _listed(entries: list[dict[str, Any]], text: str, path: Path) -> Schema:
    kind = _kind(entries[0], path.name)
    assert kind is not None
    keys: dict[SchemaKey, None] = {}
    subjects: dict[tuple[str, int], None] = {}
    references: tuple[Reference, ...] = ()
    for entry in entries:
        for namespace in _NUMBERS:
            number = number_of(entry.get(namespace))
            if number is not None:
                keys[SchemaKey(namespace, number)] = None
        keys.update(dict.fromkeys(guid_key(entry.get("guid"))))
        for each in elements(entry.get("subjects")):
            there = subject_in(each) if isinstance(each, dict) else subject_of(each)
            subjects.update(dict.fromkeys(there))
        references = references or references_of(entry.get("references"))
    return Schema(kind, text, tuple(keys), tuple(subjects), references, "folder", str(path))


def assigned_of(text: str) -> tuple[tuple[str, Side], Assigned]:
    """Read `TOPIC[:key]=FILE[#MESSAGE]`; `ValueError` with the reason where it is malformed."""
    name, equals, file = text.partition("=")
    if not equals or not name or not file:
        raise ValueError(f'"{text}": write TOPIC=FILE, TOPIC:key=FILE or TOPIC=FILE#MESSAGE')
    side: Side = "value"
    for word in ("key", "value"):
        if name.endswith(f":{word}"):
            name, side = name.removesuffix(f":{word}"), "key" if word == "key" else "value"
    path, _, message = file.partition("#")
    form = ENDINGS.get(Path(path).suffix.lower())
    if form is None:
        raise ValueError(f'"{path}": a schema is a file {", ".join(ENDINGS)}')
    if form != "avro":
        require("--schema FILE.proto or FILE.json")
    reading = _Reading(Path(path).parent)
    schema_text = reading.text(Path(path).name)
    if schema_text is None:
        raise ValueError(reading.problems()[0])
    selector: Selector = message or None
    schema = Schema(form, schema_text, (), (), (), "folder", path)
    return (name, side), Assigned(schema, selector)


# --- writing


def write_folder(path: str | os.PathLike[str], schemas: Iterable[Schema]) -> int:
    """Write schemas with their index into a folder that is new or empty, for its owner alone;
    return the number of files. `FileExistsError` where something is there."""
    root = Path(path)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise FileExistsError(errno.EEXIST, "is not empty", str(root))
    taken = {INDEX}
    entries: list[dict[str, Any]] = []
    ids: set[SchemaKey] = set()
    for schema in schemas:
        # What was said later of an id is another registry's, and one file is one schema.
        keys = [key for key in schema.keys if key not in ids]
        if schema.keys and not keys:
            continue
        ids.update(keys)
        name = _free_name(schema, keys, taken)
        taken.add(name.lower())
        with PrivateFile(root / name) as file:
            file.write(schema.text.encode("utf-8", "surrogatepass"))
        entries += _entries(schema, keys, name)
    with PrivateFile(root / INDEX) as file:
        file.write(orjson.dumps(entries, option=orjson.OPT_INDENT_2) + b"\n")
    return len(taken) - 1


def _free_name(schema: Schema, keys: list[SchemaKey], taken: set[str]) -> str:
    """Return an unused file name, made of an id or subject; both come from traffic."""
    ending = _ENDING[schema.format]
    numbers = (str(key.value) for space in _NUMBERS for key in keys if key.namespace == space)
    subjects = (subject for subject, _ in schema.subjects)
    stem = next(numbers, "") or next(subjects, "") or next((str(k.value) for k in keys), "")
    stem = _UNSAFE.sub("_", stem.removesuffix(ending))[:100].strip("._-") or "schema"
    found, more = stem, 1
    while f"{found}{ending}".lower() in taken:
        more += 1
        found = f"{stem}-{more}"
    return f"{found}{ending}"


def _entries(schema: Schema, keys: list[SchemaKey], name: str) -> Iterator[dict[str, Any]]:
    """Yield the index entries of a file: one, and another for each further id of a kind."""
    by_kind: dict[str, list[int | str]] = {}
    for key in keys:
        if key.namespace != "fingerprint":
            by_kind.setdefault(key.namespace, []).append(key.value)
    about = {
        "type": _TYPES[schema.format],
        "subjects": [{"subject": s, "version": v} for s, v in schema.subjects],
        "references": [each._asdict() for each in schema.references],
    }
    for at in range(max(map(len, by_kind.values()), default=1)):
        numbers = {kind: values[at] for kind, values in by_kind.items() if at < len(values)}
        yield {**numbers, **(about if not at else {}), "file": name}
