import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

/** The everyday admin calls: make topics, describe them, list and describe groups and offsets. */
public final class Administer implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        Map<String, Object> result = new LinkedHashMap<>();
        try (Admin admin = Admin.create(arguments.client(""))) {
            for (String topic : arguments.get("topics", "").split(",")) {
                if (!topic.isEmpty()) {
                    short copies = (short) arguments.number("copies", 1);
                    admin.createTopics(Collections.singleton(new NewTopic(topic, 2, copies)
                        .configs(Collections.singletonMap("retention.ms", "-1")))).all().get();
                }
            }
            result.put("topics", admin.listTopics().names().get());
            String topic = arguments.get("describe", "");
            if (!topic.isEmpty()) {
                result.put("described", admin.describeTopics(Collections.singleton(topic))
                    .allTopicNames().get().keySet());
                Map<TopicPartition, OffsetSpec> asked = new LinkedHashMap<>();
                asked.put(new TopicPartition(topic, 0), OffsetSpec.latest());
                asked.put(new TopicPartition(topic, 1), OffsetSpec.earliest());
                result.put("offsets", Arrays.asList(admin.listOffsets(asked).all().get().values().stream()
                    .map(o -> o.offset()).toArray()));
            }
            String group = arguments.get("group", "");
            if (!group.isEmpty()) {
                result.put("groups", Arrays.asList(admin.listConsumerGroups().all().get().stream()
                    .map(g -> g.groupId()).toArray()));
                result.put("state", admin.describeConsumerGroups(Collections.singleton(group))
                    .all().get().get(group).toString());
                result.put("committed", admin.listConsumerGroupOffsets(group)
                    .partitionsToOffsetAndMetadata().get().size());
            }
        }
        return result;
    }
}
