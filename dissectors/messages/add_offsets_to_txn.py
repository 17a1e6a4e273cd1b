"""AddOffsetsToTxn (api key 25)."""

from kafkascope.dissectors.schema import Int16, Int32, Int64, String, request, response

ADD_OFFSETS_TO_TXN_REQUEST = request("AddOffsetsToTxn").of(
    String("transactional_id", "0+", entity="transactionalId"),
    Int64("producer_id", "0+", entity="producerId", enum="ProducerId", volatile=True),
    Int16("producer_epoch", "0+", volatile=True),
    String("group_id", "0+", entity="groupId"),
)

ADD_OFFSETS_TO_TXN_RESPONSE = response("AddOffsetsToTxn").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
)
