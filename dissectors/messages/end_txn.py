"""EndTxn (api key 26)."""

from dissectors.schema import Bool, Int16, Int32, Int64, String, request, response

END_TXN_REQUEST = request("EndTxn", key=26, versions="0-5", flexible="3+").of(
    String("transactional_id", "0+", entity="transactionalId"),
    Int64("producer_id", "0+", entity="producerId"),
    Int16("producer_epoch", "0+"),
    Bool("committed", "0+"),
)

END_TXN_RESPONSE = response("EndTxn", key=26, versions="0-5", flexible="3+").of(
    Int32("throttle_time_ms", "0+"),
    Int16("error_code", "0+"),
    Int64("producer_id", "5+", default=-1, entity="producerId"),
    Int16("producer_epoch", "5+", default=-1),
)
