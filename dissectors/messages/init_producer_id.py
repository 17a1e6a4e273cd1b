"""InitProducerId (api key 22)."""

from kafkascope.dissectors.schema import Bool, Int16, Int32, Int64, String, request, response

INIT_PRODUCER_ID_REQUEST = request("InitProducerId").of(
    String("transactional_id", "0+", nullable="0+", entity="transactionalId"),
    Int32("transaction_timeout_ms", "0+"),
    Int64("producer_id", "3+", default=-1, entity="producerId", enum="ProducerId", volatile=True),
    Int16("producer_epoch", "3+", default=-1, volatile=True),
    Bool("enable2_pc", "6+", default=False),
    Bool("keep_prepared_txn", "6+", default=False),
)

INIT_PRODUCER_ID_RESPONSE = response("InitProducerId").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Int64("producer_id", "0+", default=-1, entity="producerId", enum="ProducerId", volatile=True),
    Int16("producer_epoch", "0+", volatile=True),
    Int64("ongoing_txn_producer_id", "6+", default=-1, entity="producerId", volatile=True),
    Int16("ongoing_txn_producer_epoch", "6+", default=-1, volatile=True),
)
