package io.kafkascope.junit;

/** Stands below the failure of a test, and says where its traffic is. */
final class CaptureKept extends Exception {
    private static final long serialVersionUID = 1L;

    CaptureKept(String sentence) {
        super(sentence, null, false, false);
    }

    @Override
    public String toString() {
        return getMessage();
    }
}
