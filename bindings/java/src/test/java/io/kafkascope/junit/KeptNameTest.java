package io.kafkascope.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import org.junit.jupiter.api.Test;

class KeptNameTest {
    @Test
    void captureOfATestHasItsName() {
        assertEquals("A.b_c_.pcapng", KafkascopeExtension.fileName("A.b(c)"));
    }

    @Test
    void longNamesStayApart() {
        String one = KafkascopeExtension.fileName("x".repeat(300) + 1);
        assertNotEquals(one, KafkascopeExtension.fileName("x".repeat(300) + 2));
        assertEquals(true, one.length() < 140);
    }
}
