import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Kafka's own generated classes as a codec: a line in, a line out.
 *
 * {"list": true}                                    all messages with their lowest and highest version
 * {"message": "FetchRequest", "version": 12, "hex": "..."}   read, then told as JSON and written again
 * {"message": "FetchRequest", "version": 12, "json": {...}}  from Kafka's JSON, then the same
 *
 * Answers: {"ok": true, "json": {...}, "hex": "...", "left": bytes not read} or {"ok": false, "error"}.
 * Kafka's converters leave records out of JSON; they are in the bytes that are written again.
 */
public final class Oracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private final Map<String, Kind> kinds = new TreeMap<>();

    private static final class Kind {
        final Class<?> data;
        final Method toJson;
        final Method fromJson;
        final short lowest;
        final short highest;

        Kind(Class<?> data, Class<?> converter) throws ReflectiveOperationException {
            this.data = data;
            toJson = converter.getMethod("write", data, short.class, boolean.class);
            fromJson = converter.getMethod("read", JsonNode.class, short.class);
            lowest = data.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
            highest = data.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
        }
    }

    private Oracle() throws Exception {
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.endsWith(".jar") || !new File(path).getName().startsWith("kafka")) {
                continue;
            }
            try (JarFile jar = new JarFile(path)) {
                for (String entry : (Iterable<String>) jar.stream().map(e -> e.getName())::iterator) {
                    if (entry.endsWith("JsonConverter.class") && !entry.contains("$")) {
                        add(entry.substring(0, entry.length() - 6).replace('/', '.'));
                    }
                }
            }
        }
    }

    private void add(String converter) throws ReflectiveOperationException {
        String data = converter.substring(0, converter.length() - "JsonConverter".length());
        Class<?> type = Class.forName(data);
        if (!Message.class.isAssignableFrom(type)) {
            return; // a family of records that shares one converter
        }
        String name = type.getSimpleName();
        boolean call = name.endsWith("RequestData") || name.endsWith("ResponseData")
            || name.endsWith("HeaderData");
        kinds.put(call ? name.substring(0, name.length() - 4) : name,
            new Kind(type, Class.forName(converter)));
    }

    private ObjectNode list() {
        ObjectNode all = MAPPER.createObjectNode();
        kinds.forEach((name, kind) -> all.putArray(name).add(kind.lowest).add(kind.highest));
        return MAPPER.createObjectNode().put("ok", true).set("messages", all);
    }

    private ObjectNode answer(JsonNode asked) throws Exception {
        if (asked.has("list")) {
            return list();
        }
        Kind kind = kinds.get(asked.get("message").asText());
        if (kind == null) {
            throw new IllegalArgumentException("no " + asked.get("message"));
        }
        short version = (short) asked.get("version").asInt();
        ObjectNode answer = MAPPER.createObjectNode().put("ok", true);
        Message message;
        if (asked.has("hex")) {
            ByteBuffer in = ByteBuffer.wrap(bytes(asked.get("hex").asText()));
            message = (Message) kind.data.getDeclaredConstructor().newInstance();
            message.read(new ByteBufferAccessor(in), version);
            answer.put("left", in.remaining());
        } else {
            message = (Message) kind.fromJson.invoke(null, asked.get("json"), version);
        }
        answer.set("json", (JsonNode) kind.toJson.invoke(null, message, version, false));
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(out), cache, version);
        out.flip();
        return answer.put("hex", hex(out));
    }

    private static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static String hex(ByteBuffer buffer) {
        StringBuilder text = new StringBuilder(2 * buffer.remaining());
        while (buffer.hasRemaining()) {
            int b = buffer.get() & 0xff;
            text.append(Character.forDigit(b >> 4, 16)).append(Character.forDigit(b & 15, 16));
        }
        return text.toString();
    }

    public static void main(String[] unused) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        Oracle oracle = new Oracle();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer;
            try {
                answer = oracle.answer(MAPPER.readTree(line));
            } catch (InvocationTargetException failure) {
                answer = MAPPER.createObjectNode().put("ok", false).put("error", failure.getCause().toString());
            } catch (Exception | Error failure) {
                answer = MAPPER.createObjectNode().put("ok", false).put("error", failure.toString());
            }
            out.println(MAPPER.writeValueAsString(answer));
            out.flush();
        }
    }
}
