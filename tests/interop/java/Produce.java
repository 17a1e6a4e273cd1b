import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;

/** Known records first..first+count of a topic, with a codec and a kind of acknowledgement. */
public final class Produce implements Driver.Step {
    static KafkaProducer<byte[], byte[]> producer(Driver.Arguments arguments) {
        Properties p = arguments.client("");
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("compression.type", arguments.get("codec", "none"));
        p.put("acks", arguments.get("acks", "all"));
        p.put("enable.idempotence", arguments.get("idempotent", "false"));
        p.put("linger.ms", "20");
        return new KafkaProducer<>(p);
    }

    /** Send and wait; the rows of what was written, offset null where nobody said it. */
    static List<Object> send(KafkaProducer<byte[], byte[]> producer, Driver.Arguments arguments,
            int first, int count) throws Exception {
        List<Known> sent = new ArrayList<>();
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (int i = first; i < first + count; i++) {
            Known known = new Known(arguments.get("topic"), i, arguments.number("partitions", 2));
            sent.add(known);
            futures.add(producer.send(known.record()));
        }
        producer.flush();
        List<Object> rows = new ArrayList<>();
        for (int i = 0; i < sent.size(); i++) {
            List<Object> row = sent.get(i).row(futures.get(i).get().offset());
            if (((Long) row.get(2)) < 0) {
                row.set(2, null);
            }
            rows.add(row);
        }
        return rows;
    }

    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(arguments)) {
            return Collections.singletonMap("produced",
                send(producer, arguments, arguments.number("first", 0), arguments.number("count", 60)));
        }
    }
}
