package shop;

import io.kafkascope.junit.KafkascopeExtension;
import io.kafkascope.junit.KafkascopeProxy;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.kafka.test.EmbeddedKafkaBroker;
import org.springframework.kafka.test.EmbeddedKafkaKraftBroker;
import org.springframework.kafka.test.condition.EmbeddedKafkaCondition;
import org.springframework.kafka.test.context.EmbeddedKafka;

/** Spring's brokers in tests that have no application context. */
class WithoutContextTest {
    static void order(String bootstrap) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "client.id", "shop");
        var strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, strings, strings)) {
            producer.send(new ProducerRecord<>("orders", "milk")).get(30, TimeUnit.SECONDS);
        }
    }

    @Nested
    @EmbeddedKafka(topics = "orders", partitions = 1)
    class ByAnnotation {
        @RegisterExtension
        static KafkascopeExtension kafka =
                KafkascopeExtension.proxy(() -> EmbeddedKafkaCondition.getBroker().getBrokersAsString());

        @Test
        void anOrderIsSentOnce(KafkascopeProxy proxy) throws Exception {
            order(proxy.bootstrap());
            kafka.assertThat("api == Produce and client == shop").hasCount(1);
        }
    }

    @Nested
    class ByHand {
        static final EmbeddedKafkaBroker BROKER = started();

        @RegisterExtension
        static KafkascopeExtension kafka = KafkascopeExtension.proxy(BROKER.getBrokersAsString());

        static EmbeddedKafkaBroker started() {
            EmbeddedKafkaBroker broker = new EmbeddedKafkaKraftBroker(1, 1, "orders");
            broker.afterPropertiesSet();
            return broker;
        }

        @Test
        void anOrderIsSentOnce() throws Exception {
            order(kafka.bootstrap());
            kafka.assertThat("api == Produce and client == shop").hasCount(1);
            BROKER.destroy();
        }
    }
}
