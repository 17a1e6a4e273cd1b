package kafkascope

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// ServedCapture is a capture that answers clients as a broker does.
type ServedCapture struct {
	bootstrap string
	control   *control
}

// Serve makes a capture answer as a broker, until the test ends.
func Serve(t testing.TB, path string, options ...Option) *ServedCapture {
	t.Helper()
	s := chosen(options)
	command, err := locate(s.command)
	if err != nil {
		t.Fatalf("kafkascope: %v", err)
	}
	words := append([]string{"serve", path, "--listen", s.listen, "--control", "-"}, s.arguments...)
	control, told, err := open(command, append(words, s.schemas...)...)
	if err != nil {
		t.Fatalf("kafkascope: %v", err)
	}
	served := &ServedCapture{bootstrap: told.Bootstrap, control: control}
	t.Cleanup(func() {
		t.Helper()
		if err := served.Stop(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return served
}

// Bootstrap is the address for clients.
func (s *ServedCapture) Bootstrap() string { return s.bootstrap }

// Stderr gives its last lines: unanswered requests, wrong passwords, clients that connected.
func (s *ServedCapture) Stderr() string { return s.control.child.remarks() }

// AssertStderr fails the test unless a text is in its stderr, now or within seconds.
func (s *ServedCapture) AssertStderr(t testing.TB, text string) {
	t.Helper()
	for end := time.Now().Add(remarkTimeout); !strings.Contains(s.Stderr(), text); {
		if time.Now().After(end) {
			t.Fatalf("%q is not in its stderr:\n%s", text, s.Stderr())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Said is Stderr.
//
// Deprecated: use Stderr.
func (s *ServedCapture) Said() string { return s.Stderr() }

// AssertSaid is AssertStderr.
//
// Deprecated: use AssertStderr.
func (s *ServedCapture) AssertSaid(t testing.TB, text string) {
	t.Helper()
	s.AssertStderr(t, text)
}

// Stop ends it before the test does.
func (s *ServedCapture) Stop() error {
	if err := s.control.close(); err != nil {
		return fmt.Errorf("kafkascope: %w", err)
	}
	return nil
}
