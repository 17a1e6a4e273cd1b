// Writes what franz-go's sr.Serde makes of values, with hamba/avro: `main BROKER REGISTRY`. Prints
// one line of JSON for each record: topic, the schema's id, and the value.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

const order = `{"type": "record", "name": "Order", "namespace": "golang", "fields": [
	{"name": "id", "type": "string"},
	{"name": "count", "type": "long"},
	{"name": "note", "type": ["null", "string"], "default": null},
	{"name": "tags", "type": {"type": "array", "items": "string"}},
	{"name": "weights", "type": {"type": "map", "values": "double"}}]}`

const item = `{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Item", "type": "object",
	"properties": {"count": {"type": "integer"}}}`

// Two messages, the second with a nested one: index [1, 0] is told apart from [0].
const proto = `syntax = "proto3"; package golang;
message First { string name = 1; }
message Second { message Inner { int32 number = 1; } Inner inner = 1; }`

// Order is a value.
type Order struct {
	ID      string             `avro:"id" json:"id"`
	Count   int64              `avro:"count" json:"count"`
	Note    *string            `avro:"note" json:"note"`
	Tags    []string           `avro:"tags" json:"tags"`
	Weights map[string]float64 `avro:"weights" json:"weights"`
}

// Item is a value in JSON.
type Item struct {
	Count int `json:"count"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	registry, err := sr.NewClient(sr.URLs(os.Args[2]))
	check(err)
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ClientID("franz"), kgo.AllowAutoTopicCreation())
	check(err)
	register := func(topic, text string, kind sr.SchemaType) int {
		made, err := registry.CreateSchema(ctx, topic+"-value", sr.Schema{Schema: text, Type: kind})
		if err != nil { // Apicurio may not tell the version of what it took.
			id, err := registry.RegisterSchema(ctx, topic+"-value", sr.Schema{Schema: text, Type: kind}, -1, -1)
			check(err)
			return id
		}
		return made.ID
	}
	write := func(topic string, id int, data []byte, shown any) {
		check(client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: data}).FirstErr())
		told, err := json.Marshal(map[string]any{"topic": topic, "id": id, "value": shown})
		check(err)
		fmt.Println(string(told))
	}
	var serde sr.Serde
	parsed := avro.MustParse(order)
	id := register("go-avro", order, sr.TypeAvro)
	serde.Register(id, Order{}, sr.EncodeFn(func(v any) ([]byte, error) { return avro.Marshal(parsed, v) }))
	note := "n"
	for _, value := range []Order{
		{"a", 1 << 62, &note, []string{"x", ""}, map[string]float64{"k": 0.5}},
		{"b", -1, nil, []string{}, map[string]float64{}},
	} {
		data, err := serde.Encode(value)
		check(err)
		write("go-avro", id, data, value)
	}
	id = register("go-json", item, sr.TypeJSON)
	serde.Register(id, Item{}, sr.EncodeFn(json.Marshal))
	data, err := serde.Encode(Item{3})
	check(err)
	write("go-json", id, data, Item{3})
	id = register("go-proto", proto, sr.TypeProtobuf)
	var header sr.ConfluentHeader
	for _, each := range []struct {
		index []int
		data  []byte
		shown any
	}{
		{[]int{0}, []byte{10, 1, 'a'}, map[string]any{"name": "a"}},
		{[]int{1}, []byte{10, 2, 8, 5}, map[string]any{"inner": map[string]any{"number": 5}}},
		{[]int{1, 0}, []byte{8, 7}, map[string]any{"number": 7}},
	} {
		framed, err := header.AppendEncode(nil, id, each.index)
		check(err)
		write("go-proto", id, append(framed, each.data...), each.shown)
	}
	client.Close()
}
