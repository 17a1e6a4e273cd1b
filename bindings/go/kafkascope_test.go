package kafkascope

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// sample is a capture with traffic of librdkafka.
const sample = "../../captures/samples/librdkafka.pcap"

// needed skips where there is no kafkascope; whoever sets KAFKASCOPE wants no skips.
func needed(t *testing.T) {
	t.Helper()
	if _, err := locate(nil); err != nil && os.Getenv("KAFKASCOPE") == "" {
		t.Skip(err)
	}
}

// watched is a test that records how it fails.
type watched struct {
	testing.TB
	name string

	mutex    sync.Mutex
	failed   bool
	said     []string
	cleanups []func()
}

func (w *watched) Helper()          {}
func (w *watched) Name() string     { return w.name }
func (w *watched) Failed() bool     { return w.failed }
func (w *watched) text() string     { return strings.Join(w.said, "\n") }
func (w *watched) Cleanup(f func()) { w.cleanups = append(w.cleanups, f) }
func (w *watched) Logf(format string, values ...any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.said = append(w.said, fmt.Sprintf(format, values...))
}

func (w *watched) Errorf(format string, values ...any) {
	w.Logf(format, values...)
	w.failed = true
}

func (w *watched) Fatalf(format string, values ...any) {
	w.Errorf(format, values...)
	runtime.Goexit()
}

// watch runs a test and gives what became of it, after its cleanups.
func watch(name string, test func(t testing.TB)) *watched {
	w := &watched{name: name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for place := len(w.cleanups) - 1; place >= 0; place-- {
				w.cleanups[place]()
			}
		}()
		test(w)
	}()
	<-done
	return w
}

// connect opens a connection for raw requests.
func connect(t testing.TB, bootstrap string) net.Conn {
	t.Helper()
	link, err := net.DialTimeout("tcp", bootstrap, time.Minute)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = link.Close() })
	_ = link.SetDeadline(time.Now().Add(time.Minute))
	return link
}

// send writes an ApiVersions request, version 0.
func send(t testing.TB, link net.Conn, client string) {
	t.Helper()
	body := append([]byte{0, 18, 0, 0, 0, 0, 0, 7, 0, byte(len(client))}, client...)
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	if _, err := link.Write(frame); err != nil {
		t.Fatalf("%v", err)
	}
}

// receive reads an answer.
func receive(t testing.TB, link net.Conn) []byte {
	t.Helper()
	size := make([]byte, 4)
	if _, err := io.ReadFull(link, size); err != nil {
		t.Fatalf("%v", err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(size))
	if _, err := io.ReadFull(link, answer); err != nil {
		t.Fatalf("%v", err)
	}
	return answer
}

func apiVersions(t testing.TB, bootstrap, client string) []byte {
	t.Helper()
	link := connect(t, bootstrap)
	send(t, link, client)
	return receive(t, link)
}

// script makes a program that stands for another kafkascope.
func script(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kafkascope")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatalf("%v", err)
	}
	return path
}

func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// oneSentence holds a failure to what a reader wants.
func oneSentence(t testing.TB, w *watched) {
	t.Helper()
	if !w.failed || len(w.said) != 1 || strings.Contains(w.said[0], "\n") {
		t.Errorf("this is not one sentence:\n%s", w.text())
	}
}

// until waits for what is to become true.
func eventually(t testing.TB, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !true(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s", what)
		}
	}
}

