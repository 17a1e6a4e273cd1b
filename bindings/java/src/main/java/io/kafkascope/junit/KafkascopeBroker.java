package io.kafkascope.junit;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A capture that answers clients as a broker does: tests without Kafka. As a static
 * {@code @RegisterExtension} field it starts and ends with the class; elsewhere, it is closed.
 */
public final class KafkascopeBroker implements BeforeAllCallback, AfterAllCallback, AutoCloseable {
    private final List<String> words;
    private Child child;
    private int classes; // those that run: a nested one has our callbacks, too

    private KafkascopeBroker(Path capture, List<String> arguments) {
        words = new ArrayList<>(List.of("serve", capture.toString(), "--listen", "127.0.0.1:0"));
        words.addAll(arguments);
    }

    /** A capture to be served; {@code arguments} go to {@code kafkascope serve}. */
    public static KafkascopeBroker of(Path capture, String... arguments) {
        return new KafkascopeBroker(capture, List.of(arguments));
    }

    /** Starts it, and returns when clients can connect. */
    public synchronized KafkascopeBroker start() {
        if (child == null) {
            child = new Child(Child.command(), words);
        }
        return this;
    }

    /** The address for clients; starts it where that has not been done. */
    public String bootstrap() {
        return start().child.bootstrap();
    }

    /** The last lines of its stderr: requests without an answer, and other remarks. */
    public String stderr() {
        return start().child.stderr();
    }

    /** @deprecated Use {@link #stderr()}. */
    @Deprecated
    public String said() {
        return stderr();
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        classes++;
        start();
    }

    @Override
    public void afterAll(ExtensionContext context) {
        if (--classes == 0) {
            close();
        }
    }

    /** Ends it. */
    @Override
    public synchronized void close() {
        if (child != null) {
            child.close();
            child = null;
        }
    }
}
