"""Print one line per (message, version) with its resolved fields, from the protocol tables.

    python tests/facts/make.py MESSAGES.json [VARIANTS.json] > tests/facts/layouts.txt

Imports nothing of the project on purpose: what it prints is what the declarations are held against.
A field is

    name:type[?][=default][@entity][#tag][*]

with `?` for nullable, `*` for a part of its array's key; fields of a struct stand in braces
behind it.
"""

import json
import sys
from pathlib import Path
from typing import Any

OPEN_END = 32767


def has(versions: str | None, version: int) -> bool:
    if not versions or versions == "none":
        return False
    low, _, high = versions.rstrip("+").partition("-")
    last = OPEN_END if versions.endswith("+") else int(high or low)
    return int(low) <= version <= last


def snake(name: str) -> str:
    """Kafka's own rule: an underscore before a capital that follows no capital."""
    out, capital = "", True
    for letter in name:
        if letter.isupper() and not capital:
            out += "_"
        capital = letter.isupper()
        out += letter.lower()
    return out


def field(entry: dict[str, Any], version: int, flexible: bool, common: dict[str, Any]) -> str:
    kind = entry["type"]
    base = kind.removeprefix("[]")
    struct = base[0].isupper()
    text = (
        snake(entry["name"]) + ":" + ("[]" if kind != base else "") + ("struct" if struct else base)
    )
    if has(entry.get("nullableVersions"), version):
        text += "?"
    if "default" in entry:
        text += "=" + json.dumps(entry["default"])
    if "entityType" in entry:
        text += "@" + entry["entityType"]
    if has(entry.get("taggedVersions"), version):
        text += f"#{entry['tag']}"
    if entry.get("mapKey"):
        text += "*"
    if entry.get("flexibleVersions") == "none" and flexible:
        text += "!plain"
    if struct:
        inner = entry.get("fields") or common[base]
        text += "{" + fields(inner, version, flexible, common) + "}"
    return text


def fields(entries: list[dict[str, Any]], version: int, flexible: bool, common: Any) -> str:
    there = [e for e in entries if has(e["versions"], version)]
    plain = [e for e in there if not has(e.get("taggedVersions"), version)]
    tagged = [e for e in there if has(e.get("taggedVersions"), version)]
    tagged.sort(key=lambda e: e["tag"])
    return ",".join(field(e, version, flexible, common) for e in plain + tagged)


def line(name: str, version: int, flexible: bool, entry: dict[str, Any], mark: str = "") -> str:
    common = {s["name"]: s["fields"] for s in entry.get("commonStructs", ())}
    for struct in _structs(entry["fields"] + [f for c in common.values() for f in c]):
        common.setdefault(struct["type"].removeprefix("[]"), struct["fields"])
    word = "flexible" if flexible else "plain"
    text = fields(entry["fields"], version, flexible, common)
    return f"{name} {version}{mark} {word} {text}".rstrip()


def _structs(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for entry in entries:
        if "fields" in entry:
            found.append(entry)
            found += _structs(entry["fields"])
    return found


def main() -> None:
    messages = json.loads(Path(sys.argv[1]).read_text())["messages"]
    for name, entry in messages.items():
        low, _, high = entry["validVersions"].partition("-")
        for version in range(int(low), int(high or low) + 1):
            print(line(name, version, has(entry["flexibleVersions"], version), entry))
    if len(sys.argv) > 2:
        for entry in json.loads(Path(sys.argv[2]).read_text()):
            first, last = entry["firstRelease"], entry["lastRelease"]
            mark = f"/{first}" + (f"-{last}" if last != first else "")
            print(line(entry["message"], entry["version"], entry["flexible"], entry, mark))


if __name__ == "__main__":
    main()
