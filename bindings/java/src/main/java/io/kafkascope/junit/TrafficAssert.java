package io.kafkascope.junit;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/** What has to be true of requests; failures say what was sent instead. */
public final class TrafficAssert {
    private final KafkascopeProxy proxy;
    private final String filter;
    private final Duration within;

    TrafficAssert(KafkascopeProxy proxy, String filter, Duration within) {
        this.proxy = proxy;
        this.filter = filter;
        this.within = within;
    }

    /** The same assertion, which may take so long to become true. */
    public TrafficAssert within(Duration time) {
        return new TrafficAssert(proxy, filter, time);
    }

    /** There were such requests; returns them. */
    public List<Exchange> wasSent() {
        return check(null);
    }

    /** There was no such request. */
    public void wasNotSent() {
        check(0);
    }

    /** There were so many such requests; returns them. */
    public List<Exchange> hasCount(int count) {
        return check(count);
    }

    private List<Exchange> check(Integer count) {
        return proxy.expect("exchanges", filter, count, within, Map.of()).orFail().listed(Exchange::new);
    }
}
