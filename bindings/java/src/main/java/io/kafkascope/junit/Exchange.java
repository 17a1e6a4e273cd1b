package io.kafkascope.junit;

import java.util.List;
import java.util.Map;

/**
 * A request with its response, as {@code kafkascope ls --json} tells it.
 *
 * @param members all of it, by the names of exchange/1 in kafkascope's docs/json.md
 */
public record Exchange(Map<String, Object> members) {
    /** Kafka's name of the API: {@code Produce}. */
    public String api() {
        return (String) members.get("api");
    }

    /** The version of the API. */
    public int version() {
        return ((Number) members.get("api_version")).intValue();
    }

    /** What the client calls itself; null for nothing. */
    public String clientId() {
        return (String) members.get("client_id");
    }

    /** From the first byte of the request to the last of the response, in milliseconds; null without one. */
    public Double latencyMs() {
        return members.get("latency_ms") instanceof Number number ? number.doubleValue() : null;
    }

    /** The errors in the response. */
    public List<?> errors() {
        return (List<?>) members.get("errors");
    }

    /** Kafka's names of the errors in the response: {@code NOT_LEADER_OR_FOLLOWER}. */
    public List<String> errorNames() {
        return errors().stream().map(each -> (String) ((Map<?, ?>) each).get("name")).toList();
    }

    /** {@code Produce v12 of shop (number 7)}. */
    @Override
    public String toString() {
        return api() + " v" + version() + " of " + clientId() + " (number " + members.get("number") + ")";
    }
}
