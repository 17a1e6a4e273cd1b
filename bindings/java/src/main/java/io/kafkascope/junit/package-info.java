/** Kafka traffic in tests: recorded, held against expectations, disturbed, replayed. */
package io.kafkascope.junit;
