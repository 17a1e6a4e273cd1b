package kafkascope

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Exchange is a request with its answer, as exchange/1 of docs/json.md tells it. What is not seen,
// or carried by other APIs only, is nil or empty; JSON has all of it.
type Exchange struct {
	Number           int             `json:"number"`
	Time             time.Time       `json:"time"`
	Client           string          `json:"client_id"`
	Software         string          `json:"software"`
	API              string          `json:"api"`
	Version          int             `json:"api_version"`
	CorrelationID    int32           `json:"correlation_id"`
	ClientAddress    string          `json:"client_address"`
	BrokerAddress    string          `json:"broker_address"`
	State            string          `json:"state"` // answered, open, lost, no-reply, orphan, opaque
	Reason           string          `json:"reason"`
	RequestBytes     int             `json:"request_bytes"`
	ResponseBytes    int             `json:"response_bytes"`
	LatencyNS        *int64          `json:"latency_ns"`
	Errors           []ResponseError `json:"errors"`
	Topics           []string        `json:"topics"`
	Groups           []string        `json:"groups"`
	TransactionalIDs []string        `json:"transactional_ids"`
	Acks             *int            `json:"acks"`
	Codecs           []string        `json:"codecs"`
	Records          *int            `json:"records"`

	JSON json.RawMessage `json:"-"`
}

// ResponseError is an error of a response, and what it is about.
type ResponseError struct {
	Code      int    `json:"code"`
	Name      string `json:"name"`
	Topic     string `json:"topic"`
	Partition *int   `json:"partition"`
	Group     string `json:"group"`
	Message   string `json:"message"`
}

// UnmarshalJSON keeps the line, too.
func (e *Exchange) UnmarshalJSON(line []byte) error {
	type plain Exchange
	e.JSON = slices.Clone(line)
	return json.Unmarshal(line, (*plain)(e))
}

// Latency is from the first byte of the request to the last one of the response; 0 without one.
func (e Exchange) Latency() time.Duration {
	if e.LatencyNS == nil {
		return 0
	}
	return time.Duration(*e.LatencyNS)
}

func (e Exchange) String() string {
	return fmt.Sprintf("%s v%d of %s (number %d)", e.API, e.Version, e.Client, e.Number)
}

// describe adds what it was about.
func (e Exchange) describe() string {
	told := e.String()
	for _, about := range []struct {
		what  string
		names []string
	}{
		{"topics", e.Topics}, {"groups", e.Groups}, {"transactional ids", e.TransactionalIDs},
	} {
		if len(about.names) > 0 {
			told += ", " + about.what + " " + strings.Join(first(about.names), " ")
		}
	}
	if e.Acks != nil {
		told += fmt.Sprintf(", acks %d", *e.Acks)
	}
	if e.Records != nil && *e.Records > 0 {
		told += ", " + plural(*e.Records, "record")
	}
	var names []string
	for _, each := range e.Errors {
		if !slices.Contains(names, each.Name) {
			names = append(names, each.Name)
		}
	}
	if len(names) > 0 {
		told += ": " + strings.Join(names, ", ")
	} else if e.State != "answered" {
		told += ": " + e.State
	}
	return told
}

// Record is a record that was produced or fetched, as record/1 of docs/json.md tells it.
type Record struct {
	Exchange  int        `json:"exchange"`
	Source    string     `json:"source"` // produce, fetch
	Topic     string     `json:"topic"`
	Partition int        `json:"partition"`
	Offset    *int64     `json:"offset"`
	Time      *time.Time `json:"time"`
	Key       Payload    `json:"key"`
	Value     Payload    `json:"value"`
	Headers   []Header   `json:"headers"`
	Codec     string     `json:"codec"`
	Control   bool       `json:"control"`
	Decoded   any        `json:"value_decoded"` // where there is a schema

	JSON json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the line, too.
func (r *Record) UnmarshalJSON(line []byte) error {
	type plain Record
	r.JSON = slices.Clone(line)
	return json.Unmarshal(line, (*plain)(r))
}

// Payload is the bytes of a key or a value; nil for null, and for parts of more than 1 MB that were
// left out.
type Payload []byte

// UnmarshalJSON takes text, base64 in an object, or null.
func (p *Payload) UnmarshalJSON(data []byte) error {
	var coded struct {
		Base64 []byte `json:"base64"`
	}
	var text *string
	if err := json.Unmarshal(data, &text); err == nil {
		if *p = nil; text != nil {
			*p = Payload(*text)
		}
		return nil
	}
	err := json.Unmarshal(data, &coded)
	*p = coded.Base64
	return err
}

// Header is a header of a record.
type Header struct {
	Name  string
	Value Payload
}

// UnmarshalJSON takes a pair.
func (h *Header) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[2]any{&h.Name, &h.Value})
}

// Level is how bad a finding is.
type Level string

// The levels, the worst first.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Note    Level = "note"
	Chat    Level = "chat"
)

var levels = []Level{Error, Warning, Note, Chat}

func rank(level Level) (int, error) {
	place := slices.Index(levels, level)
	if place < 0 {
		return 0, fmt.Errorf("%q is none of the levels %v", level, levels)
	}
	return place, nil
}

// Finding is something odd in a capture, as finding/1 of docs/json.md tells it.
type Finding struct {
	ID       string   `json:"id"`
	Key      string   `json:"key"`
	Severity Level    `json:"severity"`
	Name     string   `json:"name"`
	Text     string   `json:"text"`
	Advice   string   `json:"advice"`
	Count    int      `json:"count"`
	Filter   string   `json:"filter"`
	Number   *int     `json:"number"`
	Entities []string `json:"entities"`
	Because  []string `json:"because"` // ids of the findings that explain it

	JSON json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the line, too.
func (f *Finding) UnmarshalJSON(line []byte) error {
	type plain Finding
	f.JSON = slices.Clone(line)
	return json.Unmarshal(line, (*plain)(f))
}

func (f Finding) String() string {
	told := fmt.Sprintf("%s %s: %s", f.Severity, f.Name, f.Text)
	if f.Filter != "" {
		told += "\n    ls -Y '" + f.Filter + "'"
	}
	return told
}
