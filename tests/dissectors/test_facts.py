"""The declarations equal the protocol tables: names, order, types, nullability, defaults, tags."""

import json
from pathlib import Path

from docs.print_coverage import TARGET, document, load
from kafkascope.dissectors import layout as wires
from kafkascope.dissectors import registry, schema
from kafkascope.dissectors.layout import ArrayWire, BoolWire, BytesWire, Slot, StructWire, resolve
from kafkascope.dissectors.values import Uuid
from tests.kit.samples import ROOT

FACTS = ROOT / "tests" / "facts" / "layouts.txt"


def word(wire: wires.Wire) -> str:
    match wire:
        case wires.NumberWire():
            return wire.name
        case BoolWire():
            return "bool"
        case wires.UuidWire():
            return "uuid"
        case wires.StringWire():
            return "string"
        case BytesWire():
            return "records" if wire.records else "bytes"
        case ArrayWire():
            return "[]" + word(wire.element)
        case StructWire():
            return "struct"


def default(slot: Slot) -> str:
    value = slot.field.default
    if isinstance(value, schema.Unset):
        return ""
    return "=" + json.dumps(str(Uuid(value)) if isinstance(value, bytes) else value)


def printed(slot: Slot, flexible: bool) -> str:
    wire, field = slot.wire, slot.field
    text = f"{slot.name}:{word(wire)}"
    if getattr(wire, "nullable", False):
        text += "?"
    text += default(slot) + (f"@{field.entity}" if field.entity else "")
    text += "" if slot.tag is None else f"#{slot.tag}"
    text += "*" if field.map_key else ""
    text += "!plain" if field.plain and flexible else ""
    inner = wire.element if isinstance(wire, ArrayWire) else wire
    if isinstance(inner, StructWire):
        assert inner.flexible == flexible
        return text + "{" + fields(inner) + "}"
    compact = getattr(inner, "compact", None)
    if compact is not None:
        assert compact == (flexible and not field.plain)
    return text


def fields(wire: StructWire) -> str:
    return ",".join(printed(slot, wire.flexible) for slot in (*wire.slots, *wire.tags))


def line(layout: wires.Layout) -> str:
    message = layout.message
    mark = f"/{message.releases}" if message.releases else ""
    kind = "flexible" if layout.flexible else "plain"
    return f"{message.name} {layout.version}{mark} {kind} {fields(layout.body)}".rstrip()


def declared() -> dict[str, str]:
    lines = {}
    for name in registry.message_names():
        message = registry.message(name)
        if message.kind == "zookeeper":
            continue
        for version in range(message.versions.low, message.versions.high + 1):
            text = line(resolve(message, version))
            lines[" ".join(text.split(" ", 2)[:2])] = text
        for variant in message.variants:
            text = line(resolve(variant, variant.versions.low))
            lines[" ".join(text.split(" ", 2)[:2])] = text
    return lines


def test_every_message_version_and_variant_equals_the_facts() -> None:
    facts = {" ".join(text.split(" ", 2)[:2]): text for text in FACTS.read_text().splitlines()}
    ours = declared()
    equal = [key for key, text in facts.items() if ours.get(key) == text]
    main = [key for key in facts if "/" not in key]
    same = len([key for key in equal if "/" not in key])
    print(f"\n{same} of {len(main)} (message, version) pairs equal to the facts,")
    print(f"{len(equal) - same} of {len(facts) - len(main)} variants declared")
    different = {key: (facts.get(key), ours.get(key)) for key in facts.keys() | ours.keys()}
    different = {key: pair for key, pair in different.items() if pair[0] != pair[1]}
    assert different == {}
    assert len(main) == 878


def test_every_module_of_the_folder_is_on_the_list() -> None:
    folder = Path(registry.__file__).parent / "messages"
    modules = {path.stem for path in folder.glob("*.py")} - {
        "__init__",
        "common_structs",
        "record_batch",
    }
    listed = {api.module for api in registry.APIS.values()} | set(registry.DATA.values())
    assert modules == listed


# --- docs/coverage.md is what docs/print_coverage.py prints ---------------------------------------


def test_the_committed_document_is_the_printed_one() -> None:
    assert TARGET.read_text() == document(load())


def test_what_was_met_is_declared() -> None:
    for name, version in load():
        assert version in registry.api_named(name).versions
