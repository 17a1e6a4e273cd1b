package kafkascope

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// remarkTimeout is for what a child is about to say, or a client about to do.
const remarkTimeout = 30 * time.Second

// RunningProxy is a proxy before a broker. Clients connect to Bootstrap; all they say is captured.
type RunningProxy struct {
	Capture
	shared *shared
}

// shared is what a proxy is for all tests that use it.
type shared struct {
	control   *control
	bootstrap string
	folder    string // of ours, for the capture
	keep      string
}

// Proxy starts a proxy before a broker (HOST:PORT, or several with commas). It ends with the test;
// when the test has failed then, its capture is kept and the log says where.
func Proxy(t testing.TB, upstream string, options ...Option) *RunningProxy {
	t.Helper()
	p, err := Start(upstream, options...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	p.test = t
	t.Cleanup(func() {
		t.Helper()
		if err := p.Stop(); err != nil {
			t.Errorf("%v", err)
		}
		if !t.Failed() {
			p.Discard()
		} else if path, err := p.shared.kept(t, p.path); err != nil {
			t.Logf("kafkascope: the traffic of this test: %s (%v)", p.path, err)
		} else if path != "" {
			t.Logf("kafkascope: the traffic of this test: %s", path)
		}
	})
	return p
}

// Start starts a proxy that several tests share: in TestMain, with Stop and Discard at its end. Each
// test uses it by For.
func Start(upstream string, options ...Option) (*RunningProxy, error) {
	s := chosen(options)
	command, err := locate(s.command)
	if err != nil {
		return nil, fmt.Errorf("kafkascope: %w", err)
	}
	folder, err := os.MkdirTemp("", "kafkascope-")
	if err != nil {
		return nil, fmt.Errorf("kafkascope: %w", err)
	}
	path := filepath.Join(folder, "kafka.pcapng")
	words := []string{
		"proxy", "--upstream", upstream, "--listen", s.listen, "--quiet", "--control", "-",
		"--grace", "1s", "--overwrite", "-w", path,
	}
	words = append(append(words, s.arguments...), s.schemas...)
	control, told, err := open(command, words...)
	if err != nil {
		_ = os.RemoveAll(folder)
		return nil, fmt.Errorf("kafkascope: %w", err)
	}
	running := &shared{control: control, bootstrap: told.Bootstrap, folder: folder, keep: s.keep}
	return &RunningProxy{
		Capture: Capture{
			path: path, test: noTest{}, command: command, schemas: s.schemas, proxy: running,
		},
		shared: running,
	}, nil
}

// For gives the same proxy to another test, which fails where it is used wrongly: to a subtest, or
// to a test that shares it with others.
func (p *RunningProxy) For(t testing.TB) *RunningProxy {
	other := *p
	other.test = t
	return &other
}

// noTest is the test of a proxy that none has asked for yet.
type noTest struct{ testing.TB }

func (noTest) Helper() {}

func (noTest) Fatalf(format string, values ...any) {
	panic(fmt.Sprintf(format, values...) + " (a test that shares a proxy uses it by For)")
}

// Bootstrap is the address for clients.
func (p *RunningProxy) Bootstrap() string { return p.shared.bootstrap }

// Ask asks anything that docs/control.md knows, and reads the answer into a struct or a map.
func (p *RunningProxy) Ask(do string, members map[string]any, into any) error {
	if p.shared.over() {
		return fmt.Errorf("%s: the proxy has been stopped", do)
	}
	return p.shared.control.ask(do, members, into, answerTimeout)
}

// ask fails the test where the proxy refuses.
func (p *RunningProxy) ask(do string, members map[string]any, into any) {
	p.test.Helper()
	if err := p.Ask(do, members, into); err != nil {
		p.test.Fatalf("kafkascope: %v", err)
	}
}

// Rule is a fault, and how often it has done what.
type Rule struct {
	Name    string `json:"name"`
	Text    string `json:"rule"`
	Side    string `json:"side"`   // request, response
	Action  string `json:"action"` // delay, error...
	Matched int    `json:"matched"`
	Fired   int    `json:"fired"`
}

// Fault adds a rule: "api == Fetch -> delay 200ms once". Rules that are never of use are refused.
func (p *RunningProxy) Fault(rule string) Rule {
	p.test.Helper()
	var told struct{ Rule Rule }
	p.ask("fault", map[string]any{"rule": rule}, &told)
	return told.Rule
}

// Rules gives all rules, those of holds too.
func (p *RunningProxy) Rules() []Rule {
	p.test.Helper()
	var told struct{ Rules []Rule }
	p.ask("rules", nil, &told)
	return told.Rules
}

// Fired tells how often a rule has done something by now.
func (p *RunningProxy) Fired(rule Rule) int {
	p.test.Helper()
	for _, each := range p.Rules() {
		if each.Name == rule.Name {
			return each.Fired
		}
	}
	return 0
}

// RemoveRule ends a rule.
func (p *RunningProxy) RemoveRule(rule Rule) {
	p.test.Helper()
	p.ask("remove", map[string]any{"name": rule.Name}, nil)
}

// ClearRules ends all rules. What is held stays held.
func (p *RunningProxy) ClearRules() {
	p.test.Helper()
	p.ask("clear", nil, nil)
}

// Hold holds what matches a filter from now on: requests, or responses where the filter names what
// only they have. It replaces the filter before it.
func (p *RunningProxy) Hold(filter string) {
	p.test.Helper()
	p.ask("hold", map[string]any{"filter": filter}, nil)
}

// EndHold holds nothing more. What is held stays held.
func (p *RunningProxy) EndHold() {
	p.test.Helper()
	p.ask("hold", map[string]any{"filter": nil}, nil)
}

// HeldFrame is a request or response that the proxy holds.
type HeldFrame struct {
	Number        int    `json:"number"`
	Kind          string `json:"kind"` // request, response
	API           string `json:"api"`
	Version       int    `json:"version"`
	CorrelationID int32  `json:"correlation_id"`
	Client        string `json:"client_id"`
	Bytes         int    `json:"bytes"`
	Summary       string `json:"summary"`
	Editable      bool   `json:"editable"`

	proxy *RunningProxy
}

// Held gives what is held now, oldest first.
func (p *RunningProxy) Held() []*HeldFrame {
	p.test.Helper()
	var told struct{ Held []*HeldFrame }
	p.ask("held", nil, &told)
	for _, each := range told.Held {
		each.proxy = p
	}
	return told.Held
}

// AwaitHeld gives what is held, as soon as there are so many; the test fails after 30 s.
func (p *RunningProxy) AwaitHeld(count int) []*HeldFrame {
	p.test.Helper()
	for end := time.Now().Add(remarkTimeout); ; {
		held := p.Held()
		if len(held) >= count {
			return held
		}
		if time.Now().After(end) {
			p.test.Fatalf("%s held, not %d", plural(len(held), "frame"), count)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Release lets all that is held go on.
func (p *RunningProxy) Release() {
	p.test.Helper()
	p.ask("release", map[string]any{"number": "all"}, nil)
}

// Release lets the frame go on.
func (h *HeldFrame) Release() {
	h.proxy.test.Helper()
	h.proxy.ask("release", map[string]any{"number": h.Number}, nil)
}

// Drop takes the frame away: it never arrives.
func (h *HeldFrame) Drop() {
	h.proxy.test.Helper()
	h.proxy.ask("drop", map[string]any{"number": h.Number}, nil)
}

// Body gives the frame's message in the form of docs/json.md, numbers as json.Number.
func (h *HeldFrame) Body() map[string]any {
	h.proxy.test.Helper()
	var told struct{ Body exact }
	h.proxy.ask("show", map[string]any{"number": h.Number}, &told)
	return told.Body
}

// Edit lets the frame go on with this body; sizes and checksums are made right.
func (h *HeldFrame) Edit(body map[string]any) {
	h.proxy.test.Helper()
	h.proxy.ask("edit", map[string]any{"number": h.Number, "body": body}, nil)
}

// Stop ends the proxy before the test does; the capture is complete then and can be read on.
func (p *RunningProxy) Stop() error {
	if err := p.shared.control.close(); err != nil {
		return fmt.Errorf("kafkascope: %w", err)
	}
	return nil
}

// Discard removes the capture of a proxy that was stopped.
func (p *RunningProxy) Discard() {
	_ = os.RemoveAll(p.shared.folder)
}

// flush returns when all that has passed is in the file.
func (s *shared) flush() error {
	if s.over() {
		return nil
	}
	return s.control.ask("flush", nil, nil, answerTimeout)
}

func (s *shared) over() bool { return s.control.closed.Load() }

var noName = regexp.MustCompile(`[^\w.-]+`)

// kept puts the capture of a failed test where it stays, and gives its path; none where nothing was
// captured.
func (s *shared) kept(t testing.TB, path string) (string, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", os.RemoveAll(s.folder)
	}
	folder := keepFolder(t, s.keep)
	if folder == "" {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	name := strings.Trim(noName.ReplaceAllString(t.Name(), "-"), "-")
	target, err := os.CreateTemp(folder, name+"-*.pcapng")
	if err != nil {
		return "", err
	}
	defer target.Close()
	data, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer data.Close()
	if _, err := target.ReadFrom(data); err != nil {
		return "", err
	}
	return target.Name(), os.RemoveAll(s.folder)
}
