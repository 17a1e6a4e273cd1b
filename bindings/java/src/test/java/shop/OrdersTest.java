package shop;

import io.kafkascope.junit.KafkascopeExtension;
import io.kafkascope.junit.KafkascopeProxy;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.extension.RegisterExtension;

@EnabledIfEnvironmentVariable(named = "KAFKASCOPE_BROKER", matches = ".+")
@DisabledIfEnvironmentVariable(named = "KAFKASCOPE_SCENARIO", matches = ".+")
class OrdersTest {
    @RegisterExtension
    static KafkascopeExtension kafka = KafkascopeExtension.proxy(System.getenv("KAFKASCOPE_BROKER"));

    static void produce(String bootstrap) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "client.id", "shop");
        var strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, strings, strings)) {
            producer.send(new ProducerRecord<>("orders", "order 1")).get();
        }
    }

    @Test
    void theProducerWaitsForAllReplicas() throws Exception {
        produce(kafka.bootstrap());
        kafka.assertThat("api == Produce and client == shop and acks == -1").wasSent();
        kafka.assertThat("api == Produce and failed").wasNotSent();
    }

    @Test
    void aLeaderThatMovesCostsNoRecord(KafkascopeProxy proxy) throws Exception {
        kafka.fault("api == Produce -> error NOT_LEADER_OR_FOLLOWER once");
        produce(proxy.bootstrap());
        kafka.assertThat("api == Produce").hasCount(2);
    }
}
