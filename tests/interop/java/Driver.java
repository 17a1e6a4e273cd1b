import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;

/** Reads steps from stdin, `Produce topic=a count=60`, runs the class of that name, answers in JSON. */
public final class Driver {
    private Driver() { }

    /** One kind of step; whatever it throws is the answer {"failed": ...}. */
    interface Step {
        Object run(Arguments arguments) throws Exception;
    }

    /** The name=value pairs of a step. */
    static final class Arguments {
        private final Map<String, String> values = new LinkedHashMap<>();

        Arguments(String[] words) {
            for (int i = 1; i < words.length; i++) {
                String[] pair = words[i].split("=", 2);
                values.put(pair[0], pair[1]);
            }
        }

        String get(String name, String otherwise) {
            return values.getOrDefault(name, otherwise);
        }

        String get(String name) {
            if (!values.containsKey(name)) {
                throw new IllegalArgumentException("no " + name);
            }
            return values.get(name);
        }

        int number(String name, int otherwise) {
            return Integer.parseInt(get(name, Integer.toString(otherwise)));
        }

        /** Settings every client has: where, who, and what the step says as `conf.NAME=VALUE`. */
        Properties client(String suffix) {
            Properties p = new Properties();
            p.put("bootstrap.servers", get("bootstrap"));
            p.put("client.id", get("client", "java") + suffix);
            if (values.containsKey("user")) {
                String mechanism = get("mechanism", "PLAIN");
                String module = mechanism.equals("PLAIN") ? "plain.Plain" : "scram.Scram";
                p.put("security.protocol", "SASL_PLAINTEXT");
                p.put("sasl.mechanism", mechanism);
                p.put("sasl.jaas.config", "org.apache.kafka.common.security." + module
                    + "LoginModule required username=\"" + get("user")
                    + "\" password=\"" + get("password") + "\";");
            }
            if (values.containsKey("ca")) {
                p.put("security.protocol", values.containsKey("user") ? "SASL_SSL" : "SSL");
                Stores.use(p, get("ca"), values.get("cert"));
            }
            if (values.containsKey("timeout")) {
                p.put("request.timeout.ms", get("timeout"));
            }
            values.forEach((name, value) -> {
                if (name.startsWith("conf.")) {
                    p.put(name.substring(5), value);
                }
            });
            return p;
        }
    }

    public static void main(String[] unused) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.trim().split(" +");
            Object answer;
            try {
                Step step = (Step) Class.forName(words[0]).getDeclaredConstructor().newInstance();
                answer = step.run(new Arguments(words));
            } catch (Throwable failure) {
                failure.printStackTrace();
                answer = java.util.Collections.singletonMap("failed", failure.toString());
            }
            out.println(Json.write(answer));
            out.flush();
        }
    }
}
