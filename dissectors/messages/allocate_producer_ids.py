"""AllocateProducerIds (api key 67)."""

from kafkascope.dissectors.schema import Int16, Int32, Int64, request, response

ALLOCATE_PRODUCER_IDS_REQUEST = request("AllocateProducerIds").of(
    Int32("broker_id", "0+", entity="brokerId"),
    Int64("broker_epoch", "0+", default=-1, volatile=True),
)

ALLOCATE_PRODUCER_IDS_RESPONSE = response("AllocateProducerIds").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Int64("producer_id_start", "0+", entity="producerId", volatile=True),
    Int32("producer_id_len", "0+"),
)
