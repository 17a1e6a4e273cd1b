import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.Encoder;
import org.apache.avro.io.EncoderFactory;

/**
 * Apache's Avro library: a line in, a line out.
 *
 * {"schema": "...", "hex": "...", "json": "..."}   reads both forms and writes each again from it
 * {"old": "...", "new": "..."}                     whether readers of the new schema read the old one
 *
 * Answers: {"ok": true, "hex": from JSON, "json": from hex, "left": bytes not read, "crc": fingerprint},
 * {"ok": true, "reads": ...} or {"ok": false, "error"}.
 */
public final class Avro {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private static ObjectNode answer(JsonNode question) throws Exception {
        ObjectNode answer = MAPPER.createObjectNode().put("ok", true);
        if (question.has("old")) {
            Schema old = new Schema.Parser().parse(question.get("old").asText());
            Schema reader = new Schema.Parser().parse(question.get("new").asText());
            SchemaCompatibility.SchemaCompatibilityType type =
                SchemaCompatibility.checkReaderWriterCompatibility(reader, old).getType();
            return answer.put("reads", type == SchemaCompatibility.SchemaCompatibilityType.COMPATIBLE);
        }
        Schema schema = new Schema.Parser().parse(question.get("schema").asText());
        answer.put("crc", Long.toUnsignedString(SchemaNormalization.parsingFingerprint64(schema)));
        answer.put("canonical", SchemaNormalization.toParsingForm(schema));
        byte[] data = hex(question.get("hex").asText());
        BinaryDecoder binary = DecoderFactory.get().binaryDecoder(data, null);
        Object value = new GenericDatumReader<>(schema).read(null, binary);
        answer.put("left", binary.inputStream().available());
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        write(schema, value, EncoderFactory.get().jsonEncoder(schema, out), out);
        answer.put("json", out.toString(StandardCharsets.UTF_8));
        value = new GenericDatumReader<>(schema)
            .read(null, DecoderFactory.get().jsonDecoder(schema, question.get("json").asText()));
        out.reset();
        write(schema, value, EncoderFactory.get().binaryEncoder(out, null), out);
        return answer.put("hex", hex(out.toByteArray()));
    }

    private static void write(Schema schema, Object value, Encoder encoder, ByteArrayOutputStream out)
            throws Exception {
        new GenericDatumWriter<>(schema).write(value, encoder);
        encoder.flush();
    }

    private static byte[] hex(String text) {
        byte[] data = new byte[text.length() / 2];
        for (int at = 0; at < data.length; at++) {
            data[at] = (byte) Integer.parseInt(text.substring(2 * at, 2 * at + 2), 16);
        }
        return data;
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
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer;
            try {
                answer = answer(MAPPER.readTree(line));
            } catch (Exception | StackOverflowError error) {
                answer = MAPPER.createObjectNode().put("ok", false).put("error", error.toString());
            }
            out.println(MAPPER.writeValueAsString(answer));
        }
    }
}
