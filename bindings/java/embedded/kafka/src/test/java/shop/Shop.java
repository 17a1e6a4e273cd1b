package shop;

import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** What is tested: a program that knows nothing but the address that it is given. */
final class Shop {
    private Shop() {
    }

    static void open(String bootstrap, int partitions) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic("orders", partitions, (short) 1))).all().get(30, TimeUnit.SECONDS);
        }
    }

    static void order(String bootstrap, int partition) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "client.id", "shop");
        var strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, strings, strings)) {
            producer.send(new ProducerRecord<>("orders", partition, null, "milk")).get(30, TimeUnit.SECONDS);
        }
    }
}
