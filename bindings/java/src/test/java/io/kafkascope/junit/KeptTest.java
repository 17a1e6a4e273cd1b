package io.kafkascope.junit;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The scenario of a test that fails: its capture is kept. */
@EnabledIfEnvironmentVariable(named = "KAFKASCOPE_SCENARIO", matches = "kept")
class KeptTest {
    @RegisterExtension
    static KafkascopeExtension kafka = KafkascopeExtension.proxy(System.getenv("KAFKASCOPE_BROKER"));

    @Test
    void fails(KafkascopeProxy proxy) throws Exception {
        Scenario scenario = Scenario.wanted().get(0);
        String topic = Run.topic(System.getenv("KAFKASCOPE_BROKER"), scenario.name());
        new Run(proxy, topic).doAll(scenario.steps(topic));
    }
}
