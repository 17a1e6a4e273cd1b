package io.kafkascope.junit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A proxy before a broker. Clients connect to {@link #bootstrap()}; what they say is recorded in
 * {@link #capture()}. In tests, {@link KafkascopeExtension} starts and ends it.
 */
public final class KafkascopeProxy implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final long LOOK_MS = 20;

    private final Child child;
    private final Path capture;
    private volatile Instant since = Instant.EPOCH;

    KafkascopeProxy(List<String> command, String upstream, Path capture, List<String> arguments) {
        List<String> words = new ArrayList<>(List.of("proxy", "--upstream", upstream, "--listen", "127.0.0.1:0"));
        words.addAll(List.of("--quiet", "--grace", "1s", "--overwrite", "-w", capture.toString()));
        words.addAll(arguments);
        this.capture = capture;
        this.child = new Child(command, words);
    }

    /** Starts a proxy before a broker ({@code host:port}); {@code arguments} go to {@code kafkascope proxy}. */
    public static KafkascopeProxy start(String upstream, Path capture, String... arguments) {
        return new KafkascopeProxy(Child.command(), upstream, capture, List.of(arguments));
    }

    /** The address for clients. */
    public String bootstrap() {
        return child.bootstrap();
    }

    /** A pcapng file with all that has passed, which Wireshark opens, too. */
    public Path capture() {
        return capture;
    }

    /** An assertion about the requests that match a display filter: {@code api == Produce and acks == 1}. */
    public TrafficAssert assertThat(String filter) {
        return new TrafficAssert(this, filter, Duration.ZERO);
    }

    /** The requests that match a display filter; an empty one matches all. */
    public List<Exchange> exchanges(String filter) {
        return expect(filter, null, Duration.ZERO).exchanges();
    }

    /** Adds a rule, {@code api == Fetch -> delay 200ms once}; returns its name. */
    public String fault(String rule) {
        return (String) object(ask("fault", Map.of("rule", rule)).get("rule")).get("name");
    }

    /** Removes the rules of that name. */
    public void remove(String name) {
        ask("remove", Map.of("name", name));
    }

    /** Removes all rules. */
    public void clear() {
        ask("clear", Map.of());
    }

    /** All rules, with how often each {@code matched} and {@code fired}. */
    public List<Map<String, Object>> rules() {
        return objects(ask("rules", Map.of()).get("rules"));
    }

    /** Holds the requests that match a display filter until they are released. */
    public void hold(String filter) {
        ask("hold", Map.of("filter", filter));
    }

    /** What is held, oldest first, as soon as there are so many. */
    public List<Map<String, Object>> held(int count) {
        Instant end = Instant.now().plus(PATIENCE);
        while (true) {
            List<Map<String, Object>> found = objects(ask("held", Map.of()).get("held"));
            if (found.size() >= count) {
                return found;
            }
            if (Instant.now().isAfter(end)) {
                throw new AssertionError(found.size() + " frames are held, not " + count);
            }
            try {
                Thread.sleep(LOOK_MS);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new KafkascopeException("held: interrupted");
            }
        }
    }

    /** Lets all held frames go on. */
    public void release() {
        ask("release", Map.of("number", "all"));
    }

    /** Lets a held frame never arrive. */
    public void drop(long number) {
        ask("drop", Map.of("number", number));
    }

    /** Asks anything that docs/control.md of kafkascope knows. */
    public Map<String, Object> ask(String what, Map<String, ?> members) {
        return child.ask(what, members);
    }

    /** Ends the proxy; the capture is complete then. */
    @Override
    public void close() {
        child.close();
    }

    /** Looks only at what begins from now on. */
    void startOver() {
        since = Instant.now();
    }

    Verdict expect(String filter, Integer count, Duration within) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("filter", filter);
        members.put("count", count);
        members.put("within", within.toMillis() / 1000.0);
        members.put("since_ns", since.getEpochSecond() * 1_000_000_000L + since.getNano());
        members.put("limit", 10_000);
        Map<String, Object> told = ask("expect", members);
        List<Exchange> found = objects(told.get("exchanges")).stream().map(Exchange::new).toList();
        return new Verdict(Boolean.TRUE.equals(told.get("met")), (String) told.get("text"), found);
    }

    /** Copies what has passed to a file. */
    void keep(Path target) {
        try {
            try {
                ask("flush", Map.of());
            } catch (KafkascopeException error) {
                // What was written before it ended is worth keeping.
            }
            Files.createDirectories(target.getParent());
            Files.copy(capture, target, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** What kafkascope says of an expectation. */
    record Verdict(boolean met, String text, List<Exchange> exchanges) {
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> objects(Object value) {
        return (List<Map<String, Object>>) value;
    }
}
