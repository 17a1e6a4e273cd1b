import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Members of groups that live from step to step: `do` is join, await, commit, stand or leave. */
public final class Member implements Driver.Step {
    private static final Map<String, Living> MEMBERS = new HashMap<>();

    /** What polls in the background, and does what it is told between two polls. */
    private static final class Living extends Thread {
        final ConcurrentLinkedQueue<Runnable> tasks = new ConcurrentLinkedQueue<>();
        final List<Object> rows = Collections.synchronizedList(new ArrayList<>());
        final KafkaConsumer<byte[], byte[]> consumer;
        final KafkaShareConsumer<byte[], byte[]> sharing;
        volatile int holds = -1;
        volatile boolean leave;
        volatile Throwable failure;

        Living(Driver.Arguments arguments) {
            List<String> topics = Arrays.asList(arguments.get("topic").split(","));
            Properties p = arguments.client("");
            p.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
            p.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
            p.put("group.id", arguments.get("group"));
            p.put("enable.metrics.push", "false");
            if (arguments.get("kind", "").equals("share")) {
                consumer = null;
                sharing = new KafkaShareConsumer<>(p);
                sharing.subscribe(topics);
            } else {
                p.put("auto.offset.reset", "earliest");
                p.put("enable.auto.commit", "false");
                sharing = null;
                consumer = new KafkaConsumer<>(p);
                consumer.subscribe(topics);
            }
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            try {
                while (!leave) {
                    Runnable task = tasks.poll();
                    if (task != null) {
                        task.run();
                    }
                    Duration wait = Duration.ofMillis(200);
                    Iterable<ConsumerRecord<byte[], byte[]>> records =
                        sharing != null ? sharing.poll(wait) : consumer.poll(wait);
                    for (ConsumerRecord<byte[], byte[]> record : records) {
                        rows.add(Json.list(record.topic(), record.partition(), record.offset()));
                    }
                    holds = consumer != null ? consumer.assignment().size() : 0;
                }
            } catch (Throwable problem) {
                failure = problem;
            } finally {
                if (sharing != null) {
                    sharing.close();
                } else {
                    consumer.close();
                }
            }
        }

        <T> T tell(Callable<T> what) throws Exception {
            CompletableFuture<T> done = new CompletableFuture<>();
            tasks.add(() -> {
                try {
                    done.complete(what.call());
                } catch (Throwable problem) {
                    done.completeExceptionally(problem);
                }
            });
            return done.get(60, TimeUnit.SECONDS);
        }

        void await(int partitions, int records) throws InterruptedException {
            long end = System.currentTimeMillis() + 60_000;
            while ((partitions >= 0 && holds != partitions) || rows.size() < records) {
                if (failure != null || System.currentTimeMillis() > end) {
                    throw new IllegalStateException(
                        "holds " + holds + ", read " + rows.size(), failure);
                }
                Thread.sleep(20);
            }
        }

        /** Commits the position less `back`; what was committed. */
        Map<String, Object> commit(int back) {
            Map<String, Object> told = new TreeMap<>();
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (TopicPartition place : consumer.assignment()) {
                long offset = Math.max(0, consumer.position(place) - back);
                offsets.put(place, new OffsetAndMetadata(offset));
                told.put(place.toString(), offset);
            }
            consumer.commitSync(offsets);
            return told;
        }
    }

    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        String name = arguments.get("name");
        Map<String, Object> result = new LinkedHashMap<>();
        if (arguments.get("do").equals("join")) {
            MEMBERS.put(name, new Living(arguments));
        }
        Living member = MEMBERS.get(name);
        switch (arguments.get("do")) {
            case "commit":
                int back = arguments.number("back", 0);
                result.put("committed", member.tell(() -> member.commit(back)));
                break;
            case "stand": // between two polls
                int ms = arguments.number("ms", 0);
                member.tell(() -> {
                    Thread.sleep(ms);
                    return null;
                });
                break;
            case "leave":
                member.leave = true;
                member.join(30_000);
                MEMBERS.remove(name);
                break;
            default:
                member.await(arguments.number("holds", -1), arguments.number("records", 0));
        }
        result.put("rows", new ArrayList<>(member.rows));
        return result;
    }
}
