import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A producer and a consumer that go on for seconds, while leaders move and brokers restart. */
public final class Journey implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        int count = arguments.number("count", 400);
        Set<String> read = new ConcurrentSkipListSet<>();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread reader = new Thread(() -> {
            try {
                consume(arguments, count, read);
            } catch (Throwable error) {
                failure.set(error);
            }
        });
        reader.start();
        Set<String> written = new TreeSet<>();
        try (KafkaProducer<byte[], byte[]> producer = Produce.producer(arguments)) {
            for (int i = 0; i < count; i++) {
                String value = "r" + i;
                written.add(value);
                producer.send(new ProducerRecord<>(arguments.get("topic"), Known.bytes(value)), (data, error) -> {
                    if (error != null) {
                        failure.set(error);
                    }
                });
                Thread.sleep(arguments.number("pause", 50));
            }
        }
        reader.join(60_000);
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("written", written.size());
        result.put("read", read.size());
        result.put("same", written.equals(read));
        return result;
    }

    private static void consume(Driver.Arguments arguments, int count, Set<String> read) throws Exception {
        long end = System.currentTimeMillis() + 90_000;
        try (KafkaConsumer<byte[], byte[]> consumer = Polling.consumer(arguments, "-reader")) {
            consumer.subscribe(Collections.singletonList(arguments.get("topic")));
            while (read.size() < count && System.currentTimeMillis() < end) {
                for (ConsumerRecord<byte[], byte[]> record : Polling.poll(consumer, 200)) {
                    read.add(new String(record.value(), "UTF-8"));
                }
            }
            consumer.commitSync();
        }
    }
}
