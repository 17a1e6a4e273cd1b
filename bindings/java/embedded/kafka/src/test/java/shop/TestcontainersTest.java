package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kafkascope.junit.Exchange;
import io.kafkascope.junit.KafkascopeExtension;
import io.kafkascope.junit.KafkascopeProxy;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.testcontainers.junit.jupiter.Container;
import org.testcontainers.junit.jupiter.Testcontainers;

/** Testcontainers' extension starts and ends what the fields hold; ours comes between it and the tests. */
@Testcontainers
class TestcontainersTest {
    @Container
    static final StartableKafka CONTAINER = new StartableKafka();

    @RegisterExtension
    static KafkascopeExtension kafka = KafkascopeExtension.proxy(CONTAINER::getBootstrapServers);

    @BeforeAll
    static void open() throws Exception {
        Shop.open(kafka.bootstrap(), 2);
    }

    @Test
    void allTrafficTakesTheProxy(KafkascopeProxy proxy) throws Exception {
        Shop.order(kafka.bootstrap(), 0);
        Shop.order(kafka.bootstrap(), 1);
        List<Exchange> sent = kafka.assertThat("api == Produce and client == shop").hasCount(2);
        // The address of each broker was told as a listener of the proxy.
        assertEquals(2, sent.stream().map(each -> each.members().get("broker_address")).distinct().count());
        assertEquals(2, ((Map<?, ?>) proxy.ask("status", Map.of()).get("nodes")).size());
        kafka.assertThat("api == CreateTopics").wasNotSent(); // by a test
    }

    @Test
    void aLeaderThatMovesCostsNoOrder(KafkascopeProxy proxy) throws Exception {
        kafka.fault("api == Produce -> error NOT_LEADER_OR_FOLLOWER once");
        Shop.order(proxy.bootstrap(), 0);
        kafka.assertThat("api == Produce").hasCount(2);
    }
}
