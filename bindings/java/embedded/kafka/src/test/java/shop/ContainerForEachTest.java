package shop;

import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.kafkascope.junit.KafkascopeExtension;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.testcontainers.junit.jupiter.Container;
import org.testcontainers.junit.jupiter.Testcontainers;

/** Fields that are not static: brokers and a proxy for each test. */
@Testcontainers
class ContainerForEachTest {
    private static String last = "";

    @Container
    private final StartableKafka container = new StartableKafka();

    @RegisterExtension
    KafkascopeExtension kafka = KafkascopeExtension.proxy(container::getBootstrapServers);

    @RepeatedTest(2)
    void startsWithNothing() throws Exception {
        Shop.open(kafka.bootstrap(), 1);
        Shop.order(kafka.bootstrap(), 0);
        kafka.assertThat("api == Produce").hasCount(1);
        assertNotEquals(last, kafka.bootstrap());
        last = kafka.bootstrap();
    }
}
