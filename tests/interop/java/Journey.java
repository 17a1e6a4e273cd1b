import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * A producer and a consumer that go on for seconds, so that leaders can move and brokers restart
 * under them. Arguments: bootstrap topic count pause-ms protocol. Prints written and read counts.
 */
public final class Journey {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        long pause = Long.parseLong(args[3]);
        Set<String> read = new ConcurrentSkipListSet<>();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread reader = new Thread(() -> {
            try {
                consume(args[0], topic, count, args[4], read);
            } catch (Throwable error) {
                failure.set(error);
            }
        });
        reader.start();
        Set<String> written = new TreeSet<>();
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("client.id", "journey-producer");
        p.put("acks", "all");
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
            for (int i = 0; i < count; i++) {
                String value = "r" + i;
                written.add(value);
                producer.send(new ProducerRecord<>(topic, value, value), (data, error) -> {
                    if (error != null) {
                        failure.set(error);
                    }
                });
                Thread.sleep(pause);
            }
        }
        reader.join(60_000);
        if (failure.get() != null) {
            failure.get().printStackTrace();
        }
        System.out.println("{\"written\":" + written.size() + ",\"read\":" + read.size()
            + ",\"same\":" + written.equals(read) + "}");
        System.exit(failure.get() == null ? 0 : 1);
    }

    private static void consume(String bootstrap, String topic, int count, String protocol,
            Set<String> read) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("client.id", "journey-consumer");
        p.put("group.id", topic + "." + protocol);
        p.put("group.protocol", protocol);
        p.put("auto.offset.reset", "earliest");
        p.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        long end = System.currentTimeMillis() + 90_000;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p)) {
            consumer.subscribe(Collections.singletonList(topic));
            while (read.size() < count && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    read.add(record.value());
                }
            }
            consumer.commitSync();
        }
    }
}
