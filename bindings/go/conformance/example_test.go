package conformance

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	kafkascope "github.com/kafkascope/kafkascope/bindings/go"
)

// broker is where the tests' Kafka is.
func broker(t *testing.T) string {
	t.Helper()
	address := os.Getenv("KAFKA_BOOTSTRAP")
	if address == "" {
		t.Skip("KAFKA_BOOTSTRAP does not say where Kafka is")
	}
	return address
}

// sell is the code under test.
func sell(bootstrap string, orders ...string) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ClientID("shop"), kgo.DefaultProduceTopic("orders"),
		kgo.AllowAutoTopicCreation(), kgo.ProducerLinger(50*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, order := range orders {
		records = append(records, kgo.StringRecord(order))
	}
	return client.ProduceSync(context.Background(), records...).FirstErr()
}

func TestTheShopWaitsForAllReplicas(t *testing.T) {
	p := kafkascope.Proxy(t, broker(t))
	if err := sell(p.Bootstrap(), "bread", "butter"); err != nil {
		t.Fatal(err)
	}
	p.AssertRequest(t, "api == Produce and client == shop and acks == -1", kafkascope.Times(1))
	p.RefuteRequest(t, "api == Produce and failed")
	p.AssertRecords(t, "topic == orders", kafkascope.Times(2))
}

func TestALeaderThatMovesCostsNoOrder(t *testing.T) {
	p := kafkascope.Proxy(t, broker(t))
	moved := p.Fault("api == Produce -> error NOT_LEADER_OR_FOLLOWER once")
	if err := sell(p.Bootstrap(), "milk"); err != nil {
		t.Fatal(err)
	}
	if p.Fired(moved) != 1 {
		t.Error("the rule has not fired")
	}
	p.AssertRequest(t, "api == Produce", kafkascope.Times(2))
}

func TestNothingIsSoldBeforeTheBrokerHasIt(t *testing.T) {
	p := kafkascope.Proxy(t, broker(t))
	p.Hold("api == Produce")
	sold := make(chan error, 1)
	go func() { sold <- sell(p.Bootstrap(), "eggs") }()
	held := p.AwaitHeld(1)
	select {
	case <-sold:
		t.Fatal("it is sold already")
	case <-time.After(100 * time.Millisecond):
	}
	held[0].Release()
	if err := <-sold; err != nil {
		t.Fatal(err)
	}
}

func TestACaptureIsReadAsIfKafkaWereThere(t *testing.T) {
	served := kafkascope.Serve(t, "../../../captures/samples/libraries.pcap")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(served.Bootstrap()), kgo.ConsumeTopics("librdkafka.none"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	found := 0
	for found < 6 && ctx.Err() == nil {
		found += client.PollFetches(ctx).NumRecords()
	}
	if found != 6 {
		t.Errorf("%d records came", found)
	}
}
