package shop;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.TestKitNodes;
import org.testcontainers.lifecycle.Startable;

/**
 * What Testcontainers starts as it does a container, without Docker: brokers in this JVM. Their address is known
 * when they run, and in the form that {@code KafkaContainer} has in older releases.
 */
final class StartableKafka implements Startable {
    private KafkaClusterTestKit brokers;

    String getBootstrapServers() {
        if (brokers == null) {
            throw new IllegalStateException("the brokers have not been started");
        }
        return Arrays.stream(brokers.bootstrapServers().split(",")).map(each -> "PLAINTEXT://" + each)
                .collect(Collectors.joining(","));
    }

    @Override
    public void start() {
        try {
            TestKitNodes nodes = new TestKitNodes.Builder().setCombined(true).setNumBrokerNodes(2)
                    .setNumControllerNodes(1).build();
            KafkaClusterTestKit started = new KafkaClusterTestKit.Builder(nodes).build();
            started.format();
            started.startup();
            started.waitForReadyBrokers();
            brokers = started;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void stop() {
        try {
            brokers.close();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
        brokers = null;
    }
}
