import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.common.errors.DelegationTokenNotFoundException;
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
            // Whichever broker is asked learns of it from the metadata log.
            patiently(() -> admin.renewDelegationToken(token.hmac(), new RenewDelegationTokenOptions())
                .expiryTimestamp().get());
            calls.put("described", admin.describeDelegationToken().delegationTokens().get().size());
            patiently(() -> admin.expireDelegationToken(token.hmac(),
                new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp().get());
        }
        return Collections.singletonMap("calls", calls);
    }

    private static void patiently(Callable<Long> call) throws Exception {
        long end = System.currentTimeMillis() + 20_000;
        while (true) {
            try {
                call.call();
                return;
            } catch (ExecutionException failure) {
                boolean early = failure.getCause() instanceof DelegationTokenNotFoundException;
                if (!early || System.currentTimeMillis() > end) {
                    throw failure;
                }
                Thread.sleep(100);
            }
        }
    }
}
