package kafkascope

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// protocol is the one of docs/control.md that this module was written for; higher ones keep it.
const protocol = 3

const answerTimeout = 60 * time.Second

// control asks a kafkascope over its stdin and stdout: a line goes in, a line comes back.
type control struct {
	child *child

	asking sync.Mutex // one line after the other
	closed atomic.Bool

	waiting sync.Mutex
	queue   []chan []byte // who waits, in the order in which answers come
	strange string        // the first line that nobody waited for
	told    bool          // that it has ended
}

type status struct {
	Protocol  int    `json:"protocol"`
	Bootstrap string `json:"bootstrap"`
}

// open starts kafkascope with these arguments and asks for its status, which comes when clients may
// connect.
func open(command []string, arguments ...string) (*control, status, error) {
	c := &control{}
	var told status
	var err error
	if c.child, err = start(command, c.hear, arguments...); err != nil {
		return nil, told, err
	}
	err = c.ask("status", nil, &told, startTimeout)
	if err == nil && told.Protocol < protocol {
		err = fmt.Errorf("this kafkascope speaks protocol %d of its control channel, and %d is needed:"+
			" update kafkascope", told.Protocol, protocol)
	}
	if err != nil {
		_ = c.child.close()
		return nil, told, err
	}
	return c, told, nil
}

// hear gives an answer to whoever has waited longest. Events are nobody's: we do not watch.
func (c *control) hear(line []byte) {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	var head struct {
		OK *bool `json:"ok"`
	}
	switch err := json.Unmarshal(line, &head); {
	case len(c.queue) > 0 && err == nil && head.OK != nil:
		c.queue[0] <- line
		c.queue = c.queue[1:]
	case err != nil && c.strange == "":
		c.strange = string(line[:min(len(line), 100)])
	}
}

// ask sends a request and reads its answer into a struct, or nowhere.
func (c *control) ask(do string, members map[string]any, into any, limit time.Duration) error {
	request := maps.Clone(members)
	if request == nil {
		request = map[string]any{}
	}
	request["do"] = do
	line, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("%s: %w", do, err)
	}
	answer := make(chan []byte, 1) // a late answer waits for nobody
	c.asking.Lock()
	c.waiting.Lock()
	c.queue = append(c.queue, answer)
	c.waiting.Unlock()
	// Where it fails, kafkascope has ended or is about to: we hear of that below.
	_, _ = c.child.stdin.Write(append(line, '\n'))
	c.asking.Unlock()
	select {
	case line = <-answer:
	case <-c.child.ended:
		select {
		case line = <-answer: // it was its last word
		default:
			return c.silent(do)
		}
	case <-time.After(limit):
		return fmt.Errorf("%s: kafkascope has not answered for %s%s", do, limit, c.odd())
	}
	var outcome struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(line, &outcome); err != nil {
		return fmt.Errorf("%s: kafkascope's answer cannot be read: %w", do, err)
	}
	if !outcome.OK {
		return fmt.Errorf("%s: %s", do, outcome.Error)
	}
	if into != nil {
		if err := json.Unmarshal(line, into); err != nil {
			return fmt.Errorf("%s: kafkascope's answer cannot be read: %w", do, err)
		}
	}
	return nil
}

// silent says why no answer comes from a kafkascope that has ended.
func (c *control) silent(do string) error {
	if do == "status" {
		return c.child.gone("kafkascope did not start" + c.odd())
	}
	c.waiting.Lock()
	c.told = true
	c.waiting.Unlock()
	return fmt.Errorf("%s: %w", do, c.child.gone("kafkascope has ended"+c.odd()))
}

// close ends it, and says when it had ended before and nobody was told.
func (c *control) close() error {
	if c.closed.Swap(true) {
		return nil
	}
	if c.child.ends(0) {
		c.waiting.Lock()
		defer c.waiting.Unlock()
		if c.told {
			return nil
		}
		return c.child.gone("kafkascope has ended before the test")
	}
	return c.child.close()
}

func (c *control) odd() string {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	if c.strange == "" {
		return ""
	}
	return fmt.Sprintf(", and said %q, which is no answer of the control channel", c.strange)
}
