package io.kafkascope.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Does the steps of a scenario; {@code bindings/scenarios/README.md} says what they mean. */
final class Run {
    private static final long PATIENCE_S = 30;

    private final KafkascopeProxy proxy;
    private final String topic;
    private final Map<String, CompletableFuture<Void>> begun = new HashMap<>();

    Run(KafkascopeProxy proxy, String topic) {
        this.proxy = proxy;
        this.topic = topic;
    }

    /** A topic of one partition that nobody else has. */
    static String topic(String bootstrap, String name) throws Exception {
        String topic = name + "-" + UUID.randomUUID().toString().substring(0, 8);
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get(PATIENCE_S, TimeUnit.SECONDS);
            for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);;) {
                try {
                    var told = admin.describeTopics(List.of(topic)).allTopicNames().get(PATIENCE_S, TimeUnit.SECONDS);
                    if (told.get(topic).partitions().get(0).leader() != null) {
                        return topic;
                    }
                } catch (ExecutionException error) {
                    if (System.nanoTime() > end) {
                        throw error;
                    }
                }
                Thread.sleep(50);
            }
        }
    }

    void doAll(List<Map<String, Object>> steps) throws Exception {
        for (Map<String, Object> step : steps) {
            one(step);
        }
    }

    private void one(Map<String, Object> step) throws Exception {
        switch ((String) step.get("do")) {
            case "produce" -> {
                if (step.get("begin") instanceof String name) {
                    begun.put(name, CompletableFuture.runAsync(() -> produce(step)));
                } else {
                    produce(step);
                }
            }
            case "finish" -> begun.get(step.get("which")).get(PATIENCE_S, TimeUnit.SECONDS);
            case "running" -> assertFalse(begun.get(step.get("which")).isDone());
            case "consume" -> consume(step);
            case "transaction" -> transaction(step);
            case "rule" -> proxy.fault((String) step.get("rule"));
            case "clear" -> proxy.clear();
            case "fired" -> assertEquals(step.get("count"), proxy.rules().get(0).get("fired"));
            case "hold" -> proxy.hold((String) step.get("filter"));
            case "held" -> assertEquals(step.get("count"), proxy.held((Integer) step.get("count")).size());
            case "release" -> proxy.release();
            case "sent" -> sent(step);
            case "records" -> {
                RecordsAssert records = proxy.assertThatRecords((String) step.get("filter"));
                Integer count = (Integer) step.get("count");
                asserts(step, count == null ? records::exist : () -> records.hasCount(count));
            }
            case "findings" -> {
                Finding.Severity level = Finding.Severity.valueOf(((String) step.get("level")).toUpperCase(Locale.ROOT));
                List<?> allowed = (List<?>) step.getOrDefault("allow", List.of());
                asserts(step, () -> proxy.assertNoFindings(level, allowed.toArray(String[]::new)));
            }
            case "kill" -> {
                long pid = ((Number) proxy.ask("status", Map.of()).get("pid")).longValue();
                ProcessHandle.of(pid).orElseThrow().destroyForcibly();
            }
            case "fail" -> fail("as the scenario says");
            case "die" -> Runtime.getRuntime().halt(137);
            default -> fail("there is no step " + step);
        }
    }

    private void produce(Map<String, Object> step) {
        long start = System.nanoTime();
        List<String> errors = new ArrayList<>();
        int delivered = 0;
        Map<String, Object> settings = new HashMap<>(Map.of("linger.ms", 50));
        settings.put("acks", String.valueOf(step.getOrDefault("acks", "all")));
        try (KafkaProducer<String, String> producer = producer(settings)) {
            List<Future<RecordMetadata>> reports = values(step).stream()
                    .map(value -> producer.send(new ProducerRecord<>(topic, value))).toList();
            for (Future<RecordMetadata> report : reports) {
                try {
                    report.get();
                    delivered++;
                } catch (ExecutionException error) {
                    errors.add(Errors.forException(error.getCause()).name());
                } catch (InterruptedException error) {
                    throw new AssertionError(error);
                }
            }
        }
        if (step.get("delivered") instanceof Integer wanted) {
            assertEquals(List.of(), errors);
            assertEquals(wanted, delivered);
        }
        if (step.get("error") instanceof String wanted) {
            assertEquals(wanted, errors.isEmpty() ? "nothing" : errors.get(0));
        }
        long least = step.get("at_least_ms") instanceof Integer wanted ? wanted : 0;
        assertTrue(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start) >= least);
    }

    private void consume(Map<String, Object> step) {
        String from = (String) step.getOrDefault("topic", topic);
        int count = (Integer) step.get("count");
        List<String> values = new ArrayList<>();
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", proxy.bootstrap()));
        settings.put("isolation.level", "read_committed");
        var strings = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, strings, strings)) {
            List<TopicPartition> partitions = consumer.partitionsFor(from).stream()
                    .map(each -> new TopicPartition(each.topic(), each.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
            while (values.size() < count && System.nanoTime() < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
            }
        }
        if (Boolean.TRUE.equals(step.get("any_order"))) {
            Collections.sort(values);
        }
        assertEquals(values(step), values);
    }

    private void transaction(Map<String, Object> step) {
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", UUID.randomUUID().toString()))) {
            producer.initTransactions();
            producer.beginTransaction();
            values(step).forEach(value -> producer.send(new ProducerRecord<>(topic, value)));
            producer.flush();
            if (Boolean.TRUE.equals(step.get("commit"))) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
    }

    private KafkaProducer<String, String> producer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", proxy.bootstrap());
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private void sent(Map<String, Object> step) {
        TrafficAssert traffic = proxy.assertThat((String) step.get("filter"));
        asserts(step, step.get("count") instanceof Integer count ? () -> traffic.hasCount(count) : traffic::wasSent);
    }

    private static void asserts(Map<String, Object> step, Runnable check) {
        if (!(step.get("fails") instanceof List<?> texts)) {
            check.run();
            return;
        }
        Throwable failure = assertThrows(Throwable.class, check::run);
        assertTrue(failure instanceof AssertionError || failure instanceof KafkascopeException, failure.toString());
        for (Object text : texts) {
            assertTrue(failure.getMessage().contains((String) text), failure.getMessage());
        }
    }

    @SuppressWarnings("unchecked")
    private static List<String> values(Map<String, Object> step) {
        return (List<String>) step.get("values");
    }
}
