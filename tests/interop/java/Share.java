import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;

/** A share group of one member that accepts all but one record, which it releases first. */
public final class Share implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        String group = arguments.get("group");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        Map<String, Object> result = new LinkedHashMap<>();
        List<Object> rows = new ArrayList<>();
        Properties p = arguments.client("");
        p.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        p.put("group.id", group);
        p.put("share.acknowledgement.mode", "explicit");
        boolean managed = arguments.get("admin", "true").equals("true");
        try (Admin admin = Admin.create(arguments.client("-admin"))) {
            if (managed) admin.incrementalAlterConfigs(Collections.singletonMap(resource, Collections.singletonList(
                new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"),
                    AlterConfigOp.OpType.SET)))).all().get();
            try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(p)) {
                consumer.subscribe(Arrays.asList(arguments.get("topic")));
                long end = System.currentTimeMillis() + 40_000;
                boolean released = false;
                while (rows.size() < arguments.number("count", 60) && System.currentTimeMillis() < end) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                        if (released) {
                            rows.add(Known.row(record));
                            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                        } else { // it comes again
                            consumer.acknowledge(record, AcknowledgeType.RELEASE);
                            released = true;
                        }
                    }
                    consumer.commitSync();
                }
                result.put("described", admin.describeShareGroups(Collections.singleton(group))
                    .all().get().size());
            }
            if (managed) {
                remove(admin, group, arguments.get("topic"), result);
            }
        }
        result.put("consumed", rows);
        return result;
    }

    private static void remove(Admin admin, String group, String topic, Map<String, Object> result)
            throws Exception {
        result.put("offsets", admin.listShareGroupOffsets(Collections.singletonMap(group,
            new ListShareGroupOffsetsSpec())).all().get().size());
        admin.deleteShareGroupOffsets(group, Collections.singleton(topic)).all().get();
        admin.deleteShareGroups(Collections.singleton(group)).all().get();
    }
}
