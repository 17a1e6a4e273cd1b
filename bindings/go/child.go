package kafkascope

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// These limits are for machines that are ten times as slow as ours.
const (
	startTimeout = 90 * time.Second
	endTimeout   = 30 * time.Second
)

const (
	mostLines = 200      // that are kept of stderr
	mostBytes = 64 << 20 // of a line, as docs/control.md says
)

// child is a kafkascope that runs beside the test. It ends when its stdin does: close does that in
// order, the system does it for a test that was killed.
type child struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{} // closed when it is gone and all it wrote has been read

	mutex sync.Mutex
	said  []string // the last lines of stderr
	err   error    // of Wait; valid when ended is closed
}

// start runs kafkascope with these arguments; hear gets each line of its stdout, in order.
func start(command []string, hear func(line []byte), arguments ...string) (*child, error) {
	words := append(append([]string{}, command...), arguments...)
	c := &child{command: exec.Command(words[0], words[1:]...), ended: make(chan struct{})}
	c.command.SysProcAttr = ownGroup // ctrl+c is for the test, whose end ends it in order
	var pipes [2]io.ReadCloser
	var errs [3]error
	c.stdin, errs[0] = c.command.StdinPipe()
	pipes[0], errs[1] = c.command.StdoutPipe()
	pipes[1], errs[2] = c.command.StderrPipe()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("kafkascope cannot be started: %w", err)
	}
	var readers sync.WaitGroup
	for place, to := range []func([]byte){hear, c.keep} {
		readers.Add(1)
		go func(from io.Reader, to func([]byte)) {
			defer readers.Done()
			forEachLine(from, to)
		}(pipes[place], to)
	}
	go func() {
		readers.Wait() // Wait closes the pipes
		c.err = c.command.Wait()
		close(c.ended)
	}()
	return c, nil
}

func forEachLine(from io.Reader, do func([]byte)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, mostBytes)
	for lines.Scan() {
		do(append([]byte(nil), lines.Bytes()...))
	}
	_, _ = io.Copy(io.Discard, from) // after a line that is too long: it shall not wait for us
}

func (c *child) keep(line []byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.said) == mostLines {
		c.said = c.said[1:]
	}
	c.said = append(c.said, strings.TrimRight(string(line), "\r"))
}

// remarks gives the last lines of its stderr.
func (c *child) remarks() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return strings.Join(c.said, "\n")
}

// gone says in a sentence how it ended and what it said last.
func (c *child) gone(what string) error {
	if !c.ends(endTimeout) {
		return fmt.Errorf("%s: it closed its output and runs on", what)
	}
	how := "exit status 0"
	if c.err != nil {
		how = c.err.Error()
	}
	said := strings.TrimSpace(c.remarks())
	last := strings.TrimPrefix(said[strings.LastIndexByte(said, '\n')+1:], "kafkascope: ")
	switch {
	case last == "":
		return fmt.Errorf("%s: %s", what, how)
	case strings.Contains(last, "No such option") || strings.Contains(last, "there is no command"):
		return fmt.Errorf("%s: it is too old for this module, update kafkascope: %s (%s)", what, last, how)
	default:
		return fmt.Errorf("%s: %s (%s)", what, last, how)
	}
}

// ends tells whether it ends in time.
func (c *child) ends(limit time.Duration) bool {
	select {
	case <-c.ended:
		return true
	default:
	}
	select {
	case <-c.ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// close ends it, in order if possible, and returns when it is gone.
func (c *child) close() error {
	_ = c.stdin.Close()
	for _, signal := range []os.Signal{gently, os.Kill} {
		if c.ends(endTimeout) {
			return nil
		}
		_ = c.command.Process.Signal(signal)
	}
	if c.ends(endTimeout) {
		return nil
	}
	return errors.New("kafkascope does not end, though it was killed")
}
