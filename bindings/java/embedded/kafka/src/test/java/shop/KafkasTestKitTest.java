package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kafkascope.junit.KafkascopeExtension;
import java.util.Map;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfigProperty;
import org.apache.kafka.common.test.api.ClusterTest;
import org.apache.kafka.common.test.api.ClusterTestDefaults;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.common.test.junit.ClusterTestExtensions;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Kafka's own extension, whose brokers start for each test, and which counts the threads that a test leaves. */
@ExtendWith(ClusterTestExtensions.class)
@ClusterTestDefaults(
        types = Type.CO_KRAFT,
        brokers = 2,
        serverProperties = @ClusterConfigProperty(key = "auto.create.topics.enable", value = "false"))
class KafkasTestKitTest {
    private final ClusterInstance cluster;

    @RegisterExtension
    KafkascopeExtension kafka;

    KafkasTestKitTest(ClusterInstance cluster) {
        this.cluster = cluster;
        this.kafka = KafkascopeExtension.proxy(cluster::bootstrapServers);
    }

    @ClusterTest
    void eachBrokerHasAListenerOfTheProxy() throws Exception {
        cluster.createTopic("orders", 2, (short) 1);
        Shop.order(kafka.bootstrap(), 0);
        Shop.order(kafka.bootstrap(), 1);
        kafka.assertThat("api == Produce and client == shop").hasCount(2);
        assertEquals(2, ((Map<?, ?>) kafka.proxy().ask("status", Map.of()).get("nodes")).size());
    }

    @ClusterTest
    void aLeaderThatMovesCostsNoOrder() throws Exception {
        kafka.fault("api == Produce -> error NOT_LEADER_OR_FOLLOWER once");
        cluster.createTopic("orders", 1, (short) 1);
        Shop.order(kafka.bootstrap(), 0);
        kafka.assertThat("api == Produce").hasCount(2);
    }
}
