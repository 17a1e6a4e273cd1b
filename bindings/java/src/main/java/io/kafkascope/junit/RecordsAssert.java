package io.kafkascope.junit;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/** What has to be true of records that were produced or fetched; failures say what there was instead. */
public final class RecordsAssert {
    private final KafkascopeProxy proxy;
    private final String filter;
    private final Duration within;

    RecordsAssert(KafkascopeProxy proxy, String filter, Duration within) {
        this.proxy = proxy;
        this.filter = filter;
        this.within = within;
    }

    /** The same assertion, which may take so long to become true. */
    public RecordsAssert within(Duration time) {
        return new RecordsAssert(proxy, filter, time);
    }

    /** There were such records; returns them. */
    public List<KafkaRecord> exist() {
        return check(null);
    }

    /** There was no such record. */
    public void doNotExist() {
        check(0);
    }

    /** There were so many such records; returns them. */
    public List<KafkaRecord> hasCount(int count) {
        return check(count);
    }

    private List<KafkaRecord> check(Integer count) {
        return proxy.expect("records", filter, count, within, Map.of()).orFail().listed(KafkaRecord::new);
    }
}
