package io.kafkascope.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class ChildTest {
    @Test
    void wordsAreThoseOfAShell() {
        assertEquals(List.of("a", "b c", "d", ""), Child.words("  a 'b c'\t\"d\" ''"));
        assertEquals(List.of("--fault=x y"), Child.words("--fault=\"x y\""));
        assertEquals(List.of(), Child.words(" "));
    }
}
