import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** A member of a group for `seconds`: polls, commits; `busy` ms are spent on the poll after `busyAfter` seconds. */
public final class Follow implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        Properties p = arguments.client("");
        p.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        p.put("group.id", arguments.get("group"));
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        int seen = 0;
        long begun = System.currentTimeMillis();
        boolean rested = false;
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p);
        try {
            consumer.subscribe(Collections.singletonList(arguments.get("topic")));
            while (System.currentTimeMillis() < begun + 1000L * arguments.number("seconds", 10)) {
                ConsumerRecords<byte[], byte[]> records = Polling.poll(consumer, 500);
                seen += records.count();
                if (!records.isEmpty()) {
                    try {
                        consumer.commitSync();
                    } catch (RuntimeException moved) {
                        System.err.println(moved);
                    }
                }
                boolean late = System.currentTimeMillis() > begun + 1000L * arguments.number("busyAfter", 3600);
                if (late && !rested) {
                    rested = true;
                    Thread.sleep(arguments.number("busy", 0));
                }
            }
        } finally {
            consumer.close();
        }
        return Collections.singletonMap("seen", seen);
    }
}
