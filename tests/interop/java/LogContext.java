package org.apache.kafka.common.utils;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Where 4.3 has it: the storage of its tests, in a broker of 4.4, asks for it. */
public final class LogContext {
    public LogContext(String prefix) {
    }

    public Logger logger(Class<?> of) {
        return LoggerFactory.getLogger(of);
    }
}
