import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** A group whose second member joins, shares the work and leaves; says what each one held when. */
public final class Rebalance implements Driver.Step {
    private static final class Member extends Thread {
        final KafkaConsumer<byte[], byte[]> consumer;
        final String topic;
        final List<Object> rows = new ArrayList<>();
        final List<Object> held = Collections.synchronizedList(new ArrayList<>());
        volatile int holds = -1;
        volatile boolean leave;
        volatile Throwable failure;

        Member(Driver.Arguments arguments, String suffix) {
            consumer = Polling.consumer(arguments, suffix);
            topic = arguments.get("topic");
            start();
        }

        @Override
        public void run() {
            try {
                consumer.subscribe(Collections.singletonList(topic), new ConsumerRebalanceListener() {
                    @Override
                    public void onPartitionsRevoked(Collection<TopicPartition> some) { }

                    @Override
                    public void onPartitionsAssigned(Collection<TopicPartition> some) {
                        holds = consumer.assignment().size();
                        held.add(holds);
                    }
                });
                while (!leave) {
                    for (ConsumerRecord<byte[], byte[]> record : Polling.poll(consumer, 200)) {
                        rows.add(Known.row(record));
                    }
                    holds = consumer.assignment().size();
                    if (holds > 0) {
                        consumer.commitAsync();
                    }
                }
            } catch (Throwable problem) {
                failure = problem;
            } finally {
                consumer.close();
            }
        }

        void await(int partitions) throws InterruptedException {
            long end = System.currentTimeMillis() + 40_000;
            while (holds != partitions) {
                if (failure != null || System.currentTimeMillis() > end) {
                    throw new IllegalStateException("holds " + holds + ", not " + partitions, failure);
                }
                Thread.sleep(50);
            }
        }

        void end() throws InterruptedException {
            leave = true;
            join(30_000);
        }
    }

    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        Map<String, Object> result = new LinkedHashMap<>();
        Member first = new Member(arguments, "-1");
        first.await(2);
        Member second = new Member(arguments, "-2");
        second.await(1);
        first.await(1);
        Thread.sleep(800); // heartbeats of a group at rest
        second.end();
        first.await(2);
        first.end();
        List<Object> rows = new ArrayList<>(first.rows);
        rows.addAll(second.rows);
        result.put("consumed", rows);
        result.put("held", Json.list(first.held, second.held));
        return result;
    }
}
