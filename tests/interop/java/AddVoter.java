import java.util.Collections;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.RetriableException;

/**
 * Makes a node that joined later a voter of the quorum, under another name than it gives itself:
 * so it corrects the entry with UpdateRaftVoter.
 */
public final class AddVoter implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        int node = arguments.number("node", 0);
        Uuid directory = Uuid.fromString(arguments.get("directory"));
        try (Admin admin = Admin.create(arguments.client(""))) {
            for (int left = 15; ; left--) {
                try {
                    admin.addRaftVoter(node, directory, Collections.singleton(new RaftVoterEndpoint(
                        "CONTROLLER", "localhost", arguments.number("port", 0)))).all().get();
                    break;
                } catch (ExecutionException failure) {
                    // After an election brokers ask the old leader for a while.
                    if (left == 0 || !(failure.getCause() instanceof RetriableException)) {
                        throw failure;
                    }
                    Thread.sleep(1000);
                }
            }
            admin.describeMetadataQuorum().quorumInfo().get();
        }
        return Collections.singletonMap("voter", node);
    }
}
