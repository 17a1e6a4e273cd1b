"""ListTransactions (api key 66)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, request, response

LIST_TRANSACTIONS_REQUEST = request("ListTransactions").of(
    Array("state_filters", "0+", enum="TransactionStateName").of(String),
    Array("producer_id_filters", "0+", entity="producerId").of(Int64),
    Int64("duration_filter", "1+", default=-1),
    String(
        "transactional_id_pattern", "2+", nullable="2+", default=None, subject="transactionalId"
    ),
)

LIST_TRANSACTIONS_RESPONSE = response("ListTransactions").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("unknown_state_filters", "0+", subject="freeText").of(String),
    Array("transaction_states", "0+").of(
        String("transactional_id", "0+", entity="transactionalId"),
        Int64("producer_id", "0+", entity="producerId", enum="ProducerId", volatile=True),
        String("transaction_state", "0+", enum="TransactionStateName"),
    ),
)
