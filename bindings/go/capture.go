package kafkascope

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// readTimeout is for reading a capture once.
const readTimeout = 5 * time.Minute

// damaged is the exit code of kafkascope for a capture that ends in the middle.
const damaged = 4

// mostTold is how many lines of a list a failure shows.
const mostTold = 20

// Capture is traffic in a file, and what has to be true of it. Wireshark opens the file, too.
type Capture struct {
	path    string
	test    testing.TB
	command []string
	schemas []string
	proxy   *shared // that writes it; nil where nobody does any more
}

// Open gives the traffic of a capture that is there already.
func Open(t testing.TB, path string, options ...Option) *Capture {
	t.Helper()
	s := chosen(options)
	command, err := locate(s.command)
	if err != nil {
		t.Fatalf("kafkascope: %v", err)
	}
	return &Capture{path: path, test: t, command: command, schemas: s.schemas}
}

// Path is where the capture is.
func (c *Capture) Path() string { return c.path }

// Exchanges gives the requests that meet a filter, with their answers; an empty filter: all.
func (c *Capture) Exchanges(filter string) []Exchange {
	c.test.Helper()
	told, err := c.expect(filter, expectation{count: -1}, mostExchanges)
	if err != nil {
		c.test.Fatalf("kafkascope: %v", err)
	}
	return told.Exchanges
}

// Records gives the records, produced or fetched, that meet a filter.
func (c *Capture) Records(filter string) []Record {
	c.test.Helper()
	told, err := c.records(filter, expectation{count: -1})
	if err != nil {
		c.test.Fatalf("kafkascope: %v", err)
	}
	return told.Records
}

// Findings gives what kafkascope check found, of this level or worse.
func (c *Capture) Findings(level Level) []Finding {
	c.test.Helper()
	found, err := c.findings(level)
	if err != nil {
		c.test.Fatalf("kafkascope: %v", err)
	}
	return found
}

func (c *Capture) findings(level Level) ([]Finding, error) {
	worst, err := rank(level)
	if err != nil {
		return nil, err
	}
	told, asked, err := c.ask("findings", "", expectation{count: -1})
	if asked {
		return slices.DeleteFunc(told.Findings, func(each Finding) bool {
			return slices.Index(levels, each.Severity) > worst
		}), err
	}
	found, err := read[Finding](c, "check", "", "--fail-on", "never")
	return slices.DeleteFunc(found, func(each Finding) bool {
		return slices.Index(levels, each.Severity) > worst
	}), err
}

// AssertRequest fails the test unless a request that meets the filter was sent, and says what was
// sent instead. Expectations say how many there are, and how long to wait for them. It gives the
// exchanges.
func (c *Capture) AssertRequest(t testing.TB, filter string, how ...Expectation) []Exchange {
	t.Helper()
	wanted := expected(how)
	told, err := c.expect(filter, wanted, mostExchanges)
	if err != nil {
		t.Fatalf("kafkascope: %v", err)
	}
	if told.Met {
		return told.Exchanges
	}
	// The channel tells what came nearest; these are those that are too many, or too few.
	t.Fatalf("%s%s", told.Text, described(told.Exchanges))
	return nil
}

// RefuteRequest fails the test when a request that meets the filter was sent.
func (c *Capture) RefuteRequest(t testing.TB, filter string, how ...Expectation) {
	t.Helper()
	c.AssertRequest(t, filter, append([]Expectation{Times(0)}, how...)...)
}

// verdict is what the control channel says of an expectation.
type verdict struct {
	Met       bool       `json:"met"`
	Found     int        `json:"found"`
	Text      string     `json:"text"`
	Exchanges []Exchange `json:"exchanges"`
	Records   []Record   `json:"records"`
	Findings  []Finding  `json:"findings"`
}

// ask asks the proxy, unless there is none (any more), or more matches than an answer holds.
func (c *Capture) ask(of, filter string, wanted expectation) (verdict, bool, error) {
	var told verdict
	if c.proxy == nil || c.proxy.over() {
		return told, false, nil
	}
	members := wanted.members(filter, mostExchanges)
	members["of"] = of
	err := c.proxy.control.ask("expect", members, &told, answerTimeout+wanted.within)
	listed := len(told.Exchanges) + len(told.Records) + len(told.Findings)
	return told, err != nil || listed == told.Found, err
}

// expect asks the proxy; where there is none (any more), the file.
func (c *Capture) expect(filter string, wanted expectation, limit int) (verdict, error) {
	var told verdict
	if c.proxy != nil && !c.proxy.over() {
		err := c.proxy.control.ask("expect", wanted.members(filter, limit), &told,
			answerTimeout+wanted.within)
		return told, err
	}
	found, err := c.listed(filter, wanted.since)
	if err != nil {
		return told, err
	}
	told = verdict{Met: wanted.met(len(found)), Found: len(found), Exchanges: found}
	if !told.Met {
		seen, err := c.listed("", wanted.since)
		if err != nil {
			return told, err
		}
		told.Text = wanted.missed(len(found), "request", filter) + "; there were " + census(seen)
	}
	return told, nil
}

