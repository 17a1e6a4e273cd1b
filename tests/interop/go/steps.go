package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// What earlier connections of this process left for abbreviated handshakes.
var sessions = tls.NewLRUClientSessionCache(0)

// Settings every client has: where, who, TLS.
func settings(a arguments, suffix string) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(a["bootstrap"], ",")...),
		kgo.ClientID(a.or("client", "franz-go") + suffix),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RequestTimeoutOverhead(time.Duration(a.number("timeout", 10_000)) * time.Millisecond),
	}
	if user, ok := a["user"]; ok {
		if a.or("mechanism", "PLAIN") == "PLAIN" {
			opts = append(opts, kgo.SASL(plain.Auth{User: user, Pass: a["password"]}.AsMechanism()))
		} else {
			auth := scram.Auth{User: user, Pass: a["password"]}
			opts = append(opts, kgo.SASL(auth.AsSha256Mechanism()))
		}
	}
	if ca, ok := a["ca"]; ok {
		pem, err := os.ReadFile(ca)
		if err != nil {
			panic(err)
		}
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		config.RootCAs.AppendCertsFromPEM(pem)
		if cert, ok := a["cert"]; ok {
			pair, err := tls.LoadX509KeyPair(cert, cert)
			if err != nil {
				panic(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		if _, ok := a["resume"]; ok {
			config.ClientSessionCache = sessions
		}
		if _, ok := a["renegotiate"]; ok {
			config.Renegotiation = tls.RenegotiateFreelyAsClient
		}
		if path := os.Getenv("SSLKEYLOGFILE"); path != "" {
			keys, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			config.KeyLogWriter = keys
		}
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	return opts
}

func client(opts []kgo.Opt, more ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		panic(err)
	}
	return made
}

type sender interface {
	Produce(context.Context, *kgo.Record, func(*kgo.Record, error))
}

// Send known records and wait for their offsets.
func send(ctx context.Context, to sender, a arguments, first, count int) ([][]any, error) {
	var all sync.WaitGroup
	var lock sync.Mutex
	var failure error
	rows := make([][]any, count)
	for i := 0; i < count; i++ {
		all.Add(1)
		to.Produce(ctx, known(a["topic"], first+i), func(r *kgo.Record, err error) {
			defer all.Done()
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				failure = err
				return
			}
			var offset any = r.Offset
			if a.or("acks", "all") == "0" {
				offset = nil
			}
			rows[i] = row(r, offset)
		})
	}
	all.Wait()
	return rows, failure
}

func writing(a arguments) []kgo.Opt {
	return []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(20 * time.Millisecond),
		kgo.ProducerBatchCompression(codecs[a.or("codec", "none")]),
	}
}

func produce(ctx context.Context, a arguments) (answer, error) {
	opts := append(settings(a, ""), writing(a)...)
	if a.or("idempotent", "false") != "true" {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}
	producer := client(opts, kgo.RequiredAcks(acks[a.or("acks", "all")]))
	defer producer.Close()
	rows, err := send(ctx, producer, a, a.number("first", 0), a.number("count", 60))
	return answer{"produced": rows}, err
}

func reading(a arguments) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if a["isolation"] == "read_committed" {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if group, ok := a["group"]; ok {
		return append(opts, kgo.ConsumerGroup(group), kgo.ConsumeTopics(a["topic"]),
			kgo.DisableAutoCommit(), kgo.SessionTimeout(10*time.Second),
			kgo.HeartbeatInterval(300*time.Millisecond), kgo.Balancers(kgo.RangeBalancer()))
	}
	start := kgo.NewOffset().AtStart()
	return append(opts, kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{a["topic"]: {0: start, 1: start}}))
}

func consume(ctx context.Context, a arguments) (answer, error) {
	consumer := client(settings(a, ""), reading(a)...)
	defer consumer.Close()
	rows, count := [][]any{}, a.number("count", 60)
	for len(rows) < count {
		fetches := consumer.PollFetches(ctx)
		if ctx.Err() != nil {
			return answer{"consumed": rows}, nil
		}
		for _, each := range fetches.Errors() {
			return nil, each.Err
		}
		fetches.EachRecord(func(r *kgo.Record) { rows = append(rows, row(r, r.Offset)) })
	}
	if _, ok := a["group"]; ok {
		if err := consumer.CommitUncommittedOffsets(ctx); err != nil {
			return nil, err
		}
	}
	return answer{"consumed": rows}, nil
}

// One member of a group, and how many partitions it holds.
type member struct {
	client *kgo.Client
	lock   sync.Mutex
	rows   [][]any
	holds  int
	done   chan struct{}
}

func (m *member) change(by int) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, some map[string][]int32) {
		m.lock.Lock()
		defer m.lock.Unlock()
		for _, partitions := range some {
			m.holds += by * len(partitions)
		}
	}
}

