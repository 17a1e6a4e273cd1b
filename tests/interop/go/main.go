// Produce numbered records and read them back in a group, with franz-go. Prints what was read.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	brokers, topic, codec := strings.Split(os.Args[1], ","), os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()

	producer, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ClientID("franz-go"),
		kgo.ProducerBatchCompression(codecs[codec]))
	check(err)
	for i := 0; i < count; i++ {
		value := []byte(fmt.Sprintf("%s-%d", codec, i))
		producer.Produce(ctx, &kgo.Record{Topic: topic, Value: value}, func(_ *kgo.Record, err error) {
			check(err)
		})
	}
	check(producer.Flush(ctx))
	producer.Close()

	consumer, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ClientID("franz-go"),
		kgo.ConsumerGroup(topic+".group"), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	check(err)
	read := []string{}
	for len(read) < count {
		fetches := consumer.PollFetches(ctx)
		check(fetches.Err0())
		fetches.EachRecord(func(r *kgo.Record) { read = append(read, string(r.Value)) })
	}
	check(consumer.CommitUncommittedOffsets(ctx))
	consumer.Close()
	check(json.NewEncoder(os.Stdout).Encode(read))
}
