"""Fields of keys and values that are decoded by schema: literals, comparisons, reading."""
