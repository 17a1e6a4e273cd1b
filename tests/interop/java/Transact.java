import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;

/** Three transactions: committed, aborted, committed together with a group's offsets. Kafka 0.11 and later. */
public final class Transact implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        int each = arguments.number("each", 10);
        Properties p = arguments.client("");
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("transactional.id", arguments.get("id"));
        p.put("compression.type", arguments.get("codec", "none"));
        List<Object> committed = new ArrayList<>();
        List<Object> aborted = new ArrayList<>();
        List<Object> read = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p);
             KafkaConsumer<byte[], byte[]> consumer = Polling.consumer(arguments, "-reader")) {
            producer.initTransactions();
            producer.beginTransaction();
            committed.addAll(Produce.send(producer, arguments, 0, each));
            producer.commitTransaction();
            producer.beginTransaction();
            aborted.addAll(Produce.send(producer, arguments, each, each));
            producer.abortTransaction();

            consumer.subscribe(Collections.singletonList(arguments.get("source")));
            Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<>();
            long end = System.currentTimeMillis() + 40_000;
            while (offsets.isEmpty() && System.currentTimeMillis() < end) {
                for (ConsumerRecord<byte[], byte[]> record : Polling.poll(consumer, 500)) {
                    read.add(Known.row(record));
                    offsets.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1, "in a transaction"));
                }
            }
            producer.beginTransaction();
            committed.addAll(Produce.send(producer, arguments, 2 * each, each));
            sendOffsets(producer, consumer, offsets, arguments.get("group"));
            producer.commitTransaction();
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("produced", committed);
        result.put("aborted", aborted);
        result.put("consumed", read);
        return result;
    }

    /** With the member's metadata from 2.5 on; with the group's name alone before. */
    private static void sendOffsets(KafkaProducer<?, ?> producer, KafkaConsumer<?, ?> consumer,
            Map<TopicPartition, OffsetAndMetadata> offsets, String group) throws Exception {
        try {
            Method metadata = KafkaConsumer.class.getMethod("groupMetadata");
            KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, metadata.getReturnType())
                .invoke(producer, offsets, metadata.invoke(consumer));
        } catch (NoSuchMethodException older) {
            KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, String.class)
                .invoke(producer, offsets, group);
        } catch (InvocationTargetException failure) {
            throw failure.getCause() instanceof Exception ? (Exception) failure.getCause() : failure;
        }
    }
}
