import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

/** The life of a delegation token; only on a SASL connection. */
public final class Tokens implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        Map<String, Object> calls = new LinkedHashMap<>();
        try (Admin admin = Admin.create(arguments.client(""))) {
            DelegationToken token = admin.createDelegationToken(new CreateDelegationTokenOptions()
                .renewers(Collections.singletonList(new KafkaPrincipal("User", "bob")))).delegationToken().get();
            Thread.sleep(500); // the broker learns of it from the metadata log
            calls.put("described", admin.describeDelegationToken().delegationTokens().get().size());
            admin.renewDelegationToken(token.hmac(), new RenewDelegationTokenOptions()).expiryTimestamp().get();
            admin.expireDelegationToken(token.hmac(),
                new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp().get();
        }
        return Collections.singletonMap("calls", calls);
    }
}
