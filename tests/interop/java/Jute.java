import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Proxy;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.jute.BinaryInputArchive;
import org.apache.jute.BinaryOutputArchive;
import org.apache.jute.OutputArchive;
import org.apache.jute.Record;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.MultiOperationRecord;
import org.apache.zookeeper.MultiResponse;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;

/**
 * ZooKeeper's own record classes as a codec: a line in, a line out.
 *
 * {"constants": true}                        errors, types and events with their numbers
 * {"fields": "GetDataRequest"}               names and types in the order of serialize()
 * {"record": "GetDataRequest", "hex": "..."} read, told as JSON and written again
 *
 * Answers: {"ok": true, ...} or {"ok": false, "error"}.
 */
public final class Jute {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Jute() {}

    private static Class<?> named(String name) throws ClassNotFoundException {
        switch (name) {
            case "MultiRequest":
                return MultiOperationRecord.class;
            case "MultiResponse":
                return MultiResponse.class;
            default:
                try {
                    return Class.forName("org.apache.zookeeper.proto." + name);
                } catch (ClassNotFoundException missing) {
                    return Class.forName("org.apache.zookeeper.data." + name);
                }
        }
    }

    private static Record fresh(Class<?> type) throws ReflectiveOperationException {
        return (Record) type.getDeclaredConstructor().newInstance();
    }

    /** Names and types, in the order in which the class itself writes them. */
    private static ArrayNode fields(Class<?> type) throws Exception {
        List<String> order = new ArrayList<>();
        int[] depth = {0};
        OutputArchive listener = (OutputArchive) Proxy.newProxyInstance(
            Jute.class.getClassLoader(), new Class<?>[] {OutputArchive.class},
            (self, method, given) -> {
                String called = method.getName();
                Object tag = given == null ? null : given[given.length - 1];
                if (called.equals("startRecord")) {
                    depth[0]++;
                } else if (called.equals("endRecord")) {
                    depth[0]--;
                } else if (depth[0] == 1 && !called.startsWith("end") && tag instanceof String) {
                    order.add((String) tag);
                }
                return method.getReturnType() == long.class ? (Object) 0L : null;
            });
        fresh(type).serialize(listener, "");
        ArrayNode told = MAPPER.createArrayNode();
        for (String name : order) {
            told.addArray().add(name).add(kind(type.getDeclaredField(name).getGenericType()));
        }
        return told;
    }

    private static JsonNode kind(Type type) throws Exception {
        if (type instanceof ParameterizedType) {
            Type element = ((ParameterizedType) type).getActualTypeArguments()[0];
            return MAPPER.createArrayNode().add(kind(element));
        }
        Class<?> plain = (Class<?>) type;
        if (Record.class.isAssignableFrom(plain)) {
            return MAPPER.createObjectNode().set("fields", fields(plain));
        }
        return MAPPER.getNodeFactory().textNode(plain.getSimpleName());
    }

    private static JsonNode told(Object value) throws ReflectiveOperationException {
        if (value instanceof List) {
            ArrayNode all = MAPPER.createArrayNode();
            for (Object each : (List<?>) value) {
                all.add(told(each));
            }
            return all;
        }
        if (value instanceof byte[]) {
            return MAPPER.getNodeFactory().textNode(Base64.getEncoder().encodeToString((byte[]) value));
        }
        if (value instanceof Record) {
            ObjectNode all = MAPPER.createObjectNode();
            for (Field field : value.getClass().getDeclaredFields()) {
                field.setAccessible(true);
                if (!java.lang.reflect.Modifier.isStatic(field.getModifiers())) {
                    all.set(field.getName(), told(field.get(value)));
                }
            }
            return all;
        }
        return MAPPER.valueToTree(value);
    }

    private static ObjectNode constants() throws ReflectiveOperationException {
        ObjectNode all = MAPPER.createObjectNode().put("ok", true);
        Map<String, Integer> errors = new HashMap<>();
        for (KeeperException.Code code : KeeperException.Code.values()) {
            errors.put(code.name(), code.intValue());
        }
        Map<String, Integer> types = new HashMap<>();
        for (Field field : ZooDefs.OpCode.class.getFields()) {
            types.put(field.getName(), field.getInt(null));
        }
        Map<String, Integer> events = new HashMap<>();
        for (Watcher.Event.EventType event : Watcher.Event.EventType.values()) {
            events.put(event.name(), event.getIntValue());
        }
        Map<String, Integer> states = new HashMap<>();
        for (Watcher.Event.KeeperState state : Watcher.Event.KeeperState.values()) {
            states.put(state.name(), state.getIntValue());
        }
        all.set("ZooKeeperError", MAPPER.valueToTree(errors));
        all.set("ZooKeeperType", MAPPER.valueToTree(types));
        all.set("ZooKeeperEvent", MAPPER.valueToTree(events));
        all.set("ZooKeeperState", MAPPER.valueToTree(states));
        return all;
    }

    private static ObjectNode answer(JsonNode asked) throws Exception {
        if (asked.has("constants")) {
            return constants();
        }
        ObjectNode answer = MAPPER.createObjectNode().put("ok", true);
        if (asked.has("fields")) {
            answer.set("fields", fields(named(asked.get("fields").asText())));
            return answer;
        }
        String name = asked.get("record").asText();
        ByteArrayInputStream in = new ByteArrayInputStream(bytes(asked.get("hex").asText()));
        Record record = fresh(named(name));
        record.deserialize(BinaryInputArchive.getArchive(in), "");
        if (!name.startsWith("Multi")) {
            answer.set("json", told(record));
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        record.serialize(BinaryOutputArchive.getArchive(out), "");
        return answer.put("left", in.available()).put("hex", hex(out.toByteArray()));
    }

    private static byte[] bytes(String hex) {
        byte[] all = new byte[hex.length() / 2];
        for (int i = 0; i < all.length; i++) {
            all[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return all;
    }

    private static String hex(byte[] all) {
        StringBuilder text = new StringBuilder();
        for (byte each : all) {
            text.append(String.format("%02x", each));
        }
        return text.toString();
    }

    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer;
            try {
                answer = answer(MAPPER.readTree(line));
            } catch (InvocationTargetException e) {
                answer = MAPPER.createObjectNode().put("ok", false).put("error", e.getCause().toString());
            } catch (Exception e) {
                answer = MAPPER.createObjectNode().put("ok", false).put("error", e.toString());
            }
            out.println(MAPPER.writeValueAsString(answer));
        }
    }
}
