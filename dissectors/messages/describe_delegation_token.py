"""DescribeDelegationToken (api key 41)."""

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

DESCRIBE_DELEGATION_TOKEN_REQUEST = request("DescribeDelegationToken").of(
    Array("owners", "0+", nullable="0+").of(
        String("principal_type", "0+", word="PrincipalType"),
        String("principal_name", "0+", subject="principal"),
    ),
)

DESCRIBE_DELEGATION_TOKEN_RESPONSE = response("DescribeDelegationToken").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("tokens", "0+").of(
        String("principal_type", "0+", word="PrincipalType"),
        String("principal_name", "0+", subject="principal"),
        String("token_requester_principal_type", "3+", word="PrincipalType"),
        String("token_requester_principal_name", "3+", subject="principal"),
        Int64("issue_timestamp", "0+", unit="time_ms", volatile=True),
        Int64("expiry_timestamp", "0+", unit="time_ms", volatile=True),
        Int64("max_timestamp", "0+", unit="time_ms", volatile=True),
        String("token_id", "0+", volatile=True, subject="tokenId"),
        Bytes("hmac", "0+", secret=True, volatile=True),
        Array("renewers", "0+").of(
            String("principal_type", "0+", word="PrincipalType"),
            String("principal_name", "0+", subject="principal"),
        ),
    ),
    Int32("throttle_time_ms", "0+", volatile=True),
)
