package shop;

import io.kafkascope.junit.KafkascopeExtension;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.kafka.test.context.EmbeddedKafka;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.test.context.junit.jupiter.SpringJUnitConfig;

/** The broker is a bean of the application context; a property tells the beans of the application its address. */
@SpringJUnitConfig
@EmbeddedKafka(topics = "orders", partitions = 1)
@TestInstance(TestInstance.Lifecycle.PER_CLASS) // Spring makes the context before beforeAll
class SpringContextTest {
    @RegisterExtension
    static KafkascopeExtension kafka =
            KafkascopeExtension.proxy(() -> System.getProperty("spring.embedded.kafka.brokers"));

    @DynamicPropertySource
    static void clientsTakeTheProxy(DynamicPropertyRegistry properties) {
        properties.add("spring.kafka.bootstrap-servers", kafka::bootstrap);
    }

    @Autowired
    KafkaTemplate<String, String> template;

    @Test
    void anOrderIsSentOnce() throws Exception {
        template.send("orders", "milk").get(30, TimeUnit.SECONDS);
        kafka.assertThat("api == Produce and topic == orders").hasCount(1);
    }

    @Test
    void aLeaderThatMovesCostsNoOrder() throws Exception {
        kafka.fault("api == Produce -> error NOT_LEADER_OR_FOLLOWER once");
        template.send("orders", "milk").get(30, TimeUnit.SECONDS);
        kafka.assertThat("api == Produce").hasCount(2);
    }

    /** What Spring Boot would make of the property. */
    @Configuration
    static class Shop {
        @Bean
        ProducerFactory<String, String> producers(@Value("${spring.kafka.bootstrap-servers}") String bootstrap) {
            Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "client.id", "shop");
            var factory = new DefaultKafkaProducerFactory<>(settings, new StringSerializer(), new StringSerializer());
            factory.setProducerPerThread(false);
            return factory;
        }

        @Bean
        KafkaTemplate<String, String> template(ProducerFactory<String, String> producers) {
            return new KafkaTemplate<>(producers);
        }
    }
}
