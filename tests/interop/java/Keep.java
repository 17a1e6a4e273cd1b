import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.Stat;

/**
 * The Java client of ZooKeeper asks a server all that it can ask, and tells each request on a line:
 * {"session": "0x...", "api": "getData", "path": "/a", "error": "NONODE"}; watch events too.
 *
 * Keep HOST:PORT RELEASE [MEMBERS]: RELEASE as 34, 36, 39; with the servers of the ensemble it asks
 * for them again, and waits for a line on its input while the server is started anew.
 */
public final class Keep implements Watcher {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private final BlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();

    private final ZooKeeper keeper;

    private interface Asking {
        void ask() throws Exception;
    }

    private Keep(String at, boolean sasl) throws Exception {
        ZKClientConfig config = new ZKClientConfig();
        config.setProperty(ZKClientConfig.ENABLE_CLIENT_SASL_KEY, String.valueOf(sasl));
        keeper = new ZooKeeperAdmin(at, 20000, this, config);
        while (events.take().getState() != Event.KeeperState.SyncConnected) {
            Thread.yield();
        }
        tell("connect", null, null);
        if (sasl) {
            while (events.take().getState() != Event.KeeperState.SaslAuthenticated) {
                Thread.yield();
            }
            tell("sasl", null, null);
        }
    }

    @Override
    public void process(WatchedEvent event) {
        events.add(event);
    }

    private void tell(String api, String path, String error) throws Exception {
        ObjectNode line = MAPPER.createObjectNode();
        line.put("session", "0x" + Long.toHexString(keeper.getSessionId()));
        line.put("api", api).put("path", path).put("error", error);
        synchronized (System.out) {
            System.out.println(line);
        }
    }

    private void ask(String api, String path, Asking asking) throws Exception {
        String error = null;
        try {
            asking.ask();
        } catch (KeeperException failed) {
            error = failed.code().name();
        }
        tell(api, path, error);
    }

    /** Wait for an event of a node, and tell it. */
    private void await(String path) throws Exception {
        WatchedEvent event;
        do {
            event = events.poll(20, TimeUnit.SECONDS);
            if (event == null) {
                throw new IllegalStateException("no event of " + path);
            }
        } while (!path.equals(event.getPath()));
        tell("event " + event.getType(), path, null);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private void always() throws Exception {
        ask("create", "/java", () -> keeper.create("/java", bytes("one"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        ask("create", "/java", () -> keeper.create("/java", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        ask("create", "/java/seq-", () ->
            keeper.create("/java/seq-", new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL));
        ask("create", "/java/\u00e4\u00f6\u20ac", () -> keeper.create(
            "/java/\u00e4\u00f6\u20ac", bytes("\u00e4"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        ask("exists", "/java", () -> keeper.exists("/java", true));
        ask("exists", "/nothing", () -> {
            if (keeper.exists("/nothing", true) == null) {
                throw new KeeperException.NoNodeException("/nothing");
            }
        });
        ask("getData", "/java", () -> keeper.getData("/java", true, new Stat()));
        ask("getData", "/gone", () -> keeper.getData("/gone", false, new Stat()));
        ask("setData", "/java", () -> keeper.setData("/java", bytes("two"), 0));
        await("/java");
        ask("setData", "/java", () -> keeper.setData("/java", bytes("three"), 7));
        ask("getACL", "/java", () -> keeper.getACL("/java", new Stat()));
        ask("auth", null, () -> keeper.addAuthInfo("digest", bytes("super:keeper-secret")));
        ask("setACL", "/java", () -> keeper.setACL("/java", Ids.OPEN_ACL_UNSAFE, 0));
        ask("getChildren2", "/java", () -> keeper.getChildren("/java", true, new Stat()));
        ask("getChildren", "/java", () -> keeper.getChildren("/java", false));
        ask("multi", "/java/many", () -> keeper.multi(List.of(
            Op.check("/java", 1), Op.create("/java/many", bytes("m"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
            Op.setData("/java/many", bytes("n"), 0), Op.delete("/java/many", -1))));
        await("/java");
        ask("multi", "/java", () -> keeper.multi(List.of(Op.setData("/java", bytes("x"), -1), Op.delete("/gone", 3))));
        ask("sync", "/java", () -> {
            LinkedBlockingQueue<Integer> done = new LinkedBlockingQueue<>();
            keeper.sync("/java", (code, path, context) -> done.add(code), null);
            done.take();
        });
        ask("delete", "/java/\u00e4\u00f6\u20ac", () -> keeper.delete("/java/\u00e4\u00f6\u20ac", 0));
        ask("delete", "/java", () -> keeper.delete("/java", -1));
    }

    private void since36() throws Exception {
        ask("create2", "/java/two", () ->
            keeper.create("/java/two", bytes("2"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, new Stat()));
        ask("createContainer", "/java/box", () ->
            keeper.create("/java/box", bytes("c"), Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER));
        ask("createTTL", "/java/short", () -> keeper.create(
            "/java/short", bytes("t"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, new Stat(), 99000));
        ask("addWatch", "/java/two", () -> keeper.addWatch("/java/two", AddWatchMode.PERSISTENT_RECURSIVE));
        ask("create", "/java/two/below", () ->
            keeper.create("/java/two/below", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        await("/java/two/below");
        ask("getEphemerals", "/java", () -> keeper.getEphemerals("/java"));
        ask("getAllChildrenNumber", "/java", () -> keeper.getAllChildrenNumber("/java"));
        ask("multiRead", "/java", () -> {
            for (OpResult each : keeper.multi(Arrays.asList(
                Op.getData("/java"), Op.getChildren("/java"), Op.getData("/gone")))) {
                if (each instanceof OpResult.ErrorResult) {
                    throw KeeperException.create(((OpResult.ErrorResult) each).getErr());
                }
            }
        });
        ask("exists", "/java/two", () -> keeper.exists("/java/two", this));
        ask("checkWatches", "/java/two", () ->
            keeper.removeWatches("/java/two", this, WatcherType.Data, false));
        ask("getData", "/java/box", () -> keeper.getData("/java/box", this, null));
        ask("removeWatches", "/java/box", () -> keeper.removeAllWatches("/java/box", WatcherType.Any, false));
    }

    private void since39(String members) throws Exception {
        ask("whoAmI", null, keeper::whoAmI);
        ask("reconfig", null, () -> ((ZooKeeperAdmin) keeper).reconfigure(
            (String) null, null, members, -1, new Stat()));
    }

    private void close() throws Exception {
        keeper.close();
        tell("closeSession", null, null);
    }

    public static void main(String[] args) throws Exception {
        int release = Integer.parseInt(args[1]);
        Keep keep = new Keep(args[0], false);
        keep.always();
        if (release >= 36) {
            keep.since36();
        }
        if (args.length > 2) {
            keep.since39(args[2]);
            Keep plain = new Keep(args[0], false);
            plain.ask("getData", "/java", () -> plain.keeper.getData("/java", true, null));
            System.out.println("waiting");
            System.in.read();
            plain.ask("exists", "/java", () -> plain.keeper.exists("/java", false));
            keep.ask("exists", "/java", () -> keep.keeper.exists("/java", false));
            plain.close();
        }
        keep.close();
        if (System.getProperty("java.security.auth.login.config") != null) {
            new Keep(args[0], true).close();
        }
    }
}
