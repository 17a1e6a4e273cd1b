package kafkascope

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// mostExchanges is how many an answer of the control channel has at most.
const mostExchanges = 10_000

// Expectation says more of what an assertion wants.
type Expectation func(*expectation)

type expectation struct {
	count  int // some: -1
	within time.Duration
	since  time.Time
}

// Times wants exactly so many; 0: none.
func Times(count int) Expectation {
	return func(e *expectation) { e.count = count }
}

// Within waits so long for what is still to come.
func Within(limit time.Duration) Expectation {
	return func(e *expectation) { e.within = limit }
}

// Since looks only at requests that were sent then or later: where tests share a proxy.
func Since(begin time.Time) Expectation {
	return func(e *expectation) { e.since = begin }
}

func expected(how []Expectation) expectation {
	wanted := expectation{count: -1}
	for _, each := range how {
		each(&wanted)
	}
	return wanted
}

// members are those of `expect` on the control channel.
func (e expectation) members(filter string, limit int) map[string]any {
	told := map[string]any{"filter": filter, "limit": limit}
	if e.count >= 0 {
		told["count"] = e.count
	}
	if e.within > 0 {
		told["within"] = e.within.Seconds()
	}
	if !e.since.IsZero() {
		told["since_ns"] = e.since.UnixNano()
	}
	return told
}

func (e expectation) met(count int) bool {
	return count == e.count || (e.count < 0 && count > 0)
}

// missed says what is wrong with a count, as the control channel does.
func (e expectation) missed(count int, what, filter string) string {
	told := "no " + what
	if count > 0 {
		told = fmt.Sprintf("%s, not %d,", plural(count, what), e.count)
	}
	if filter == "" {
		return told
	}
	return told + " with " + filter
}

// census counts what was sent, by API and version.
func census(seen []Exchange) string {
	return counted(seen, func(each Exchange) string {
		return fmt.Sprintf("%s v%d", each.API, each.Version)
	}, "")
}

func topics(seen []Record) string {
	return counted(seen, func(each Record) string {
		return fmt.Sprintf("%s (%s)", each.Topic, each.Source)
	}, "of ")
}

func counted[T any](seen []T, name func(T) string, between string) string {
	counts := map[string]int{}
	for _, each := range seen {
		counts[name(each)]++
	}
	var told []string
	for name, count := range counts {
		told = append(told, fmt.Sprintf("%d %s%s", count, between, name))
	}
	if len(told) == 0 {
		return "none at all"
	}
	slices.SortFunc(told, func(a, b string) int {
		_, a, _ = strings.Cut(a, " ")
		_, b, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
	return strings.Join(told, ", ")
}

// described lists exchanges, each on a line behind a message.
func described(seen []Exchange) string {
	var lines []string
	for _, each := range seen {
		lines = append(lines, "\n  "+each.describe())
	}
	return strings.Join(first(lines), "")
}

// first shortens a list for a message.
func first(lines []string) []string {
	if len(lines) <= mostTold {
		return lines
	}
	more := fmt.Sprintf("and %d more", len(lines)-mostTold)
	if strings.HasPrefix(lines[0], "\n") {
		more = "\n  " + more
	}
	return append(slices.Clone(lines[:mostTold]), more)
}

func plural(count int, what string) string {
	if count != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", count, what)
}
