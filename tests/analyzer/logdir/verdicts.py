"""Our verdicts on the files of a partition, held against what brokers of a release made of them."""

from collections.abc import Iterator, Sequence
from typing import Any

from kafkascope.analyzer.logdir.model import RecoveryVerdict
from kafkascope.analyzer.logdir.opening import AtRest
from kafkascope.analyzer.logdir.records import records_of


def verdicts_on(found: AtRest) -> Iterator[RecoveryVerdict]:
    """Yield one for each file, which is read for it."""
    if not found.holds_batches:
        yield found.small().verdict
        return
    yield from (each for each in found.walk() if isinstance(each, RecoveryVerdict))


def records_in(found: AtRest, *, lost: bool = True) -> Iterator[dict[str, Any]]:
    """Yield every record as `record/1`; without `lost` only what a recovering broker keeps."""
    for batch, data in found.batches():
        if lost or not batch.lost:
            yield from records_of(batch, data, found.place)


def family(release: str) -> str:
    """Return the releases that recover as this one does."""
    number = [int(part) for part in release.split(".")]
    if number[:3] == [0, 8, 0]:
        return "0.8.0"
    return "0.8.1 to 1.1" if number < [2] else "2.0 and later"


def undecided(verdicts: Sequence[RecoveryVerdict]) -> bool:
    """Whether the verdict says that it depends on a setting which the files do not show."""
    return any("depends on index.interval.bytes" in note for v in verdicts for note in v.notes)


def compared(
    verdicts: Sequence[RecoveryVerdict], releases: str, files: dict[str, int] | None
) -> str:
    """Return what differs, empty when nothing does. `files`: bytes that the broker left of each
    segment, None when it did not start."""
    if undecided(verdicts):
        return ""
    if any("brokers split the file" in note for each in verdicts for note in each.notes):
        whole = sum(each.total_bytes for each in verdicts)
        left = sum(files.values()) if files is not None else None
        return "" if left == whole else f"{left} bytes are left of {whole}"
    kept: dict[str, int] = {}
    for verdict in verdicts:
        starts, size = _of(verdict, releases)
        if not starts:
            return "" if files is None else f"the broker starts, we said: {verdict.problem}"
        kept[verdict.file] = size
        if size < verdict.total_bytes and releases != "0.8.0":
            break  # What stands behind it is deleted.
    if files is None:
        return "the broker does not start"
    return "" if kept == files else f"we said {kept}, the broker keeps {files}"


def _of(verdict: RecoveryVerdict, releases: str) -> tuple[bool, int | None]:
    for each in verdict.elsewhere:
        if each.releases == releases:
            return each.starts, each.valid_bytes
    return verdict.starts, verdict.valid_bytes
