"""Reads and writes folders of schemas: `17.avsc`, `17.proto`, `17.json`, and an `index.json` that
says more."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.payloads.framing import Side
from kafkascope.analyzer.payloads.known import Assigned
from kafkascope.analyzer.payloads.model import (
    Format,
    Namespace,
    Reference,
    Schema,
    SchemaKey,
    Selector,
)

INDEX: Final = "index.json"
FORMATS: Final[dict[str, Format]] = {".avsc": "avro", ".proto": "protobuf", ".json": "json"}
SUFFIXES: Final[dict[Format, str]] = {form: suffix for suffix, form in FORMATS.items()}
TYPES: Final[dict[str, Format]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}
MOST_FILES: Final = 100_000
MOST_BYTES: Final = 16 << 20
"""Of one file."""
_NUMBER: Final = re.compile(r"\d{1,18}\Z")
NUMBERED: Final[tuple[Namespace, ...]] = ("id", "globalId", "contentId")


class Folder(NamedTuple):
    """What a folder holds."""

    schemas: list[Schema]
    problems: list[str]
    """A sentence for each file that could not be used."""


def read_folder(path: str | os.PathLike[str]) -> Folder:
    """Read a folder of schemas; what cannot be used is named in a sentence and left out."""
    root = Path(path)
    if not root.is_dir():
        return Folder([], [f"{root}: no folder of schemas"])
    problems: list[str] = []
    schemas: list[Schema] = []
    named: set[Path] = set()
    if (root / INDEX).is_file():
        for schema, file in _indexed(root, problems):
            named.add(file)
            schemas.append(schema)
    for file in _files(root, problems):
        if file.resolve() not in named and (other := _unnamed(root, file, problems)) is not None:
            schemas.append(other)
    return Folder(schemas, problems)


def _files(root: Path, problems: list[str]) -> Iterator[Path]:
    """Yield the files that may be schemas, in the order of their names."""
    seen = 0
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if Path(name).suffix not in FORMATS or (name == INDEX and Path(folder) == root):
                continue
            seen += 1
            if seen > MOST_FILES:
                problems.append(f"{root}: more than {MOST_FILES} files, the others are left out")
                return
            yield Path(folder) / name


def _text(file: Path, problems: list[str]) -> str | None:
    try:
        if file.stat().st_size > MOST_BYTES:
            problems.append(f"{file}: larger than {MOST_BYTES >> 20} MB")
            return None
        return file.read_text("utf-8")
    except OSError as error:
        problems.append(f"{file}: {error.strerror}")
    except UnicodeDecodeError:
        problems.append(f"{file}: no text in UTF-8")
    return None


def _unnamed(root: Path, file: Path, problems: list[str]) -> Schema | None:
    """Read a file that no index names: a number is an id, whoever counts; other names serve what
    refers to them, by their place in the folder."""
    text = _text(file, problems)
    if text is None:
        return None
    keys: tuple[SchemaKey, ...] = ()
    if file.parent == root and _NUMBER.match(file.stem):
        number = int(file.stem)
        keys = (SchemaKey("id", number), SchemaKey("globalId", number))
    place = file.relative_to(root).as_posix()
    subjects = () if keys else ((place, 0),)
    return Schema(FORMATS[file.suffix], text, keys, subjects, (), "folder", str(file))


def _indexed(root: Path, problems: list[str]) -> Iterator[tuple[Schema, Path]]:
    """Yield what the index names, with its file."""
    text = _text(root / INDEX, problems)
    if text is None:
        return
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append(f"{root / INDEX}: no JSON: {error}")
        return
    if isinstance(entries, dict):
        entries = entries.get("schemas")
    if not isinstance(entries, list):
        problems.append(f"{root / INDEX}: no list of schemas")
        return
    home = root.resolve()
    for number, entry in enumerate(entries):
        where = f"{root / INDEX}: entry {number + 1}"
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            problems.append(f"{where} names no file")
            continue
        file = (home / entry["file"]).resolve()
        if not file.is_relative_to(home):
            problems.append(f"{where} leads out of the folder")
            continue
        form = TYPES.get(str(entry.get("type", "")).upper()) or FORMATS.get(file.suffix)
        if form is None:
            problems.append(f"{where} has no type that is known")
            continue
        schema_text = _text(file, problems)
        if schema_text is not None:
            keys, subjects = _keys(entry), _subjects(entry.get("subjects"))
            references = _references(entry.get("references"))
            yield Schema(form, schema_text, keys, subjects, references, "folder", str(file)), file


def _keys(entry: dict[str, Any]) -> tuple[SchemaKey, ...]:
    keys = [
        SchemaKey(space, entry[space])
        for space in NUMBERED
        if isinstance(entry.get(space), int) and not isinstance(entry[space], bool)
    ]
    if isinstance(entry.get("guid"), str):
        keys.append(SchemaKey("guid", entry["guid"].lower()))
    return tuple(keys)


def _subjects(listed: Any) -> tuple[tuple[str, int], ...]:
    found = []
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, str):
            found.append((each, 0))
        elif isinstance(each, dict) and isinstance(each.get("subject"), str):
            version = each.get("version")
            found.append((each["subject"], version if isinstance(version, int) else 0))
    return tuple(found)


def _references(listed: Any) -> tuple[Reference, ...]:
    found = []
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            subject, version = each.get("subject"), each.get("version")
            found.append(
                Reference(
                    each["name"],
                    subject if isinstance(subject, str) else "",
                    version if isinstance(version, int) else 0,
                )
            )
    return tuple(found)


def assigned_of(text: str) -> tuple[tuple[str, Side], Assigned]:
    """Read `TOPIC[:key]=FILE[#MESSAGE]`; `ValueError` says what is wrong with it."""
    name, equals, file = text.partition("=")
    if not equals or not name or not file:
        raise ValueError(f'"{text}": write TOPIC=FILE, TOPIC:key=FILE or TOPIC=FILE#MESSAGE')
    side: Side = "value"
    for word in ("key", "value"):
        if name.endswith(f":{word}"):
            name, side = name.removesuffix(f":{word}"), "key" if word == "key" else "value"
    path, _, message = file.partition("#")
    form = FORMATS.get(Path(path).suffix)
    if form is None:
        raise ValueError(f'"{path}": a schema is a file {", ".join(FORMATS)}')
    problems: list[str] = []
    schema_text = _text(Path(path), problems)
    if schema_text is None:
        raise ValueError(problems[0])
    selector: Selector = message or None
    schema = Schema(form, schema_text, (), (), (), "folder", path)
    return (name, side), Assigned(schema, selector)


def write_folder(path: str | os.PathLike[str], schemas: Iterable[Schema]) -> int:
    """Write schemas with an index into a folder that is new or empty, for its owner alone; return
    their number. `FileExistsError` where something is there."""
    root = Path(path)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise FileExistsError(f"{root} is not empty")
    entries = []
    taken: set[str] = set()
    for number, schema in enumerate(schemas, 1):
        name = _name(schema, number)
        if name in taken:
            name = f"{Path(name).stem}-{number}{SUFFIXES[schema.format]}"
        taken.add(name)
        _write(root / name, schema.text)
        entries.append(_entry(schema, name))
    _write(root / INDEX, json.dumps(entries, indent=1) + "\n")
    return len(entries)


def _name(schema: Schema, number: int) -> str:
    """Return a name made of a number alone: subjects come from traffic."""
    by_space = {key.namespace: key.value for key in schema.keys}
    for space in NUMBERED:
        if space in by_space:
            return f"{by_space[space]}{SUFFIXES[schema.format]}"
    return f"schema-{number}{SUFFIXES[schema.format]}"


def _entry(schema: Schema, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        key.namespace: key.value for key in schema.keys if key.namespace != "fingerprint"
    }
    entry["type"] = next(word for word, form in TYPES.items() if form == schema.format)
    entry["file"] = name
    entry["subjects"] = [{"subject": one, "version": version} for one, version in schema.subjects]
    entry["references"] = [each._asdict() for each in schema.references]
    return entry


def _write(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as out:
        out.write(text)
