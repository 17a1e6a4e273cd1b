import java.util.Collections;
import org.apache.kafka.clients.admin.Admin;

/** Which controller leads the quorum. */
public final class Leader implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        try (Admin admin = Admin.create(arguments.client(""))) {
            return Collections.singletonMap("leader",
                admin.describeMetadataQuorum().quorumInfo().get().leaderId());
        }
    }
}
