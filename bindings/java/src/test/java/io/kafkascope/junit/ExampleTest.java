package io.kafkascope.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What the README shows, and what tests of one class leave each other. */
@EnabledIfEnvironmentVariable(named = "KAFKASCOPE_CAPTURE", matches = ".+")
@DisabledIfEnvironmentVariable(named = "KAFKASCOPE_SCENARIO", matches = ".+")
class ExampleTest {
    private static final String TOPIC = "librdkafka.none";

    @Order(1)
    @RegisterExtension
    static KafkascopeBroker broker = KafkascopeBroker.of(Path.of(System.getenv().getOrDefault("KAFKASCOPE_CAPTURE", "")));

    @Order(2)
    @RegisterExtension
    static KafkascopeExtension kafka = KafkascopeExtension.proxy(broker::bootstrap)
            .withFault("api == Heartbeat -> delay 1ms");

    static void produce(String bootstrap, String value) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "client.id", "shop");
        var strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, strings, strings)) {
            producer.send(new ProducerRecord<>(TOPIC, value)).get(30, TimeUnit.SECONDS);
        }
    }

    @Test
    void waitsForAllReplicas() throws Exception {
        produce(kafka.bootstrap(), "order 1");
        List<Exchange> sent = kafka.assertThat("api == Produce and client == shop and acks == -1").hasCount(1);
        assertEquals("Produce", sent.get(0).api());
        assertEquals("shop", sent.get(0).clientId());
        assertEquals(List.of(), sent.get(0).errors());
        assertTrue(sent.get(0).version() > 8);
        assertTrue(sent.get(0).latencyMs() > 0);
        kafka.assertThat("api == Fetch").wasNotSent();
        AssertionError failure = assertThrows(AssertionError.class,
                () -> kafka.assertThat("api == Produce and acks == 1").wasSent());
        assertTrue(failure.getMessage().contains("no request with api == Produce and acks == 1; there were"),
                failure.getMessage());
        assertTrue(failure.getMessage().endsWith(" came nearest: acks is -1"), failure.getMessage());
    }

    @Test
    void aLeaderThatMovesCostsNoRecord(KafkascopeProxy proxy) throws Exception {
        kafka.fault("api == Produce -> error NOT_LEADER_OR_FOLLOWER once");
        produce(proxy.bootstrap(), "order 2");
        kafka.assertThat("api == Produce").hasCount(2);
        assertEquals(2, proxy.rules().size());
    }

    @Test
    void nothingIsDeliveredBeforeTheBrokerHasIt() throws Exception {
        kafka.hold("api == Produce");
        CompletableFuture<Void> writer = CompletableFuture.runAsync(() -> {
            try {
                produce(kafka.bootstrap(), "order 3");
            } catch (Exception error) {
                throw new AssertionError(error);
            }
        });
        assertEquals("Produce", kafka.held(1).get(0).get("api"));
        assertTrue(!writer.isDone());
        kafka.release();
        writer.get(30, TimeUnit.SECONDS);
    }

    @Nested
    class InAClassOfItsOwn {
        @Test
        void theProxyIsTheSame(KafkascopeProxy proxy) throws Exception {
            assertEquals(kafka.bootstrap(), proxy.bootstrap());
            produce(proxy.bootstrap(), "order 5");
            kafka.assertThat("api == Produce").hasCount(1);
        }
    }

    @Nested
    class WithAProxyForEachTest {
        @RegisterExtension
        KafkascopeExtension own = KafkascopeExtension.proxy(kafka::bootstrap);

        @Test
        void itStandsBeforeTheOther() throws Exception {
            produce(own.bootstrap(), "order 6");
            own.assertThat("api == Produce").hasCount(1);
            kafka.assertThat("api == Produce").hasCount(1);
            own.assertThat("api == Fetch").within(Duration.ofMillis(50)).wasNotSent();
        }
    }

    @Test
    void whatOtherTestsHaveLeftIsTakenBack(KafkascopeProxy proxy) throws Exception {
        assertEquals(List.of(), kafka.exchanges("client == shop"));
        assertEquals(1, proxy.rules().size());
        produce(kafka.bootstrap(), "order 4");
        kafka.assertThat("api == Produce").hasCount(1);
    }
}
