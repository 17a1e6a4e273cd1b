import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * The records that every driver makes: keys and none, text, bytes, tombstones, headers.
 * tests/interop/known.py says the same in Python.
 */
final class Known {
    static final long EPOCH = 1_700_000_000_000L;
    static final boolean HEADERS = has("org.apache.kafka.common.header.Header");

    final String topic;
    final int index;
    final int partition;
    final long time;
    final byte[] key;
    final byte[] value;
    final List<Object> headers = new ArrayList<>();

    Known(String topic, int index, int partitions) {
        this.topic = topic;
        this.index = index;
        this.partition = index % partitions;
        this.time = EPOCH + index * 1000L;
        boolean tombstone = index % 17 == 16;
        this.key = tombstone ? bytes("gone") : index % 5 == 0 ? null : bytes("k" + index % 7);
        this.value = tombstone ? null
            : index % 13 == 12 ? new byte[] {(byte) 0xff, (byte) 0xfe, (byte) index}
            : bytes(topic + "/" + index + "/" + repeat("abcdefghij", 1 + index % 12)
                + (index % 10 == 9 ? " \u00e4\u00f6\u20ac\ud83d\ude80" : ""));
        if (HEADERS && index % 3 == 0) {
            headers.add(Json.list("n", Integer.toString(index)));
            headers.add(Json.list("src", topic));
            if (index % 6 == 0) {
                headers.add(Json.list("nil", null));
                headers.add(Json.list("n", "again"));
            }
        }
    }

    /** As [topic, partition, offset, time, key, value, headers]. */
    List<Object> row(long offset) {
        return Json.list(topic, partition, offset, time, Json.payload(key), Json.payload(value), headers);
    }

    static List<Object> row(ConsumerRecord<byte[], byte[]> r) {
        return Json.list(r.topic(), r.partition(), r.offset(), r.timestamp(),
            Json.payload(r.key()), Json.payload(r.value()), HEADERS ? Headers.of(r) : Json.list());
    }

    ProducerRecord<byte[], byte[]> record() {
        return HEADERS ? Headers.record(this)
            : new ProducerRecord<>(topic, partition, time, key, value);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String repeat(String text, int times) {
        StringBuilder all = new StringBuilder();
        for (int i = 0; i < times; i++) {
            all.append(text);
        }
        return all.toString();
    }

    private static boolean has(String name) {
        try {
            Class.forName(name);
            return true;
        } catch (ClassNotFoundException older) {
            return false;
        }
    }
}
