import io.kroxylicious.proxy.KafkaProxy;
import io.kroxylicious.proxy.config.ConfigParser;
import io.kroxylicious.proxy.internal.config.Features;
import java.nio.file.Files;
import java.nio.file.Path;

/** Kroxylicious by its library: its command line is not on Maven Central. */
public class RunKroxylicious {
    public static void main(String[] arguments) throws Exception {
        ConfigParser parser = new ConfigParser();
        String text = Files.readString(Path.of(arguments[0]));
        try (KafkaProxy proxy =
                new KafkaProxy(parser, parser.parseConfiguration(text), Features.defaultFeatures())) {
            proxy.startup().block();
        }
    }
}
