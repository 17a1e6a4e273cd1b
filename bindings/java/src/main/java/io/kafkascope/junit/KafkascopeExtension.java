package io.kafkascope.junit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.BeforeTestExecutionCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestInstanceFactoryContext;
import org.junit.jupiter.api.extension.TestInstancePreConstructCallback;

/**
 * A proxy between the tests' clients and their broker.
 *
 * <pre>{@code
 * @RegisterExtension
 * static KafkascopeExtension kafka = KafkascopeExtension.proxy("localhost:9092");
 *
 * @Test
 * void waitsForAllReplicas() {
 *     produce(kafka.bootstrap());
 *     kafka.assertThat("api == Produce and acks == -1").wasSent();
 * }
 * }</pre>
 *
 * <p>A static field has one proxy for the class: each test looks at its own traffic only, and the
 * rules, holds and held frames that it leaves are taken back. A field that is not static has a proxy
 * for each test. The capture of a test that failed is kept: in KAFKASCOPE_DIR, the system property
 * {@code kafkascope.dir}, or {@code target/kafkascope} ({@code build/kafkascope}).
 */
public final class KafkascopeExtension
        implements TestInstancePreConstructCallback, BeforeAllCallback, BeforeEachCallback, BeforeTestExecutionCallback,
                AfterEachCallback, AfterAllCallback, ParameterResolver {
    private static final int LONGEST_NAME = 120;

    private final Supplier<String> upstream;
    private final boolean known; // from the start
    private final List<String> arguments = new ArrayList<>();
    private final List<String> rules = new ArrayList<>();
    private Path folder;
    private KafkascopeProxy proxy;
    private int classes; // those that run: a nested one has our callbacks, too
    private boolean running; // JUnit knows us, and has tests

    private KafkascopeExtension(Supplier<String> upstream, boolean known) {
        this.upstream = upstream;
        this.known = known;
    }

    /** A proxy before a broker: {@code host:port}, several with commas, {@code PLAINTEXT://host:port}. */
    public static KafkascopeExtension proxy(String upstream) {
        return new KafkascopeExtension(() -> upstream, true);
    }

    /**
     * A proxy before a broker that starts later: {@code proxy(container::getBootstrapServers)}. It starts when
     * somebody asks for its own address, at the latest before the body of a test, so that it does not matter which
     * extension starts the broker and when.
     */
    public static KafkascopeExtension proxy(Supplier<String> upstream) {
        return new KafkascopeExtension(upstream, false);
    }

    /** Adds a rule that is there before the first client, for all tests. */
    public KafkascopeExtension withFault(String rule) {
        return withArguments("--fault", rule);
    }

    /** Adds options of {@code kafkascope proxy}: TLS and so on. */
    public KafkascopeExtension withArguments(String... more) {
        arguments.addAll(Arrays.asList(more));
        return this;
    }

    /** The running proxy. */
    public synchronized KafkascopeProxy proxy() {
        if (!running) {
            throw new KafkascopeException("the proxy is there while tests run: is the field a @RegisterExtension?");
        }
        if (proxy == null) {
            start();
        }
        return proxy;
    }

    /** The address for clients. */
    public String bootstrap() {
        return proxy().bootstrap();
    }

    /** An assertion about the requests of this test that match a display filter. */
    public TrafficAssert assertThat(String filter) {
        return proxy().assertThat(filter);
    }

    /** An assertion about the records of this test, produced or fetched, that match a display filter. */
    public RecordsAssert assertThatRecords(String filter) {
        return proxy().assertThatRecords(filter);
    }

    /** No response had an error in this test, except those of these names. */
    public void assertNoErrors(String... allowed) {
        proxy().assertNoErrors(allowed);
    }

    /** {@code kafkascope check} finds nothing of this severity or worse in this test, except by the rules of these names. */
    public void assertNoFindings(Finding.Severity level, String... allowed) {
        proxy().assertNoFindings(level, allowed);
    }

    /** The requests of this test that match a display filter; an empty one matches all. */
    public List<Exchange> exchanges(String filter) {
        return proxy().exchanges(filter);
    }

    /** Adds a rule until the end of this test, {@code api == Fetch -> delay 200ms once}; returns its name. */
    public String fault(String rule) {
        String name = proxy().fault(rule);
        rules.add(name);
        return name;
    }

    /** Holds the requests that match a display filter, until they are released or the test ends. */
    public void hold(String filter) {
        proxy().hold(filter);
    }

    /** What is held, oldest first, as soon as there are so many. */
    public List<Map<String, Object>> held(int count) {
        return proxy().held(count);
    }

    /** Lets all held frames go on. */
    public void release() {
        proxy().release();
    }

    /** With one instance for the class, Spring asks for the address before {@code beforeAll}. */
    @Override
    public synchronized void preConstructTestInstance(TestInstanceFactoryContext factory, ExtensionContext context) {
        running = true;
    }

    @Override
    public synchronized void beforeAll(ExtensionContext context) {
        classes++;
        running = true;
        if (known) {
            proxy();
        }
    }

    @Override
    public synchronized void beforeEach(ExtensionContext context) {
        running = true;
        if (known || proxy != null) {
            proxy().startOver();
        }
    }

    /** Clients may know the address from {@code withArguments} and never ask. */
    @Override
    public void beforeTestExecution(ExtensionContext context) {
        proxy();
    }

    @Override
    public synchronized void afterEach(ExtensionContext context) {
        if (proxy != null) { // else it did not start
            context.getExecutionException().ifPresent(failure -> keep(context, failure));
        }
        if (classes == 0) {
            end();
        } else if (proxy != null) {
            takeBack();
        }
    }

    @Override
    public synchronized void afterAll(ExtensionContext context) {
        if (--classes == 0) {
            end();
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == KafkascopeProxy.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return proxy();
    }

    private void start() {
        String broker = upstream.get();
        if (broker == null || broker.isBlank()) {
            throw new KafkascopeException("the broker has no address yet: has it started?");
        }
        try {
            folder = Files.createTempDirectory("kafkascope-");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        proxy = new KafkascopeProxy(Child.command(), broker, folder.resolve("kafka.pcapng"), arguments);
    }

    private void takeBack() {
        try {
            rules.forEach(proxy::remove);
            proxy.remove("hold request");
            proxy.remove("hold response");
            proxy.release();
        } catch (KafkascopeException error) {
            // It has ended: the next test says so.
        }
        rules.clear();
    }

    private void end() {
        running = false;
        if (proxy == null) {
            return;
        }
        proxy.close();
        proxy = null;
        try (var files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
            Files.delete(folder);
        } catch (IOException error) {
            // Left in the temporary folder, which is somebody else's to clean.
        }
    }

    private void keep(ExtensionContext context, Throwable failure) {
        String test = context.getRequiredTestClass().getSimpleName() + "." + context.getDisplayName();
        Path target = kept().resolve(fileName(test)).toAbsolutePath();
        String sentence;
        try {
            proxy.keep(target);
            sentence = "the traffic of this test: " + target;
        } catch (UncheckedIOException error) {
            sentence = "the traffic of this test could not be kept: " + error.getMessage();
        }
        failure.addSuppressed(new CaptureKept(sentence));
        context.publishReportEntry("kafkascope", sentence);
    }

    /** A name that every file system takes; the names of Kafka's own tests have 250 characters. */
    static String fileName(String test) {
        String name = test.replaceAll("[^\\w.-]+", "_");
        if (name.length() > LONGEST_NAME) {
            name = name.substring(0, LONGEST_NAME) + "-" + Integer.toHexString(name.hashCode());
        }
        return name + ".pcapng";
    }

    private static Path kept() {
        String wished = System.getProperty("kafkascope.dir", System.getenv("KAFKASCOPE_DIR"));
        if (wished != null && !wished.isBlank()) {
            return Path.of(wished);
        }
        boolean gradle = Files.exists(Path.of("build.gradle")) || Files.exists(Path.of("build.gradle.kts"));
        return Path.of(gradle ? "build" : "target", "kafkascope");
    }
}