// alive tells whether a process runs.
func alive(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return exec.Command("kill", "-0", fmt.Sprint(pid)).Run() == nil
	}
	_, rest, _ := strings.Cut(string(state), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestTheTrafficOfATestIsAsserted(t *testing.T) {
	needed(t)
	p := Proxy(t, Serve(t, sample).Bootstrap())
	if answer := apiVersions(t, p.Bootstrap(), "raw"); string(answer[:4]) != "\x00\x00\x00\x07" {
		t.Fatalf("this is no answer: %x", answer)
	}
	found := p.AssertRequest(t, `api == ApiVersions and client == "raw"`, Times(1))
	if e := found[0]; e.Version != 0 || e.State != "answered" || e.Latency() <= 0 || len(e.JSON) == 0 {
		t.Errorf("%+v", e)
	}
	p.RefuteRequest(t, "api == Produce")
	p.AssertNoErrors(t)
	p.AssertNoFindings(t, Warning)
	p.AssertVersions(t, "ApiVersions", 0, 0)
	p.AssertRequest(t, "", Times(1))
	p.RefuteRequest(t, "", Since(time.Now()))
	if all := p.Exchanges(""); len(all) != 1 {
		t.Errorf("%v", all)
	}
}

func TestAFailureSaysWhatWasSentInstead(t *testing.T) {
	needed(t)
	p := Proxy(t, Serve(t, sample).Bootstrap())
	apiVersions(t, p.Bootstrap(), "raw")
	for _, each := range []struct {
		said []string
		test func(t testing.TB)
	}{
		{
			[]string{`no request with api == Fetch; there were 1 ApiVersions v0`},
			func(t testing.TB) { p.AssertRequest(t, "api == Fetch") },
		},
		{
			[]string{
				"no request with api == ApiVersions and client == other; there were 1 ApiVersions v0",
				"\n  ApiVersions v0 of raw (number 1) came nearest: client is raw",
			},
			func(t testing.TB) { p.AssertRequest(t, "api == ApiVersions and client == other") },
		},
		{
			[]string{"1 request, not 2, with api == ApiVersions; there were 1 ApiVersions v0\n  Api"},
			func(t testing.TB) { p.AssertRequest(t, "api == ApiVersions", Times(2)) },
		},
		{
			[]string{"1 request, not 0, with api == ApiVersions; there were 1 ApiVersions v0"},
			func(t testing.TB) { p.RefuteRequest(t, "api == ApiVersions") },
		},
		{
			[]string{"no record with topic == x; there were none at all"},
			func(t testing.TB) { p.AssertRecords(t, "topic == x") },
		},
		{
			[]string{"Produce was not used"},
			func(t testing.TB) { p.AssertVersions(t, "Produce", 9, 13) },
		},
		{
			[]string{"ApiVersions was used in version 0"},
			func(t testing.TB) { p.AssertVersions(t, "ApiVersions", 1, 3) },
		},
		{
			[]string{`"grave" is none of the levels [error warning note chat]`},
			func(t testing.TB) { p.AssertNoFindings(t, "grave") },
		},
		{
			[]string{"filter: after"},
			func(t testing.TB) { p.AssertRequest(t, "api ==") },
		},
		{
			[]string{"fault: ", "dorp"},
			func(t testing.TB) { p.For(t).Fault("api == Fetch -> dorp") },
		},
		{
			[]string{"release: no frame 77 is held"},
			func(t testing.TB) { (&HeldFrame{Number: 77, proxy: p.For(t)}).Release() },
		},
	} {
		w := watch("TestFails", each.test)
		if !w.failed {
			t.Errorf("it passes: %s", each.said)
		}
		contains(t, w.text(), each.said...)
	}
}

func TestAnAssertionWaitsForWhatIsStillToCome(t *testing.T) {
	needed(t)
	p := Proxy(t, Serve(t, sample).Bootstrap())
	link := connect(t, p.Bootstrap())
	go func() {
		time.Sleep(300 * time.Millisecond)
		send(t, link, "late")
	}()
	p.AssertRequest(t, "client == late", Within(time.Minute))
}

func TestFramesAreHeldEditedDroppedReleased(t *testing.T) {
	needed(t)
	p := Proxy(t, Serve(t, sample).Bootstrap(), Hold("api == ApiVersions"))
	link := connect(t, p.Bootstrap())
	send(t, link, "held")
	held := p.AwaitHeld(1)[0]
	if held.API != "ApiVersions" || held.Kind != "request" || held.Client != "held" {
		t.Errorf("%+v", held)
	}
	p.EndHold()
	held.Release()
	receive(t, link)

	p.Hold("api == ApiVersions and response.error_code >= 0")
	send(t, link, "held")
	held = p.AwaitHeld(1)[0]
	body := held.Body()
	if fmt.Sprint(body["error_code"]) != "0" || held.Kind != "response" {
		t.Errorf("%+v %v", held, body)
	}
	body["error_code"] = 35
	held.Edit(body)
	if answer := receive(t, link); string(answer[4:6]) != "\x00\x23" {
		t.Errorf("%x", answer[:8])
	}

	send(t, link, "dropped")
	p.AwaitHeld(1)[0].Drop()
	if left := p.Held(); len(left) != 0 {
		t.Errorf("%v", left)
	}
	send(t, link, "released")
	p.AwaitHeld(1)
	p.EndHold()
	p.Release()
	receive(t, link)
	p.AssertRequest(t, "api == ApiVersions", Times(4))
}

func TestRulesComeFireAndGo(t *testing.T) {
	needed(t)
	p := Proxy(t, Serve(t, sample).Bootstrap(), Fault("api == ApiVersions -> delay 1ms"))
	once := p.Fault("api == ApiVersions -> stamp UNSUPPORTED_VERSION once")
	answers := []byte{}
	for range 2 {
		answers = append(answers, apiVersions(t, p.Bootstrap(), "raw")[5])
	}
	if string(answers) != "\x23\x00" || p.Fired(once) != 1 || len(p.Rules()) != 2 {
		t.Errorf("%x %+v", answers, p.Rules())
	}
	p.RemoveRule(once)
	if rules := p.Rules(); len(rules) != 1 || rules[0].Fired != 2 || rules[0].Action != "delay" {
		t.Errorf("%+v", rules)
	}
	if p.ClearRules(); len(p.Rules()) != 0 {
		t.Errorf("%+v", p.Rules())
	}
	w := watch("TestErrors", func(t testing.TB) { p.AssertNoErrors(t) })
	contains(t, w.text(), "responses with errors:\nApiVersions v0 of raw (number 1): UNSUPPORTED_VERSION")
	p.AssertNoErrors(t, "UNSUPPORTED_VERSION")
}

func TestACaptureIsReadAndItsRecordsAreTyped(t *testing.T) {
	needed(t)
	c := Open(t, sample)
	records := c.AssertRecords(t, "topic == librdkafka.none and api == Fetch")
	first := records[0]
	if first.Source != "fetch" || first.Offset == nil || len(first.Value) == 0 || first.Time == nil {
		t.Errorf("%+v", first)
	}
	var binary, null bool
	var headers []Header
	for _, each := range records {
		headers = append(headers, each.Headers...)
		binary = binary || strings.HasPrefix(string(each.Value), "\xff\xfe")
		null = null || each.Value == nil
	}
	if !binary || !null || len(headers) == 0 || headers[0].Name == "" || len(headers[0].Value) == 0 {
		t.Errorf("binary %v, null %v, headers %v", binary, null, headers)
	}
	c.AssertRecords(t, "topic == nothing", Times(0))
	if found := c.Findings(Chat); len(found) == 0 || found[0].Text == "" || found[0].Severity == "" {
		t.Errorf("%+v", found)
	}
	w := watch("TestFindings", func(t testing.TB) { c.AssertNoFindings(t, Chat) })
	contains(t, w.text(), "of level chat or worse:\n")
	w = watch("TestNone", func(t testing.TB) { Open(t, "nothing.pcap").Exchanges("") })
	contains(t, w.text(), "nothing.pcap: no such file or folder")
}

func TestAServedCaptureTellsWhatItCouldNotAnswer(t *testing.T) {
	needed(t)
	served := Serve(t, sample)
	apiVersions(t, served.Bootstrap(), "asks")
	served.AssertStderr(t, `client "asks" connected`)
	if err := served.Stop(); err != nil {
		t.Error(err)
	}
	contains(t, served.Stderr(), "1 requests answered")
}

func TestTestsShareAProxy(t *testing.T) {
	needed(t)
	shared, err := Start(Serve(t, sample).Bootstrap())
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Discard()
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			p := shared.For(t)
			apiVersions(t, p.Bootstrap(), name)
			p.AssertRequest(t, "client == "+name, Times(1))
		})
	}
	if err := shared.Stop(); err != nil {
		t.Error(err)
	}
	if err := shared.Stop(); err != nil {
		t.Error(err)
	}
	if all := shared.Exchanges(""); len(all) != 2 {
		t.Errorf("%v", all)
	}
	defer func() { contains(t, fmt.Sprint(recover()), "rules: the proxy has been stopped") }()
	shared.Rules()
}
