import java.lang.reflect.InvocationTargetException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** What changed in KafkaConsumer between 0.10 and 4.x. */
final class Polling {
    private Polling() { }

    /** poll(long) is gone in 4.0; poll(Duration) came with 2.0. */
    @SuppressWarnings("unchecked")
    static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long millis)
            throws ReflectiveOperationException {
        try {
            return (ConsumerRecords<byte[], byte[]>) KafkaConsumer.class
                .getMethod("poll", Duration.class).invoke(consumer, Duration.ofMillis(millis));
        } catch (NoSuchMethodException older) {
            return (ConsumerRecords<byte[], byte[]>) KafkaConsumer.class
                .getMethod("poll", long.class).invoke(consumer, millis);
        } catch (InvocationTargetException failure) {
            if (failure.getCause() instanceof RuntimeException) {
                throw (RuntimeException) failure.getCause();
            }
            throw failure;
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(Driver.Arguments arguments, String suffix) {
        Properties p = arguments.client(suffix);
        p.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("session.timeout.ms", "10000");
        p.put("heartbeat.interval.ms", "300");
        p.put("fetch.max.wait.ms", "200");
        p.put("isolation.level", arguments.get("isolation", "read_uncommitted"));
        if (!arguments.get("group", "").isEmpty()) {
            p.put("group.id", arguments.get("group"));
        }
        if (!arguments.get("protocol", "").isEmpty()) {
            p.put("group.protocol", arguments.get("protocol"));
            if (arguments.get("protocol").equals("consumer")) {
                p.remove("session.timeout.ms");
                p.remove("heartbeat.interval.ms");
            }
        }
        return new KafkaConsumer<>(p);
    }
}
