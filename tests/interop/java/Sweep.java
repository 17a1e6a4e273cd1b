import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/** Every call of the newest Admin client; answers with "ok" or the error of each. */
public final class Sweep implements Driver.Step {
    private final Map<String, Object> calls = new LinkedHashMap<>();
    private final List<Object> produced = new java.util.ArrayList<>();

    interface Call {
        KafkaFuture<?> make() throws Exception;
    }

    private Object call(String name, Call call) {
        return call(name, 8, call);
    }

    private Object call(String name, int seconds, Call call) {
        try {
            Object result = call.make().get(seconds, TimeUnit.SECONDS);
            calls.put(name, "ok");
            return result;
        } catch (ExecutionException failure) {
            calls.put(name, failure.getCause().getClass().getSimpleName());
        } catch (Throwable failure) {
            calls.put(name, failure.toString());
        }
        return null;
    }

    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        String topic = arguments.get("topic");
        String group = topic + ".group";
        TopicPartition first = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(arguments.client(""))) {
            call("createTopics", () -> admin.createTopics(Arrays.asList(
                new NewTopic(topic, 2, (short) 1).configs(Collections.singletonMap("retention.ms", "-1")),
                new NewTopic(topic + ".placed", Collections.singletonMap(0, Collections.singletonList(1)))))
                .all());
            try (KafkaProducer<byte[], byte[]> producer = Produce.producer(arguments)) {
                produced.addAll(Produce.send(producer, arguments, 0, 30));
            }
            topics(admin, topic, first);
            configs(admin, topic);
            acls(admin, topic);
            quotasAndUsers(admin);
            offsetsAndGroups(admin, arguments, topic, group, first);
            transactions(admin, arguments, topic, first);
            cluster(admin);
            call("deleteTopics", () -> admin.deleteTopics(Arrays.asList(topic + ".placed")).all());
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("calls", calls);
        result.put("produced", produced);
        return result;
    }

    private void topics(Admin admin, String topic, TopicPartition first) throws Exception {
        call("describeTopics", () -> admin.describeTopics(Collections.singleton(topic)).allTopicNames());
        call("createPartitions", () -> admin.createPartitions(
            Collections.singletonMap(topic + ".placed", NewPartitions.increaseTo(3))).all());
        call("deleteRecords", () -> admin.deleteRecords(
            Collections.singletonMap(first, RecordsToDelete.beforeOffset(2))).all());
        call("electLeaders", () -> admin.electLeaders(
            ElectionType.PREFERRED, Collections.singleton(first)).all());
        call("alterPartitionReassignments", () -> admin.alterPartitionReassignments(
            Collections.singletonMap(first, Optional.of(
                new NewPartitionReassignment(Collections.singletonList(1))))).all());
        call("cancelReassignment", () -> admin.alterPartitionReassignments(
            Collections.singletonMap(first, Optional.empty())).all());
        call("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments());
        call("describeLogDirs", () -> admin.describeLogDirs(Collections.singleton(1)).allDescriptions());
        TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, 1);
        call("describeReplicaLogDirs", () -> admin.describeReplicaLogDirs(
            Collections.singleton(replica)).all());
        List<String> dirs = new java.util.ArrayList<>(admin.describeLogDirs(Collections.singleton(1))
            .allDescriptions().get().get(1).keySet());
        for (String dir : dirs) {
            call("alterReplicaLogDirs " + dirs.indexOf(dir), () -> admin.alterReplicaLogDirs(
                Collections.singletonMap(replica, dir)).all());
        }
        call("describeProducers", () -> admin.describeProducers(Collections.singleton(first)).all());
        call("listOffsets", () -> admin.listOffsets(
            Collections.singletonMap(first, OffsetSpec.maxTimestamp())).all());
        call("listOffsets by time", () -> admin.listOffsets(
            Collections.singletonMap(first, OffsetSpec.forTimestamp(Known.EPOCH))).all());
    }

    private void configs(Admin admin, String topic) {
        ConfigResource named = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        ConfigResource logger = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "1");
        ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "all");
        call("describeConfigs", () -> admin.describeConfigs(Arrays.asList(named, broker)).all());
        call("describeConfigs logger", () -> admin.describeConfigs(Collections.singleton(logger)).all());
        call("incrementalAlterConfigs", () -> admin.incrementalAlterConfigs(Collections.singletonMap(named,
            set("max.message.bytes", "900000"))).all());
        Map<ConfigResource, Collection<AlterConfigOp>> push = new LinkedHashMap<>();
        push.put(metrics, Arrays.asList(
            new AlterConfigOp(new ConfigEntry("interval.ms", "1000"), AlterConfigOp.OpType.SET),
            new AlterConfigOp(new ConfigEntry("metrics", "org.apache.kafka."), AlterConfigOp.OpType.SET)));
        call("clientMetrics", () -> admin.incrementalAlterConfigs(push).all());
        call("listConfigResources", () -> admin.listConfigResources().all());
        call("listClientMetrics", () -> admin.listConfigResources(
            Collections.singleton(ConfigResource.Type.CLIENT_METRICS), new org.apache.kafka.clients.admin
                .ListConfigResourcesOptions()).all());
    }

    private static Collection<AlterConfigOp> set(String name, String value) {
        return Collections.singletonList(
            new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET));
    }

    private void acls(Admin admin, String topic) {
        AclBinding binding = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, topic, PatternType.PREFIXED),
            new AccessControlEntry("User:bob", "*", AclOperation.READ, AclPermissionType.ALLOW));
        call("createAcls", () -> admin.createAcls(Collections.singleton(binding)).all());
        call("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY).values());
        call("deleteAcls", () -> admin.deleteAcls(Collections.singleton(binding.toFilter())).all());
    }

    private void quotasAndUsers(Admin admin) {
        ClientQuotaEntity entity = new ClientQuotaEntity(Collections.singletonMap("client-id", "nobody"));
        call("alterClientQuotas", () -> admin.alterClientQuotas(Collections.singleton(
            new ClientQuotaAlteration(entity, Collections.singleton(
                new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all());
        call("describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.contains(
            Collections.singleton(ClientQuotaFilterComponent.ofEntityType("client-id")))).entities());
        call("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all());
        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        call("alterUserScramCredentials", () -> admin.alterUserScramCredentials(Collections.singletonList(
            new UserScramCredentialUpsertion("carol", info, "carol-secret"))).all());
        call("deleteUserScramCredentials", () -> admin.alterUserScramCredentials(Collections.singletonList(
            new UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256))).all());
    }

    private void offsetsAndGroups(Admin admin, Driver.Arguments arguments, String topic, String group,
            TopicPartition first) {
        call("alterConsumerGroupOffsets", () -> admin.alterConsumerGroupOffsets(group,
            Collections.singletonMap(first, new OffsetAndMetadata(3, "by hand"))).all());
        call("listConsumerGroupOffsets", () -> admin.listConsumerGroupOffsets(
            Collections.singletonMap(group, new ListConsumerGroupOffsetsSpec())).all());
        call("listGroups", () -> admin.listGroups().all());
        call("describeConsumerGroups", () -> admin.describeConsumerGroups(
            Collections.singleton(group)).all());
        call("describeClassicGroups", () -> admin.describeClassicGroups(
            Collections.singleton(group)).all());
        call("deleteConsumerGroupOffsets", () -> admin.deleteConsumerGroupOffsets(group,
            Collections.singleton(first)).all());
        call("deleteConsumerGroups", () -> admin.deleteConsumerGroups(
            Collections.singleton(group)).all());

        ConfigResource shared = new ConfigResource(ConfigResource.Type.GROUP, topic + ".share");
        call("groupConfig", () -> admin.incrementalAlterConfigs(Collections.singletonMap(shared,
            set("share.auto.offset.reset", "earliest"))).all());
        call("describeShareGroups", () -> admin.describeShareGroups(
            Collections.singleton(topic + ".none")).all());
        call("alterShareGroupOffsets", () -> admin.alterShareGroupOffsets(topic + ".byhand",
            Collections.singletonMap(first, 5L)).all());
        call("listShareGroupOffsets", () -> admin.listShareGroupOffsets(Collections.singletonMap(
            topic + ".byhand", new ListShareGroupOffsetsSpec())).all());
        call("deleteShareGroupOffsets", () -> admin.deleteShareGroupOffsets(topic + ".byhand",
            Collections.singleton(topic)).all());
        call("deleteShareGroups", () -> admin.deleteShareGroups(
            Collections.singleton(topic + ".byhand")).all());
        call("describeStreamsGroups", () -> admin.describeStreamsGroups(
            Collections.singleton(topic + ".none")).all());
        call("listStreamsGroupOffsets", () -> admin.listStreamsGroupOffsets(Collections.singletonMap(
            group, new ListStreamsGroupOffsetsSpec())).all());
    }

    private void transactions(Admin admin, Driver.Arguments arguments, String topic, TopicPartition first)
            throws Exception {
        java.util.Properties p = arguments.client("-tx");
        p.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        p.put("transactional.id", topic + ".open");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
            producer.initTransactions();
            producer.beginTransaction();
            produced.addAll(Produce.send(producer, arguments, 30, 4));
            call("listTransactions", () -> admin.listTransactions().all());
            call("describeTransactions", () -> admin.describeTransactions(
                Collections.singleton(topic + ".open")).all());
            for (ProducerState state : admin.describeProducers(Collections.singleton(first)).all().get()
                    .get(first).activeProducers()) {
                if (state.currentTransactionStartOffset().isPresent()) {
                    call("abortTransaction", () -> admin.abortTransaction(new AbortTransactionSpec(first,
                        state.producerId(), (short) state.producerEpoch(),
                        state.coordinatorEpoch().orElse(0))).all());
                }
            }
            call("forceTerminateTransaction", () -> admin.forceTerminateTransaction(topic + ".open")
                .result());
            call("fenceProducers", () -> admin.fenceProducers(
                Collections.singleton(topic + ".open")).all());
        }
    }

    private void cluster(Admin admin) {
        call("describeCluster", () -> admin.describeCluster().nodes());
        call("describeFeatures", () -> admin.describeFeatures().featureMetadata());
        call("updateFeatures", () -> admin.updateFeatures(Collections.singletonMap("transaction.version",
            new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)),
            new UpdateFeaturesOptions().validateOnly(true)).all());
        call("describeMetadataQuorum", () -> admin.describeMetadataQuorum().quorumInfo());
        call("unregisterBroker", () -> admin.unregisterBroker(77).all());
        call("unregisterController", () -> admin.unregisterController(77).all());
        Uuid nobody = Uuid.fromString("AAAAAAAAAAAAAAAAAAAABA");
        // The voter is not there; the broker tries for long.
        call("addRaftVoter", 2, () -> admin.addRaftVoter(77, nobody, Collections.singleton(
            new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1))).all());
        call("removeRaftVoter", () -> admin.removeRaftVoter(77, nobody).all());
    }
}
