package io.kafkascope.junit;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A scenario, and what it is run before; null where it is about starting. */
record Scenario(Map<String, Object> members, String before) {
    /** Those that the environment wants. */
    static List<Scenario> wanted() throws IOException {
        List<Scenario> found = new ArrayList<>();
        String folder = System.getenv("KAFKASCOPE_SCENARIOS");
        String only = System.getenv("KAFKASCOPE_SCENARIO");
        if (folder == null) {
            return found;
        }
        List<Path> paths;
        try (var files = Files.list(Path.of(folder))) {
            paths = files.filter(file -> file.toString().endsWith(".json"))
                    .filter(file -> !file.endsWith("scenario.schema.json")).sorted().toList();
        }
        for (Path path : paths) {
            Map<String, Object> members = JSON.std.mapFrom(Files.readString(path));
            if (only == null ? members.containsKey("ends") : !only.equals(members.get("name"))) {
                continue;
            }
            List<?> before = (List<?>) members.getOrDefault("before", Collections.singletonList(null));
            for (Object each : before) {
                if (!"broker".equals(each) || !System.getenv().getOrDefault("KAFKASCOPE_BROKER", "").isEmpty()) {
                    found.add(new Scenario(members, (String) each));
                }
            }
        }
        return found;
    }

    String name() {
        return (String) members.get("name");
    }

    List<String> rules() {
        return strings(members.getOrDefault("rules", List.of()));
    }

    List<String> fails() {
        return strings(members.get("fails"));
    }

    /** The steps, with the name of the topic in all texts. */
    @SuppressWarnings("unchecked")
    List<Map<String, Object>> steps(String topic) throws IOException {
        String text = JSON.std.asString(members.get("steps")).replace("{topic}", topic);
        return (List<Map<String, Object>>) (List<?>) JSON.std.listFrom(text);
    }

    @SuppressWarnings("unchecked")
    Map<String, Object> start() {
        return (Map<String, Object>) members.get("start");
    }

    /** Tells that it was passed. */
    void report() throws IOException {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("scenario", name());
        line.put("before", before);
        String text = JSON.std.with(JSON.Feature.WRITE_NULL_PROPERTIES).asString(line) + "\n";
        Path results = Path.of(System.getenv("KAFKASCOPE_RESULTS"));
        Files.writeString(results, text, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    @SuppressWarnings("unchecked")
    private static List<String> strings(Object value) {
        return (List<String>) value;
    }
}
