"""WriteTxnMarkers (api key 27)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    request,
    response,
)

WRITE_TXN_MARKERS_REQUEST = request("WriteTxnMarkers").of(
    Array("markers", "0+").of(
        Int64("producer_id", "0+", entity="producerId", enum="ProducerId", volatile=True),
        Int16("producer_epoch", "0+", volatile=True),
        Bool("transaction_result", "0+", enum="TransactionResult"),
        Array("topics", "0+").of(
            String("name", "0+", entity="topicName"),
            Array("partition_indexes", "0+").of(Int32),
        ),
        Int32("coordinator_epoch", "0+", volatile=True),
        Int8("transaction_version", "2+", default=0),
    ),
)

WRITE_TXN_MARKERS_RESPONSE = response("WriteTxnMarkers").of(
    Array("markers", "0+").of(
        Int64("producer_id", "0+", entity="producerId", enum="ProducerId", volatile=True),
        Array("topics", "0+").of(
            String("name", "0+", entity="topicName"),
            Array("partitions", "0+").of(
                Int32("partition_index", "0+"),
                Int16("error_code", "0+", enum="ErrorCode"),
            ),
        ),
    ),
)
