import java.util.Collections;
import org.apache.kafka.clients.admin.Admin;

/** Waits until all replicas of a topic are in sync. */
public final class Whole implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        String topic = arguments.get("topic");
        try (Admin admin = Admin.create(arguments.client(""))) {
            for (int left = 120; left > 0; left--) {
                if (admin.describeTopics(Collections.singleton(topic)).allTopicNames().get().get(topic)
                        .partitions().stream().allMatch(p -> p.isr().size() == p.replicas().size())) {
                    return Collections.singletonMap("whole", topic);
                }
                Thread.sleep(250);
            }
        }
        throw new IllegalStateException("replicas of " + topic + " stay out of sync");
    }
}
