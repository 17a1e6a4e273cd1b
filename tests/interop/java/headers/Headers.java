import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;

/** Headers of records, in a class of their own: clients before 0.11 have none. */
final class Headers {
    private Headers() { }

    static List<Object> of(ConsumerRecord<byte[], byte[]> record) {
        List<Object> all = new ArrayList<>();
        for (Header header : record.headers()) {
            all.add(Json.list(header.key(), Json.payload(header.value())));
        }
        return all;
    }

    static ProducerRecord<byte[], byte[]> record(Known known) {
        ProducerRecord<byte[], byte[]> record =
            new ProducerRecord<>(known.topic, known.partition, known.time, known.key, known.value);
        for (Object pair : known.headers) {
            List<?> header = (List<?>) pair;
            Object value = header.get(1);
            record.headers().add((String) header.get(0), value == null ? null : Known.bytes((String) value));
        }
        return record;
    }
}
