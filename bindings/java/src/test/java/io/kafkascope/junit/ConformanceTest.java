package io.kafkascope.junit;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;

/** The scenarios of {@code bindings/scenarios}, with the Java client. */
@EnabledIfEnvironmentVariable(named = "KAFKASCOPE_SCENARIOS", matches = ".+")
@DisabledIfEnvironmentVariable(named = "KAFKASCOPE_SCENARIO", matches = "kept")
class ConformanceTest {
    private static final String OLD = """
            #!/bin/sh
            read line
            echo '{"ok":true,"protocol":1,"bootstrap":"127.0.0.1:1"}'
            cat
            """;

    @TempDir
    static Path folder;

    private static KafkascopeBroker captured;

    @AfterAll
    static void end() {
        if (captured != null) {
            captured.close();
        }
    }

    @TestFactory
    Stream<DynamicTest> scenarios() throws Exception {
        return Scenario.wanted().stream().map(each ->
                DynamicTest.dynamicTest(each.name() + " before " + each.before(), () -> passes(each)));
    }

    private static void passes(Scenario scenario) throws Exception {
        if (scenario.before() == null) {
            starts(scenario);
        } else {
            String upstream = System.getenv("KAFKASCOPE_BROKER");
            if (scenario.before().equals("capture")) {
                if (captured == null) {
                    captured = KafkascopeBroker.of(Path.of(System.getenv("KAFKASCOPE_CAPTURE")));
                }
                upstream = captured.bootstrap();
            }
            String topic = Run.topic(upstream, scenario.name());
            List<String> words = new ArrayList<>();
            scenario.rules().forEach(rule -> words.addAll(List.of("--fault", rule)));
            Path capture = folder.resolve(topic + ".pcapng");
            try (KafkascopeProxy proxy = KafkascopeProxy.start(upstream, capture, words.toArray(String[]::new))) {
                new Run(proxy, topic).doAll(scenario.steps(topic));
            }
        }
        scenario.report();
    }

    private static void starts(Scenario scenario) throws Exception {
        List<String> command = Child.command();
        List<String> arguments = new ArrayList<>();
        Path other = Files.createTempDirectory(folder, "other").resolve("kafkascope");
        if ("missing".equals(scenario.start().get("command"))) {
            command = List.of(other.toString());
        } else if ("old".equals(scenario.start().get("command"))) {
            Files.writeString(other, OLD);
            Files.setPosixFilePermissions(other, PosixFilePermissions.fromString("rwx------"));
            command = List.of(other.toString());
        }
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            if ("taken".equals(scenario.start().get("listen"))) {
                arguments.addAll(List.of("--listen", "127.0.0.1:" + taken.getLocalPort()));
            }
            List<String> words = command;
            Path capture = folder.resolve("none.pcapng");
            KafkascopeException failure = assertThrows(KafkascopeException.class,
                    () -> new KafkascopeProxy(words, "127.0.0.1:1", capture, arguments).close());
            for (String text : scenario.fails()) {
                assertTrue(failure.getMessage().contains(text), failure.getMessage());
            }
        }
    }
}
