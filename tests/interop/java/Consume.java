import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** Read `count` records of a topic, as the only member of a group or without a group. */
public final class Consume implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        List<Object> rows = new ArrayList<>();
        String topic = arguments.get("topic");
        boolean grouped = !arguments.get("group", "").isEmpty();
        try (KafkaConsumer<byte[], byte[]> consumer = Polling.consumer(arguments, "")) {
            if (grouped) {
                consumer.subscribe(Collections.singletonList(topic));
            } else {
                List<TopicPartition> all =
                    Arrays.asList(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
                consumer.assign(all);
                consumer.seekToBeginning(all);
            }
            long end = System.currentTimeMillis() + 1000L * arguments.number("seconds", 40);
            while (rows.size() < arguments.number("count", 60) && System.currentTimeMillis() < end) {
                for (ConsumerRecord<byte[], byte[]> record : Polling.poll(consumer, 500)) {
                    rows.add(Known.row(record));
                }
            }
            if (grouped) {
                consumer.commitSync();
            }
        }
        return Collections.singletonMap("consumed", rows);
    }
}
