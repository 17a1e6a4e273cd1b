package io.kafkascope.junit;

/** kafkascope is not there, did not start, has ended, or refused what it was asked; a sentence. */
public final class KafkascopeException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    KafkascopeException(String sentence) {
        super(sentence);
    }
}
