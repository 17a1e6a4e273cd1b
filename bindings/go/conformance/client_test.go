package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	readTimeout = 30 * time.Second
	stepTimeout = 2 * time.Minute
)

// limited is for a step: the client gives up, and the test says so, before go test does.
func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), stepTimeout)
}

func client(bootstrap string, options ...kgo.Opt) *kgo.Client {
	seeds := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ClientID("franz-go")}
	made, err := kgo.NewClient(append(seeds, options...)...)
	if err != nil {
		panic(err) // an option is wrong
	}
	return made
}

// makeTopic makes a topic with one partition, and waits until it has a leader.
func makeTopic(t *testing.T, bootstrap, topic string) {
	t.Helper()
	ctx, cancel := limited()
	defer cancel()
	admin := client(bootstrap)
	defer admin.Close()
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 30_000
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, 1, 1
	create.Topics = append(create.Topics, wanted)
	made, err := create.RequestWith(ctx, admin)
	if err == nil {
		err = kerr.ErrorForCode(made.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("%s cannot be made: %v", topic, err)
	}
	for {
		ask := kmsg.NewPtrMetadataRequest()
		about := kmsg.NewMetadataRequestTopic()
		about.Topic = &topic
		ask.Topics = append(ask.Topics, about)
		told, err := ask.RequestWith(ctx, admin)
		if err != nil {
			t.Fatalf("%s: %v", topic, err)
		}
		of := told.Topics[0]
		if of.ErrorCode == 0 && len(of.Partitions) == 1 && of.Partitions[0].ErrorCode == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func records(topic string, values []string) []*kgo.Record {
	made := make([]*kgo.Record, len(values))
	for place, value := range values {
		made[place] = &kgo.Record{Topic: topic, Value: []byte(value)}
	}
	return made
}

func (s *stage) produce(each step) string {
	ctx, cancel := limited()
	defer cancel()
	options := []kgo.Opt{kgo.ProducerLinger(50 * time.Millisecond)} // all in one request
	if each.Acks == 1.0 {
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	producer := client(s.proxy.Bootstrap(), options...)
	defer producer.Close()
	begun := time.Now()
	results := producer.ProduceSync(ctx, records(s.topic, each.Values)...)
	took := time.Since(begun)
	delivered := 0
	for _, result := range results {
		if result.Err == nil {
			delivered++
		}
	}
	switch told := results[0].Err; {
	case each.Error != "" && kafkaName(told) != each.Error:
		return fmt.Sprintf("it was told %v", told)
	case each.Delivered != nil && *each.Delivered != delivered:
		return fmt.Sprintf("%d were delivered: %v", delivered, results.FirstErr())
	case took.Milliseconds() < each.AtLeastMS:
		return fmt.Sprintf("it took only %s", took)
	}
	return ""
}

func kafkaName(err error) string {
	var told *kerr.Error
	if errors.As(err, &told) {
		return told.Message
	}
	return ""
}

func (s *stage) consume(each step) string {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	topic := each.Topic
	if topic == "" {
		topic = s.topic
	}
	reader := client(
		s.proxy.Bootstrap(), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	defer reader.Close()
	var values []string
	for len(values) < *each.Count && ctx.Err() == nil {
		for _, record := range reader.PollFetches(ctx).Records() {
			values = append(values, string(record.Value))
		}
	}
	return differs(values, each.Values, each.AnyOrder)
}

func (s *stage) transact(each step) string {
	ctx, cancel := limited()
	defer cancel()
	producer := client(s.proxy.Bootstrap(), kgo.TransactionalID(s.topic+"-writer"))
	defer producer.Close()
	if err := producer.BeginTransaction(); err != nil {
		return err.Error()
	}
	if err := producer.ProduceSync(ctx, records(s.topic, each.Values)...).FirstErr(); err != nil {
		return err.Error()
	}
	if err := producer.EndTransaction(ctx, kgo.TransactionEndTry(each.Commit)); err != nil {
		return err.Error()
	}
	return ""
}
