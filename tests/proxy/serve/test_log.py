"""A partition of a served capture: offsets, formats, transactions."""

from kafkascope.dissectors.records.records import batches
from kafkascope.dissectors.records.writer import encode_batch, encode_message_set
from kafkascope.proxy.serve.log import LAST_OFFSET, Log
from tests.kit.served import PRODUCER, batch, read, rows


def test_a_log_holds_each_offset_once():
    log = Log()
    late, early = encode_batch(rows(b"c", b"d", base=2)), encode_batch(rows(b"a", b"b"))
    log.add(late)
    log.add(early + late)
    log.add(b"garbage")
    log.finish()
    assert (log.start, log.end) == (0, 4)
    assert read(log.read(0, 1 << 20, 2).data) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert read(log.read(3, 1, 2).data) == [(2, b"c"), (3, b"d")]
    assert read(log.read(4, 1 << 20, 2).data) == []
    assert log.append(encode_batch(rows(b"e"), producer_id=4)) == 4
    assert read(log.read(4, 1 << 20, 2).data) == [(4, b"e")]
    assert log.offset_for(6) == (0, 6)


def test_old_clients_get_message_sets():
    log = Log()
    log.add(encode_batch(rows(b"a", b"b", base=7), codec=4))
    log.add(encode_message_set(1, rows(b"c", base=9)))
    log.finish()
    for magic in (0, 1):
        data = log.read(7, 80, magic).data
        assert {batch.magic for batch in batches(data)} == {magic}
        assert read(data) == [(7, b"a"), (8, b"b")]
    assert read(log.read(9, 1 << 20, 2).data) == [(9, b"c")]


def transactional(*values: bytes) -> bytes:
    return batch(*values, transaction=True)


def aborted(log: Log, offset: int) -> list[tuple[int, int]]:
    """What a reader from an offset on is told."""
    return list(log.aborted_in(log.read(offset, 1 << 20, 2).entries))


def test_readers_of_committed_records_wait_for_the_end_of_a_transaction():
    log = Log()
    log.finish()
    log.append(batch(b"plain"))
    log.append(transactional(b"a", b"b"))
    log.append(batch(b"behind it"))
    assert (log.end, log.stable) == (4, 1)
    assert read(log.read(0, 1 << 20, 2, log.stable).data) == [(0, b"plain")]
    log.end_transaction(PRODUCER, 0, False, 9)
    assert (log.end, log.stable) == (5, 5)
    assert aborted(log, 0) == [(PRODUCER, 1)]
    assert aborted(log, 4) == [(PRODUCER, 1)]
    # Whoever is behind the marker must not hear of it: what the producer writes now is another one.
    assert aborted(log, 5) == []
    log.append(transactional(b"c"))
    log.end_transaction(PRODUCER, 0, True, 9)
    assert aborted(log, 5) == []
    assert log.stable == log.end == 7
    log.end_transaction(PRODUCER, 0, True, 9)
    assert log.end == 7


def test_aborted_transactions_are_known_from_their_markers_in_any_order():
    whole = Log()
    whole.append(transactional(b"a"))
    whole.end_transaction(PRODUCER, 0, False, 9)
    whole.append(transactional(b"b"))
    whole.end_transaction(PRODUCER, 0, True, 9)
    pieces = [whole.read(offset, 1, 2).data for offset in (3, 1, 0, 2)]
    log = Log()
    for piece in pieces:
        log.add(piece)
    log.finish()
    assert log.read(0, 1 << 20, 2).data == whole.read(0, 1 << 20, 2).data
    assert aborted(log, 0) == [(PRODUCER, 0)]
    assert aborted(log, 2) == []


def test_where_the_captures_clients_stood_readers_may_stand():
    log = Log()
    log.add(batch(b"a"), 0)
    log.set_high_watermark(7)
    log.set_high_watermark(1 << 63)
    log.finish()
    assert (log.end, log.next) == (1, 7)
    assert log.append(batch(b"b")) == 7
    assert log.end == log.next == 8


def test_offsets_that_cannot_be_added_to_are_left_out():
    log = Log()
    log.add(batch(b"a", base=LAST_OFFSET))
    log.add(batch(b"b"), LAST_OFFSET)
    log.set_log_start(LAST_OFFSET)
    log.finish()
    assert (log.start, log.end) == (0, 0)
    assert log.append(b"garbage") == -1


def test_records_without_an_offset_come_behind_the_end_unless_they_were_fetched():
    log = Log()
    log.unplaced(batch(b"fetched") + batch(b"never seen"))
    log.unplaced(encode_message_set(1, rows(b"old")) + b"garbage")
    log.add(batch(b"a") + batch(b"fetched", base=1))
    log.finish()
    expected = [(0, b"a"), (1, b"fetched"), (2, b"never seen"), (3, b"old")]
    assert read(log.read(0, 1 << 20, 2).data) == expected


def test_a_reader_is_told_what_was_aborted_in_what_it_reads_and_no_more():
    """Each Fetch listed all that came behind it: the product of both."""
    log, count = Log(), 400
    log.finish()
    for _ in range(count):
        log.append(transactional(b"a"))
        log.end_transaction(PRODUCER, 0, False, 9)
    told = 0
    for offset in range(2 * count):
        entries = log.read(offset, 1, 2).entries
        found = list(log.aborted_in(entries))
        # Of a batch its own transaction, of a marker that of the batch before.
        assert found == [(PRODUCER, offset // 2 * 2)]
        told += len(found)
    assert told == 2 * count
    assert len(aborted(log, 0)) == count


def test_what_the_capture_told_of_markers_that_nobody_saw_is_told_to_readers_of_it():
    log = Log()
    for at in range(0, 40, 2):
        log.add(transactional(b"x"), at)
        log.aborted(PRODUCER, at)
        log.aborted(PRODUCER + 1, at)
    log.finish()
    entry = log.read(10, 1, 2).entries
    assert [each.base for each in entry] == [10]
    assert list(log.aborted_in(entry)) == [(PRODUCER, 10)]
    # One that began before may go on here; of those before it a reader has no use.
    later = log.read(11, 1, 2).entries
    assert [each.base for each in later] == [12]
    assert aborted(log, 30) == [(PRODUCER, at) for at in range(30, 40, 2)]
    assert not list(log.aborted_in([]))


def test_the_stable_offset_is_known_without_a_look_at_all_that_is_open():
    log, count = Log(), 3_000
    for number in range(count):
        log.add(batch(b"x", attributes=0x10, producer_id=number, producer_epoch=0), number)
    log.finish()
    # What the capture left open keeps nobody waiting.
    assert log.stable == log.end == count
    for number in range(count):
        log.append(batch(b"y", attributes=0x10, producer_id=count + number, producer_epoch=0))
    for number in range(count):
        assert log.stable == count + number
        log.end_transaction(count + number, 0, True, 9)
    assert log.stable == log.end
