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
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

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
        implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback, ParameterResolver {
    private final Supplier<String> upstream;
    private final List<String> arguments = new ArrayList<>();
    private final List<String> rules = new ArrayList<>();
    private Path folder;
    private KafkascopeProxy proxy;
    private int classes; // those that run: a nested one has our callbacks, too

    private KafkascopeExtension(Supplier<String> upstream) {
        this.upstream = upstream;
    }

    /** A proxy before a broker, {@code host:port}. */
    public static KafkascopeExtension proxy(String upstream) {
        return proxy(() -> upstream);
    }

    /** A proxy before a broker that is known later: {@code proxy(container::getBootstrapServers)}. */
    public static KafkascopeExtension proxy(Supplier<String> upstream) {
        return new KafkascopeExtension(upstream);
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
        if (proxy == null) {
            throw new KafkascopeException("the proxy is there while tests run: is the field a @RegisterExtension?");
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

    @Override
    public void beforeAll(ExtensionContext context) {
        classes++;
        start();
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        start();
        proxy().startOver();
    }

    @Override
    public synchronized void afterEach(ExtensionContext context) {
        if (proxy == null) {
            return; // it did not start
        }
        context.getExecutionException().ifPresent(failure -> keep(context, failure));
        if (classes > 0) {
            takeBack();
        } else {
            end();
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
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

    private synchronized void start() {
        if (proxy != null) {
            return;
        }
        try {
            folder = Files.createTempDirectory("kafkascope-");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        proxy = new KafkascopeProxy(Child.command(), upstream.get(), folder.resolve("kafka.pcapng"), arguments);
    }

    private void takeBack() {
        try {
            rules.forEach(proxy()::remove);
            proxy().ask("remove", Map.of("name", "hold request"));
            proxy().ask("remove", Map.of("name", "hold response"));
            proxy().release();
        } catch (KafkascopeException error) {
            // It has ended: the next test says so.
        }
        rules.clear();
    }

    private synchronized void end() {
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
        Path target = kept().resolve(test.replaceAll("[^\\w.-]+", "_") + ".pcapng").toAbsolutePath();
        String sentence;
        try {
            proxy().keep(target);
            sentence = "the traffic of this test: " + target;
        } catch (UncheckedIOException error) {
            sentence = "the traffic of this test could not be kept: " + error.getMessage();
        }
        failure.addSuppressed(new CaptureKept(sentence));
        context.publishReportEntry("kafkascope", sentence);
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
