"""CreateDelegationToken (api key 38)."""

from kafkascope.dissectors.schema import (
    Array,
    Bytes,
    Int16,
    Int32,
    Int64,
    String,
    request,
    response,
)

CREATE_DELEGATION_TOKEN_REQUEST = request("CreateDelegationToken").of(
    String("owner_principal_type", "3+", nullable="3+", word="PrincipalType"),
    String("owner_principal_name", "3+", nullable="3+", subject="principal"),
    Array("renewers", "0+").of(
        String("principal_type", "0+", word="PrincipalType"),
        String("principal_name", "0+", subject="principal"),
    ),
    Int64("max_lifetime_ms", "0+"),
)

CREATE_DELEGATION_TOKEN_RESPONSE = response("CreateDelegationToken").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    String("principal_type", "0+", word="PrincipalType"),
    String("principal_name", "0+", subject="principal"),
    String("token_requester_principal_type", "3+", word="PrincipalType"),
    String("token_requester_principal_name", "3+", subject="principal"),
    Int64("issue_timestamp_ms", "0+", unit="time_ms", volatile=True),
    Int64("expiry_timestamp_ms", "0+", unit="time_ms", volatile=True),
    Int64("max_timestamp_ms", "0+", unit="time_ms", volatile=True),
    String("token_id", "0+", volatile=True, subject="tokenId"),
    Bytes("hmac", "0+", secret=True, volatile=True),
    Int32("throttle_time_ms", "0+", volatile=True),
)
