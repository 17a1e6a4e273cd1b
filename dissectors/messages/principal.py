"""The principal inside Envelope requests."""

from kafkascope.dissectors.schema import Bool, String, data

DEFAULT_PRINCIPAL_DATA = data("DefaultPrincipalData", versions="0", flexible="0+").of(
    String("type", "0+", word="PrincipalType"),
    String("name", "0+", subject="principal"),
    Bool("token_authenticated", "0+"),
)