func (c *Capture) listed(filter string, since time.Time) ([]Exchange, error) {
	found, err := read[Exchange](c, "ls", filter)
	return slices.DeleteFunc(found, func(e Exchange) bool { return e.Time.Before(since) }), err
}

// AssertRecords fails the test unless records that meet the filter were produced or fetched. It
// gives them.
func (c *Capture) AssertRecords(t testing.TB, filter string, how ...Expectation) []Record {
	t.Helper()
	wanted := expected(how)
	told, err := c.records(filter, wanted)
	if err != nil {
		t.Fatalf("kafkascope: %v", err)
	}
	if !told.Met {
		t.Fatalf("%s", told.Text)
	}
	return told.Records
}

func (c *Capture) records(filter string, wanted expectation) (verdict, error) {
	told, asked, err := c.ask("records", filter, wanted)
	if asked {
		return told, err
	}
	found, err := read[Record](c, "records", filter)
	if err != nil {
		return told, err
	}
	told = verdict{Met: wanted.met(len(found)), Found: len(found), Records: found}
	if !told.Met {
		seen, err := read[Record](c, "records", "")
		if err != nil {
			return told, err
		}
		told.Text = wanted.missed(len(found), "record", filter) + "; there were " + topics(seen)
	}
	return told, nil
}

// AssertNoErrors fails the test when an answer had an error, except those that are allowed.
func (c *Capture) AssertNoErrors(t testing.TB, allowed ...string) {
	t.Helper()
	told, err := c.expect("error != 0", expectation{count: -1}, mostExchanges)
	if err != nil {
		t.Fatalf("kafkascope: %v", err)
	}
	var bad []string
	for _, each := range told.Exchanges {
		var names []string
		for _, error := range each.Errors {
			if !slices.Contains(allowed, error.Name) && !slices.Contains(names, error.Name) {
				names = append(names, error.Name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			bad = append(bad, each.String()+": "+strings.Join(names, ", "))
		}
	}
	if len(bad) > 0 {
		t.Fatalf("responses with errors:\n%s", strings.Join(first(bad), "\n"))
	}
}

// AssertNoFindings fails the test when kafkascope check finds something of this level or worse,
// except the rules that are allowed.
func (c *Capture) AssertNoFindings(t testing.TB, level Level, allowed ...string) {
	t.Helper()
	every, err := c.findings(Chat)
	worst, err2 := rank(level)
	if err := errors.Join(err, err2); err != nil {
		t.Fatalf("kafkascope: %v", err)
	}
	texts := map[string]string{} // a cause comes before what followed from it
	var bad []string
	for _, each := range every {
		texts[each.ID] = each.Text
		if slices.Index(levels, each.Severity) > worst || slices.Contains(allowed, each.Name) {
			continue
		}
		bad = append(bad, each.String())
		for _, cause := range each.Because {
			if text := texts[cause]; text != "" {
				bad[len(bad)-1] += "\n    because: " + text
			}
		}
	}
	if len(bad) > 0 {
		t.Fatalf("%s of level %s or worse:\n%s", plural(len(bad), "finding"), level,
			strings.Join(first(bad), "\n"))
	}
}

// AssertVersions fails the test unless the API was used, and only in versions from low to high.
func (c *Capture) AssertVersions(t testing.TB, api string, low, high int) {
	t.Helper()
	told, err := c.expect("api == "+api, expectation{count: -1}, mostExchanges)
	if err != nil {
		t.Fatalf("kafkascope: %v", err)
	}
	if told.Found == 0 {
		t.Fatalf("%s was not used", api)
	}
	var others []int
	for _, each := range told.Exchanges {
		if v := each.Version; (v < low || v > high) && !slices.Contains(others, v) {
			others = append(others, v)
		}
	}
	if slices.Sort(others); len(others) > 0 {
		t.Fatalf("%s was used in version %s", api, strings.Trim(fmt.Sprint(others), "[]"))
	}
}

// read runs a command of kafkascope over the capture; each of its lines is one T.
func read[T any](c *Capture, command, filter string, more ...string) ([]T, error) {
	if c.proxy != nil {
		if err := c.proxy.flush(); err != nil {
			return nil, err
		}
		if _, err := os.Stat(c.path); errors.Is(err, os.ErrNotExist) {
			return nil, nil // nothing has passed
		}
	}
	words := append(slices.Clone(c.command), command, c.path, "--json", "--quiet")
	if filter != "" {
		words = append(words, "-Y", filter)
	}
	words = append(append(words, more...), c.schemas...)
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	run := exec.CommandContext(ctx, words[0], words[1:]...)
	var out, said bytes.Buffer
	run.Stdout, run.Stderr = &out, &said
	err := run.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == damaged {
		err = nil // what is whole was printed
	}
	if err != nil {
		return nil, fmt.Errorf("%s (%w):\n%s", strings.Join(words, " "), err,
			strings.TrimSpace(said.String()))
	}
	var found []T
	for lines := json.NewDecoder(&out); lines.More(); {
		var each T
		if err := lines.Decode(&each); err != nil {
			return nil, fmt.Errorf("%s: a line cannot be read: %w", strings.Join(words, " "), err)
		}
		found = append(found, each)
	}
	return found, nil
}
