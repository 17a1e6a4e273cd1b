import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.DescribeAclsRequestData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * One request of one API in each version that the client library has, on bare sockets. Says "ok",
 * or what happened, for each version.
 */
public final class Raw implements Driver.Step {
    @Override
    public Object run(Driver.Arguments arguments) throws Exception {
        ApiKeys api = ApiKeys.valueOf(arguments.get("api"));
        // Two at a time: waiting for versions that are not answered takes longest.
        Map<String, Object> versions = new ConcurrentHashMap<>();
        IntStream.rangeClosed(api.messageType.lowestSupportedVersion(),
            api.messageType.highestSupportedVersion(true)).parallel().forEach(v ->
                versions.put(Integer.toString(v), ask(arguments, api, (short) v)));
        return Collections.singletonMap("versions", versions);
    }

    private static String ask(Driver.Arguments arguments, ApiKeys api, short version) {
        String[] address = arguments.get("bootstrap").split(",")[0].split(":");
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            socket.setSoTimeout(4000);
            ApiMessage request = plain(api);
            RequestHeaderData header = new RequestHeaderData().setRequestApiKey(api.id)
                .setRequestApiVersion(version).setCorrelationId(version).setClientId("raw");
            OutputStream out = socket.getOutputStream();
            out.write(frame(header, api.requestHeaderVersion(version), request, version));
            out.flush();
            DataInputStream in = new DataInputStream(socket.getInputStream());
            ByteBuffer answer = ByteBuffer.allocate(in.readInt());
            in.readFully(answer.array());
            ByteBufferAccessor readable = new ByteBufferAccessor(answer);
            new ResponseHeaderData().read(readable, api.responseHeaderVersion(version));
            ApiMessage response = ApiMessageType.fromApiKey(api.id).newResponse();
            response.read(readable, version);
            return readable.remaining() == 0 ? "ok" : readable.remaining() + " bytes left";
        } catch (EOFException closed) {
            return "closed";
        } catch (IOException problem) {
            return problem.toString();
        } catch (Exception problem) {
            return problem.toString();
        }
    }

    /** All fields at their defaults, except where a broker does not answer to that. */
    private static ApiMessage plain(ApiKeys api) {
        ApiMessage request = api.messageType.newRequest();
        if (request instanceof ProduceRequestData) {
            ((ProduceRequestData) request).setAcks((short) 1);
        } else if (request instanceof DescribeAclsRequestData) {
            byte any = 1;
            ((DescribeAclsRequestData) request).setResourceTypeFilter(any).setPatternTypeFilter(any)
                .setOperation(any).setPermissionType(any);
        }
        return request;
    }

    private static byte[] frame(Message header, short headerVersion, Message body, short version) {
        ObjectSerializationCache headers = new ObjectSerializationCache();
        ObjectSerializationCache bodies = new ObjectSerializationCache();
        int size = header.size(headers, headerVersion) + body.size(bodies, version);
        ByteBuffer buffer = ByteBuffer.allocate(4 + size);
        buffer.putInt(size);
        ByteBufferAccessor writable = new ByteBufferAccessor(buffer);
        header.write(writable, headers, headerVersion);
        body.write(writable, bodies, version);
        return buffer.array();
    }
}
