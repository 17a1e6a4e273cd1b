package main

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The records that every driver makes; tests/interop/known.py says the same in Python.
func known(topic string, index int) *kgo.Record {
	r := &kgo.Record{
		Topic: topic, Partition: int32(index % 2),
		Timestamp: time.UnixMilli(1_700_000_000_000 + int64(index)*1000),
	}
	text := fmt.Sprintf("%s/%d/%s", topic, index, strings.Repeat("abcdefghij", 1+index%12))
	if index%10 == 9 {
		text += " äö€🚀"
	}
	switch {
	case index%17 == 16:
		r.Key = []byte("gone")
	case index%13 == 12:
		r.Value = []byte{0xff, 0xfe, byte(index)}
	default:
		r.Value = []byte(text)
	}
	if r.Key == nil && index%5 != 0 {
		r.Key = []byte("k" + strconv.Itoa(index%7))
	}
	if index%3 == 0 {
		header := func(name, value string) {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
		header("n", strconv.Itoa(index))
		header("src", topic)
		if index%6 == 0 {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "nil"})
			header("n", "again")
		}
	}
	return r
}

func payload(data []byte) any {
	if data == nil {
		return nil
	}
	if utf8.Valid(data) {
		return string(data)
	}
	return map[string]string{"base64": base64.StdEncoding.EncodeToString(data)}
}

// [topic, partition, offset, time, key, value, headers]
func row(r *kgo.Record, offset any) []any {
	headers := []any{}
	for _, h := range r.Headers {
		headers = append(headers, []any{h.Key, payload(h.Value)})
	}
	return []any{
		r.Topic, r.Partition, offset, r.Timestamp.UnixMilli(), payload(r.Key), payload(r.Value), headers,
	}
}
