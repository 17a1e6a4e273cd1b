// Package conformance does what bindings/scenarios asks of every binding, with franz-go as the
// client. It is a module of its own, so that the binding has no dependencies.
package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	kafkascope "github.com/kafkascope/kafkascope/bindings/go"
)

// scenario is a file of bindings/scenarios; its README says what the members mean.
type scenario struct {
	Name   string
	Why    string
	Before []string
	Rules  []string
	Steps  []step
	Ends   string
	Start  *struct{ Command, Listen string }
	Fails  []string
}

type step struct {
	Do        string
	Values    []string
	Acks      any
	Delivered *int
	Error     string
	AtLeastMS int64 `json:"at_least_ms"`
	Begin     string
	Which     string
	Topic     string
	Count     *int
	AnyOrder  bool `json:"any_order"`
	Commit    bool
	Rule      string
	Filter    string
	Fails     []string
	Level     kafkascope.Level
	Allow     []string
}

// TestMain tells the example where Kafka is.
func TestMain(m *testing.M) {
	if at := os.Getenv("KAFKASCOPE_BROKER"); at != "" && os.Getenv("KAFKASCOPE_SCENARIO") == "" {
		_ = os.Setenv("KAFKA_BOOTSTRAP", at)
	}
	os.Exit(m.Run())
}

