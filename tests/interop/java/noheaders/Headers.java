import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Stands in for record headers with clients before 0.11; never called. */
final class Headers {
    private Headers() { }

    static List<Object> of(ConsumerRecord<byte[], byte[]> record) {
        throw new IllegalStateException();
    }

    static ProducerRecord<byte[], byte[]> record(Known known) {
        throw new IllegalStateException();
    }
}