func join(ctx context.Context, a arguments, suffix string) *member {
	m := &member{done: make(chan struct{})}
	m.client = client(settings(a, suffix), append(reading(a),
		kgo.OnPartitionsAssigned(m.change(1)), kgo.OnPartitionsRevoked(m.change(-1)),
		kgo.OnPartitionsLost(m.change(-1)))...)
	go func() {
		defer close(m.done)
		for {
			fetches := m.client.PollFetches(ctx)
			if fetches.IsClientClosed() || ctx.Err() != nil {
				return
			}
			m.lock.Lock()
			fetches.EachRecord(func(r *kgo.Record) { m.rows = append(m.rows, row(r, r.Offset)) })
			m.lock.Unlock()
			_ = m.client.CommitUncommittedOffsets(ctx)
		}
	}()
	return m
}

func (m *member) await(ctx context.Context, partitions int) error {
	for {
		m.lock.Lock()
		holds := m.holds
		m.lock.Unlock()
		if holds == partitions {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("holds %d, not %d", holds, partitions)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (m *member) leave() {
	m.client.Close()
	<-m.done
}

func rebalance(ctx context.Context, a arguments) (answer, error) {
	first := join(ctx, a, "-1")
	defer first.leave()
	if err := first.await(ctx, 2); err != nil {
		return nil, err
	}
	second := join(ctx, a, "-2")
	err := second.await(ctx, 1)
	if err == nil {
		err = first.await(ctx, 1)
	}
	time.Sleep(800 * time.Millisecond) // heartbeats of a group at rest
	second.leave()
	if err == nil {
		err = first.await(ctx, 2)
	}
	first.lock.Lock()
	defer first.lock.Unlock()
	held := [][]int{{2, 1, 2}, {1}}
	return answer{"consumed": append(first.rows, second.rows...), "held": held}, err
}

func transact(ctx context.Context, a arguments) (answer, error) {
	each := a.number("each", 10)
	opts := append(settings(a, ""), writing(a)...)
	opts = append(opts, kgo.TransactionalID(a["id"]), kgo.RequireStableFetchOffsets())
	from := arguments{"topic": a["source"], "group": a["group"]}
	session, err := kgo.NewGroupTransactSession(append(opts, reading(from)...)...)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	read := [][]any{}
	for len(read) < 5 {
		fetches := session.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) { read = append(read, row(r, r.Offset)) })
	}
	written := [3][][]any{}
	for turn, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := session.Begin(); err != nil {
			return nil, err
		}
		rows, err := send(ctx, session.Client(), a, turn*each, each)
		if err != nil {
			return nil, err
		}
		written[turn] = rows
		if _, err := session.End(ctx, end); err != nil {
			return nil, err
		}
	}
	return answer{
		"produced": append(written[0], written[2]...), "aborted": written[1], "consumed": read,
	}, nil
}

func administer(ctx context.Context, a arguments) (answer, error) {
	admin := client(settings(a, ""))
	defer admin.Close()
	create := kmsg.NewPtrCreateTopicsRequest()
	for _, name := range strings.FieldsFunc(a["topics"], func(r rune) bool { return r == ',' }) {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 2, 1
		create.Topics = append(create.Topics, topic)
	}
	if len(create.Topics) > 0 {
		if _, err := create.RequestWith(ctx, admin); err != nil {
			return nil, err
		}
	}
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, admin)
	if err != nil {
		return nil, err
	}
	result := answer{"topics": len(metadata.Topics)}
	if group, ok := a["group"]; ok {
		groups, err := kmsg.NewPtrListGroupsRequest().RequestWith(ctx, admin)
		if err != nil {
			return nil, err
		}
		describe := kmsg.NewPtrDescribeGroupsRequest()
		describe.Groups = []string{group}
		described, err := describe.RequestWith(ctx, admin)
		if err != nil {
			return nil, err
		}
		result["groups"], result["state"] = len(groups.Groups), described.Groups[0].State
	}
	return result, nil
}

// A producer and a consumer that go on for seconds, while leaders move and brokers restart.
func journey(ctx context.Context, a arguments) (answer, error) {
	count, pause := a.number("count", 400), time.Duration(a.number("pause", 50))*time.Millisecond
	reader := client(settings(a, "-reader"), reading(a)...)
	defer reader.Close()
	read := map[string]bool{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for len(read) < count && ctx.Err() == nil {
			reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) { read[string(r.Value)] = true })
		}
	}()
	writer := client(settings(a, ""))
	defer writer.Close()
	written := map[string]bool{}
	var failure error
	for i := 0; i < count; i++ {
		value := fmt.Sprintf("r%d", i)
		written[value] = true
		writer.Produce(ctx, &kgo.Record{Topic: a["topic"], Value: []byte(value)},
			func(_ *kgo.Record, err error) {
				if err != nil {
					failure = err
				}
			})
		time.Sleep(pause)
	}
	if err := writer.Flush(ctx); err != nil {
		return nil, err
	}
	<-done
	same := len(read) == len(written)
	for value := range read {
		same = same && written[value]
	}
	return answer{"written": len(written), "read": len(read), "same": same}, failure
}