func scenarios(t *testing.T) []scenario {
	t.Helper()
	folder := os.Getenv("KAFKASCOPE_SCENARIOS")
	if folder == "" {
		t.Skip("KAFKASCOPE_SCENARIOS names no folder of scenarios")
	}
	only := os.Getenv("KAFKASCOPE_SCENARIO")
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var found []scenario
	for _, path := range paths {
		if strings.HasSuffix(path, ".schema.json") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var each scenario
		lines := json.NewDecoder(bytes.NewReader(text))
		lines.DisallowUnknownFields() // a member that we do not know is a step that we do not do
		if err := lines.Decode(&each); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if each.Name == only || (only == "" && each.Ends == "") {
			found = append(found, each)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no scenario %q in %s", only, folder)
	}
	return found
}

func TestScenarios(t *testing.T) {
	every := scenarios(t)
	upstreams := map[string]string{"broker": os.Getenv("KAFKASCOPE_BROKER")}
	if slices.ContainsFunc(every, func(s scenario) bool { return slices.Contains(s.Before, "capture") }) {
		// One for all: their topics differ.
		upstreams["capture"] = kafkascope.Serve(t, os.Getenv("KAFKASCOPE_CAPTURE")).Bootstrap()
	}
	for _, each := range every {
		t.Run(each.Name, func(t *testing.T) {
			if each.Start != nil {
				start(t, each)
				passed(t, each.Name, nil)
				return
			}
			for _, before := range each.Before {
				upstream := upstreams[before]
				if upstream == "" {
					continue
				}
				t.Run(before, func(t *testing.T) {
					t.Parallel() // clients wait a lot: for metadata, for answers that come late
					play(t, each, upstream)
					passed(t, each.Name, &before)
				})
			}
		})
	}
}

func passed(t *testing.T, name string, before *string) {
	t.Helper()
	path := os.Getenv("KAFKASCOPE_RESULTS")
	if path == "" {
		return
	}
	line, _ := json.Marshal(map[string]any{"scenario": name, "before": before})
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

// failing is a test that is to fail, within one that is not.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Errorf(format string, values ...any) { f.said += fmt.Sprintf(format, values...) }

func (f *failing) Fatalf(format string, values ...any) {
	f.Errorf(format, values...)
	runtime.Goexit()
}

// fails does what has to fail with all these texts.
func fails(t *testing.T, texts []string, do func(t testing.TB)) {
	t.Helper()
	inner := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(inner)
	}()
	<-done
	if inner.said == "" {
		t.Fatalf("it does not fail with %q", texts)
	}
	for _, each := range texts {
		if !strings.Contains(inner.said, each) {
			t.Fatalf("%q is not in: %s", each, inner.said)
		}
	}
}

// start starts a proxy that has to fail.
func start(t *testing.T, s scenario) {
	t.Helper()
	var options []kafkascope.Option
	switch s.Start.Command {
	case "missing":
		options = append(options, kafkascope.Command(filepath.Join(t.TempDir(), "kafkascope")))
	case "old":
		path := filepath.Join(t.TempDir(), "kafkascope")
		text := "#!/bin/sh\nread line\n" +
			"echo '{\"ok\":true,\"protocol\":1,\"bootstrap\":\"127.0.0.1:1\"}'\ncat\n"
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		options = append(options, kafkascope.Command(path))
	}
	if s.Start.Listen == "taken" {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		options = append(options, kafkascope.Listen(taken.Addr().String()))
	}
	fails(t, s.Fails, func(t testing.TB) { kafkascope.Proxy(t, "127.0.0.1:1", options...) })
}

// stage is where a scenario is played.
type stage struct {
	t     *testing.T
	proxy *kafkascope.RunningProxy
	topic string
	begun map[string]chan string
}

func play(t *testing.T, s scenario, upstream string) {
	topic := fmt.Sprintf("go-%s-%d-%d", s.Name, os.Getpid(), time.Now().UnixNano())
	makeTopic(t, upstream, topic)
	var options []kafkascope.Option
	for _, rule := range s.Rules {
		options = append(options, kafkascope.Fault(rule))
	}
	on := &stage{
		t: t, topic: topic, proxy: kafkascope.Proxy(t, upstream, options...),
		begun: map[string]chan string{},
	}
	for number, each := range s.Steps {
		texts := []*string{&each.Topic, &each.Rule, &each.Filter}
		each.Fails = slices.Clone(each.Fails) // those of the scenario stay
		for number := range each.Fails {
			texts = append(texts, &each.Fails[number])
		}
		for _, text := range texts {
			*text = strings.ReplaceAll(*text, "{topic}", topic)
		}
		if wrong := on.do(each); wrong != "" {
			t.Fatalf("step %d, %s: %s", number+1, each.Do, wrong)
		}
	}
}

// do does a step, and says what is wrong.
func (s *stage) do(each step) string {
	s.t.Helper()
	switch each.Do {
	case "produce":
		work := func() string { return s.produce(each) }
		if each.Begin == "" {
			return work()
		}
		ended := make(chan string, 1)
		s.begun[each.Begin] = ended
		go func() { ended <- work() }()
	case "finish":
		return <-s.begun[each.Which]
	case "running":
		select {
		case wrong := <-s.begun[each.Which]:
			return each.Which + " has ended: " + wrong
		case <-time.After(100 * time.Millisecond):
		}
	case "consume":
		return s.consume(each)
	case "transaction":
		return s.transact(each)
	case "rule":
		s.proxy.Fault(each.Rule)
	case "clear":
		s.proxy.ClearRules()
	case "fired":
		if first := s.proxy.Rules()[0]; first.Fired != *each.Count {
			return fmt.Sprintf("%s fired %d times, not %d", first.Text, first.Fired, *each.Count)
		}
	case "hold":
		s.proxy.Hold(each.Filter)
	case "held":
		if held := s.proxy.AwaitHeld(*each.Count); len(held) != *each.Count {
			return fmt.Sprintf("%d frames are held", len(held))
		}
	case "release":
		s.proxy.Release()
	case "sent":
		var how []kafkascope.Expectation
		if each.Count != nil {
			how = append(how, kafkascope.Times(*each.Count))
		}
		if each.Fails == nil {
			s.proxy.AssertRequest(s.t, each.Filter, how...)
			return ""
		}
		fails(s.t, each.Fails, func(t testing.TB) { s.proxy.AssertRequest(t, each.Filter, how...) })
	case "records":
		var how []kafkascope.Expectation
		if each.Count != nil {
			how = append(how, kafkascope.Times(*each.Count))
		}
		check := func(t testing.TB) { s.proxy.AssertRecords(t, each.Filter, how...) }
		if each.Fails == nil {
			check(s.t)
			return ""
		}
		fails(s.t, each.Fails, check)
	case "findings":
		check := func(t testing.TB) { s.proxy.AssertNoFindings(t, each.Level, each.Allow...) }
		if each.Fails == nil {
			check(s.t)
			return ""
		}
		fails(s.t, each.Fails, check)
	case "kill":
		var status struct{ PID int }
		if err := s.proxy.Ask("status", nil, &status); err != nil {
			return err.Error()
		}
		if err := syscall.Kill(status.PID, syscall.SIGKILL); err != nil {
			return err.Error()
		}
	case "fail":
		s.t.Fatal("it fails, as it should")
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	default:
		return "there is no such step"
	}
	return ""
}

// differs compares values, in any order where that is allowed.
func differs(found, wanted []string, anyOrder bool) string {
	if anyOrder {
		found, wanted = slices.Sorted(slices.Values(found)), slices.Sorted(slices.Values(wanted))
	}
	if slices.Equal(found, wanted) {
		return ""
	}
	return fmt.Sprintf("%q came, not %q", found, wanted)
}
