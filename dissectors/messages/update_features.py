"""UpdateFeatures (api key 57)."""

from kafkascope.dissectors.schema import Array, Bool, Int8, Int16, Int32, String, request, response

UPDATE_FEATURES_REQUEST = request("UpdateFeatures").of(
    Int32("timeout_ms", "0+", default=60000),
    Array("feature_updates", "0+").of(
        String("feature", "0+", map_key=True, word="Feature"),
        Int16("max_version_level", "0+", enum="FeatureLevel"),
        Bool("allow_downgrade", "0"),
        Int8("upgrade_type", "1+", default=1, enum="FeatureUpgradeType"),
    ),
    Bool("validate_only", "1+", default=False),
)

UPDATE_FEATURES_RESPONSE = response("UpdateFeatures").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
    Array("results", "0-1").of(
        String("feature", "0+", map_key=True, word="Feature"),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", subject="freeText"),
    ),
)
