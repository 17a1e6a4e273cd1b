package io.kafkascope.junit;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A kafkascope that is steered over its stdin and stdout: a line of JSON goes in, one comes back
 * (docs/control.md of kafkascope). It ends when its stdin does: with this process, whatever ends it.
 */
final class Child implements AutoCloseable {
    /** Of the control channel; an older kafkascope expects nothing of records and findings. */
    static final int PROTOCOL = 3;

    private static final String ABSENT =
            "there is no kafkascope: install it, or say where it is (KAFKASCOPE in the environment,"
                    + " or the system property kafkascope.command)";
    // These are for machines that are ten times as slow as ours.
    private static final long START_S = 90;
    private static final long ANSWER_S = 60;
    private static final long END_S = 30;
    private static final int LINES = 200;

    private final Process process;
    private final Writer stdin;
    private final BlockingQueue<Optional<String>> answers = new LinkedBlockingQueue<>();
    private final Deque<String> stderr = new ArrayDeque<>();
    private final Thread errors;
    private final Thread lines;
    private final String bootstrap;
    private boolean over;

    /** Starts it, and returns when clients can connect. */
    Child(List<String> command, List<String> arguments) {
        List<String> words = new ArrayList<>(command);
        words.addAll(arguments);
        words.addAll(List.of("--control", "-"));
        try {
            process = new ProcessBuilder(words).start();
        } catch (IOException error) {
            throw new KafkascopeException(ABSENT + "; " + error.getMessage());
        }
        stdin = process.outputWriter(StandardCharsets.UTF_8);
        errors = reading(process.getErrorStream(), this::says, () -> { });
        lines = reading(process.getInputStream(), line -> answers.add(Optional.of(line)), () -> answers.add(Optional.empty()));
        try {
            Map<String, Object> status;
            try {
                status = answer(Map.of("do", "status"), START_S);
            } catch (KafkascopeException error) {
                throw new KafkascopeException("kafkascope did not start:\n" + stderr());
            }
            Object protocol = status.get("protocol");
            if (!(protocol instanceof Number number) || number.intValue() < PROTOCOL) {
                throw new KafkascopeException("this kafkascope speaks protocol " + protocol
                        + " of its control channel, and " + PROTOCOL + " is needed: update kafkascope");
            }
            bootstrap = (String) status.get("bootstrap");
        } catch (KafkascopeException error) {
            close();
            throw error;
        }
    }

    /** The command of the system property {@code kafkascope.command}, of KAFKASCOPE, or of the PATH. */
    static List<String> command() {
        String wished = System.getProperty("kafkascope.command", System.getenv("KAFKASCOPE"));
        if (wished == null || wished.isBlank()) {
            return List.of("kafkascope");
        }
        return Files.exists(Path.of(wished)) ? List.of(wished) : words(wished);
    }

    /** Words as in a shell: blanks separate them, quotes keep them together. */
    static List<String> words(String text) {
        List<String> words = new ArrayList<>();
        StringBuilder word = null;
        char quote = 0;
        for (char c : text.toCharArray()) {
            if (quote == 0 && Character.isWhitespace(c)) {
                if (word != null) {
                    words.add(word.toString());
                }
                word = null;
                continue;
            }
            word = word == null ? new StringBuilder() : word;
            if (c == quote) {
                quote = 0;
            } else if (quote == 0 && (c == '"' || c == '\'')) {
                quote = c;
            } else {
                word.append(c);
            }
        }
        if (word != null) {
            words.add(word.toString());
        }
        return words;
    }

    String bootstrap() {
        return bootstrap;
    }

    /** The last lines of its stderr. */
    String stderr() {
        synchronized (stderr) {
            return String.join("\n", stderr);
        }
    }

    /** The answer; members that are null are left out. */
    Map<String, Object> ask(String what, Map<String, ?> members) {
        Map<String, Object> request = new LinkedHashMap<>(Map.of("do", what));
        members.forEach((name, value) -> {
            if (value != null) {
                request.put(name, value);
            }
        });
        long within = members.get("within") instanceof Number number ? number.longValue() : 0;
        Map<String, Object> answer = answer(request, ANSWER_S + within);
        if (!Boolean.TRUE.equals(answer.get("ok"))) {
            throw new KafkascopeException(what + ": " + answer.get("error"));
        }
        return answer;
    }

    private synchronized Map<String, Object> answer(Map<String, ?> request, long seconds) {
        Optional<String> line = Optional.empty();
        if (!over) {
            try {
                stdin.write(JSON.std.asString(request) + "\n");
                stdin.flush();
                line = answers.poll(seconds, TimeUnit.SECONDS);
            } catch (IOException error) {
                // It is gone, as the end of its stdout would tell.
            } catch (InterruptedException error) {
                over = true; // a late answer would be taken for the next one
                Thread.currentThread().interrupt();
                throw new KafkascopeException(request.get("do") + ": interrupted");
            }
            if (line == null) {
                over = true;
                throw new KafkascopeException(request.get("do") + ": no answer after " + seconds + " s");
            }
        }
        if (line.isEmpty()) {
            over = true;
            join(errors);
            throw new KafkascopeException(stderr().isEmpty() ? "kafkascope has ended" : "kafkascope has ended:\n" + stderr());
        }
        try {
            return JSON.std.mapFrom(line.get());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Ends it, in order if possible; returns when it is gone. */
    @Override
    public void close() {
        try {
            stdin.close();
        } catch (IOException error) {
            // It has ended already.
        }
        try {
            if (!process.waitFor(END_S, TimeUnit.SECONDS)) {
                process.destroy();
                if (!process.waitFor(END_S, TimeUnit.SECONDS)) {
                    process.destroyForcibly().waitFor();
                }
            }
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        // Whoever counts threads when a test is over (Kafka's own extension does) finds none of ours.
        join(errors);
        join(lines);
    }

    private void says(String line) {
        synchronized (stderr) {
            stderr.add(line);
            if (stderr.size() > LINES) {
                stderr.remove();
            }
        }
    }

    private static Thread reading(InputStream stream, Consumer<String> line, Runnable end) {
        Thread thread = new Thread(() -> {
            try (BufferedReader reader = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
                for (String each = reader.readLine(); each != null; each = reader.readLine()) {
                    line.accept(each);
                }
            } catch (IOException error) {
                // The process was ended.
            } finally {
                end.run();
            }
        }, "kafkascope");
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void join(Thread thread) {
        try {
            thread.join(TimeUnit.SECONDS.toMillis(END_S));
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
