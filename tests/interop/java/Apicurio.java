import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Apicurio's serializers, of 2.x or 3.x as the class path has it: a line in, a line out.
 *
 * {"format": "avro", "schema": "...", "value": "...", "topic", "key": false, "config": {...}}
 * {"format": "protobuf", "files": base64 of a FileDescriptorSet, "type": of its last file, "value": "...", ...}
 * {"format": "json", "value": "...", ...}     its schema is in the registry
 *
 * "value" is the JSON form of Avro, of Protobuf, the value itself; null is no value.
 * Answers: {"ok": true, "data": hex or null, "headers": [[name, hex], ...]} or {"ok": false, "error"}.
 */
public final class Apicurio {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Map<String, String> CLASSES = Map.of(
        "avro", "io.apicurio.registry.serde.avro.AvroKafkaSerializer",
        "protobuf", "io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer",
        "json", "io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer");
    private static final Map<String, Serializer<Object>> SERIALIZERS = new HashMap<>();
    private static final Map<String, Map<String, FileDescriptor>> FILES = new HashMap<>();

    private static ObjectNode answer(JsonNode question) throws Exception {
        RecordHeaders headers = new RecordHeaders();
        Object value = question.get("value").isNull() ? null : value(question);
        byte[] data = serializer(question).serialize(question.get("topic").asText(), headers, value);
        ObjectNode answer = MAPPER.createObjectNode().put("ok", true).put("data", data == null ? null : hex(data));
        ArrayNode all = answer.putArray("headers");
        for (Header each : headers) {
            all.addArray().add(each.key()).add(hex(each.value()));
        }
        return answer;
    }

    @SuppressWarnings("unchecked")
    private static Serializer<Object> serializer(JsonNode question) throws Exception {
        String format = question.get("format").asText();
        boolean key = question.get("key").asBoolean();
        String name = format + key + question.get("config");
        Serializer<Object> made = SERIALIZERS.get(name);
        if (made == null) {
            made = (Serializer<Object>) Class.forName(CLASSES.get(format)).getDeclaredConstructor().newInstance();
            made.configure(MAPPER.convertValue(question.get("config"), Map.class), key);
            SERIALIZERS.put(name, made);
        }
        return made;
    }

    private static Object value(JsonNode question) throws Exception {
        String text = question.get("value").asText();
        switch (question.get("format").asText()) {
            case "avro":
                Schema schema = new Schema.Parser().parse(question.get("schema").asText());
                return new GenericDatumReader<>(schema).read(null, DecoderFactory.get().jsonDecoder(schema, text));
            case "protobuf":
                DynamicMessage.Builder message = DynamicMessage.newBuilder(
                    type(question.get("files").asText(), question.get("type").asText()));
                JsonFormat.parser().merge(text, message);
                return message.build();
            default:
                return MAPPER.readTree(text);
        }
    }

    private static Descriptor type(String files, String type) throws Exception {
        Map<String, FileDescriptor> made = FILES.get(files);
        if (made == null) {
            made = new HashMap<>();
            FileDescriptorSet set = FileDescriptorSet.parseFrom(Base64.getDecoder().decode(files));
            for (FileDescriptorProto each : set.getFileList()) {
                FileDescriptor[] needed =
                    each.getDependencyList().stream().map(made::get).toArray(FileDescriptor[]::new);
                FileDescriptor file = FileDescriptor.buildFrom(each, needed);
                made.put(each.getName(), file);
                made.put("", file);
            }
            FILES.put(files, made);
        }
        return made.get("").findMessageTypeByName(type);
    }

    private static String hex(byte[] data) {
        StringBuilder text = new StringBuilder();
        for (byte each : data) {
            text.append(String.format("%02x", each));
        }
        return text.toString();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer;
            try {
                answer = answer(MAPPER.readTree(line));
            } catch (Exception | StackOverflowError error) {
                Throwable cause = error;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                answer = MAPPER.createObjectNode().put("ok", false).put("error", error + " <- " + cause);
            }
            out.println(MAPPER.writeValueAsString(answer));
        }
        System.exit(0);
    }
}
