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
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;

/**
 * A proxy before a broker. Clients connect to {@link #bootstrap()}; what they say is recorded in
 * {@link #capture()}. In tests, {@link KafkascopeExtension} starts and ends it.
 */
public final class KafkascopeProxy implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final long LOOK_MS = 20;
    private static final int TOLD = 20; // lines of a failure

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

    /** An assertion about records, produced or fetched, that match a display filter: {@code record.value.amount > 100}. */
    public RecordsAssert assertThatRecords(String filter) {
        return new RecordsAssert(this, filter, Duration.ZERO);
    }

    /** No response had an error, except those of these names: {@code NOT_LEADER_OR_FOLLOWER}. */
    public void assertNoErrors(String... allowed) {
        List<String> bad = new ArrayList<>();
        for (Exchange each : exchanges("error != 0")) {
            Set<String> names = new TreeSet<>(each.errorNames());
            names.removeAll(List.of(allowed));
            if (!names.isEmpty()) {
                bad.add(each + ": " + String.join(", ", names));
            }
        }
        if (!bad.isEmpty()) {
            throw new AssertionError("responses with errors:\n" + String.join("\n", bad.subList(0, Math.min(bad.size(), TOLD))));
        }
    }

    /** {@code kafkascope check} finds nothing of this severity or worse, except by the rules of these names. */
    public void assertNoFindings(Finding.Severity level, String... allowed) {
        Map<String, Object> members = Map.of("level", level.word(), "allow", List.of(allowed));
        expect("findings", "", 0, Duration.ZERO, members).orFail();
    }

    /** The requests that match a display filter; an empty one matches all. */
    public List<Exchange> exchanges(String filter) {
        return expect("exchanges", filter, null, Duration.ZERO, Map.of()).listed(Exchange::new);
    }

    /** The records, produced or fetched, that match a display filter; an empty one matches all. */
    public List<KafkaRecord> records(String filter) {
        return expect("records", filter, null, Duration.ZERO, Map.of()).listed(KafkaRecord::new);
    }

    /** What {@code kafkascope check} finds, of this severity or worse. */
    public List<Finding> findings(Finding.Severity level) {
        return expect("findings", "", null, Duration.ZERO, Map.of("level", level.word())).listed(Finding::new);
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

    Verdict expect(String of, String filter, Integer count, Duration within, Map<String, ?> more) {
        Map<String, Object> members = new LinkedHashMap<>(more);
        members.put("of", of);
        members.put("filter", filter);
        members.put("count", count);
        members.put("within", within.toMillis() / 1000.0);
        members.put("since_ns", since.getEpochSecond() * 1_000_000_000L + since.getNano());
        members.put("limit", 10_000);
        Map<String, Object> told = ask("expect", members);
        return new Verdict(Boolean.TRUE.equals(told.get("met")), (String) told.get("text"), objects(told.get(of)));
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

    /** What kafkascope says of an expectation; {@code found} is what matches. */
    record Verdict(boolean met, String text, List<Map<String, Object>> found) {
        Verdict orFail() {
            if (!met) {
                throw new AssertionError(text);
            }
            return this;
        }

        <T> List<T> listed(Function<Map<String, Object>, T> as) {
            return found.stream().map(as).toList();
        }
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
