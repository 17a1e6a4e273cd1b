import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Writes maps, lists, strings, numbers and bytes as JSON: old clients bring no library for it. */
final class Json {
    private Json() { }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        append(out, value);
        return out.toString();
    }

    /** Text when the bytes are UTF-8, else {"base64": ...}, as `records --json` prints values. */
    static Object payload(byte[] bytes) {
        if (bytes == null) {
            return null;
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException notText) {
            return Collections.singletonMap("base64", Base64.getEncoder().encodeToString(bytes));
        }
    }

    static List<Object> list(Object... items) {
        List<Object> list = new ArrayList<>();
        Collections.addAll(list, items);
        return list;
    }

    private static void append(StringBuilder out, Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof Map) {
            String comma = "{";
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                out.append(comma);
                quote(out, entry.getKey().toString());
                out.append(':');
                append(out, entry.getValue());
                comma = ",";
            }
            out.append(comma.equals("{") ? "{}" : "}");
        } else if (value instanceof Collection) {
            String comma = "[";
            for (Object item : (Collection<?>) value) {
                out.append(comma);
                append(out, item);
                comma = ",";
            }
            out.append(comma.equals("[") ? "[]" : "]");
        } else {
            quote(out, value.toString());
        }
    }

    private static void quote(StringBuilder out, String text) {
        out.append('"');
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
