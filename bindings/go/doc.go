// Package kafkascope stands between a test's Kafka clients and their broker: it records what was
// said, holds it against expectations, disturbs it, or answers from a capture.
//
//	func TestTheProducerWaitsForAllReplicas(t *testing.T) {
//		p := kafkascope.Proxy(t, "localhost:9092")
//		produceSomething(t, p.Bootstrap())
//		p.AssertRequest(t, "api == Produce and acks == -1")
//	}
//
// The work is done by the program kafkascope, which runs beside the test and is spoken to in lines
// of JSON. It is found as KAFKASCOPE in the environment says (a path, or the words of a command as in
// a shell), else on the PATH. It ends when the test does, also when the test is killed.
//
// When a test fails, its capture is kept and the log says where: in KAFKASCOPE_DIR or the folder
// given to [KeepIn], else with the artifacts of go test -artifacts, else in the temporary folder.
//
// Filters are those of https://github.com/kafkascope/kafkascope/blob/main/docs/filter.md, rules those
// of https://github.com/kafkascope/kafkascope/blob/main/docs/faults.md.
package kafkascope
