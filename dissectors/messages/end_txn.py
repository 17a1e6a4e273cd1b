"""EndTxn (api key 26)."""

from kafkascope.dissectors.schema import Bool, Int16, Int32, Int64, String, request, response

END_TXN_REQUEST = request("EndTxn").of(
    String("transactional_id", "0+", entity="transactionalId"),
    Int64("producer_id", "0+", entity="producerId", enum="ProducerId", volatile=True),
    Int16("producer_epoch", "0+", volatile=True),
    Bool("committed", "0+", enum="TransactionResult"),
)

END_TXN_RESPONSE = response("EndTxn").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Int64("producer_id", "5+", default=-1, entity="producerId", enum="ProducerId", volatile=True),
    Int16("producer_epoch", "5+", default=-1, volatile=True),
)
