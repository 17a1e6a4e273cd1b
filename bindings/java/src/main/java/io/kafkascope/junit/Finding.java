package io.kafkascope.junit;

import java.util.Locale;
import java.util.Map;

/**
 * Something that {@code kafkascope check} found.
 *
 * @param members all of it, by the names of finding/1 in kafkascope's docs/json.md
 */
public record Finding(Map<String, Object> members) {
    /** How bad it is; the worst first. */
    public enum Severity {
        /** Something failed. */
        ERROR,
        /** Something is likely to fail, or slow. */
        WARNING,
        /** Worth knowing. */
        NOTE,
        /** Normal, and often taken for trouble. */
        CHAT;

        String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** How bad it is. */
    public Severity severity() {
        return Severity.valueOf(((String) members.get("severity")).toUpperCase(Locale.ROOT));
    }

    /** The rule: {@code redelivered}. */
    public String name() {
        return (String) members.get("name");
    }

    /** A sentence. */
    public String text() {
        return (String) members.get("text");
    }
}
