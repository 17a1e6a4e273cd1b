import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Locale;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Orders as JSON: `count` times `burst` records, `every` ms; most are of one customer, so one partition is hot. */
public final class Sell implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        Properties p = arguments.client("");
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        int failed = 0;
        int number = 4700;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
            for (int i = 0; i < arguments.number("count", 1); i++) {
                for (int j = 0; j < arguments.number("burst", 1); j++) {
                    number++;
                    String customer = number % 4 == 0 ? "customer-" + number % 50 : "customer-7";
                    String value = String.format(Locale.ROOT,
                        "{\"order\":%d,\"customer\":\"%s\",\"item\":\"lamp-%d\",\"amount\":%d.90,\"currency\":\"EUR\"}",
                        number, customer, number % 9, 10 + number % 80);
                    producer.send(new ProducerRecord<>(arguments.get("topic"),
                        customer.getBytes(StandardCharsets.UTF_8), value.getBytes(StandardCharsets.UTF_8)));
                }
                try {
                    producer.flush();
                } catch (RuntimeException failure) {
                    failed++;
                }
                Thread.sleep(arguments.number("every", 500));
            }
        }
        return Collections.singletonMap("failed_flushes", failed);
    }
}
