package io.kafkascope.junit;

import java.util.Map;

/**
 * A record that was produced or fetched, as {@code kafkascope records --json} tells it.
 *
 * @param members all of it, by the names of record/1 in kafkascope's docs/json.md
 */
public record KafkaRecord(Map<String, Object> members) {
    /** {@code produce} or {@code fetch}. */
    public String source() {
        return (String) members.get("source");
    }

    /** The topic. */
    public String topic() {
        return (String) members.get("topic");
    }

    /** The partition. */
    public int partition() {
        return ((Number) members.get("partition")).intValue();
    }

    /** The offset; null where the broker has not told it. */
    public Long offset() {
        return members.get("offset") instanceof Number number ? number.longValue() : null;
    }

    /** Text, a map with {@code base64} for other bytes, or null. */
    public Object key() {
        return members.get("key");
    }

    /** Text, a map with {@code base64} for other bytes, or null. */
    public Object value() {
        return members.get("value");
    }

    /** The value by its schema, where there is one: maps, lists, text, numbers; else null. */
    public Object decoded() {
        return members.get("value_decoded");
    }
}
