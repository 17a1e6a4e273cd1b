// Reads steps from stdin, `Produce topic=a count=60`, runs them with franz-go, answers in JSON.
// java/Driver.java and clients/steps.py do the same.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const stepSeconds = 60

type arguments map[string]string

type answer map[string]any

func (a arguments) or(name, otherwise string) string {
	if value, ok := a[name]; ok {
		return value
	}
	return otherwise
}

func (a arguments) number(name string, otherwise int) int {
	number, err := strconv.Atoi(a.or(name, strconv.Itoa(otherwise)))
	if err != nil {
		panic(err)
	}
	return number
}

var steps = map[string]func(context.Context, arguments) (answer, error){
	"Produce": produce, "Consume": consume, "Rebalance": rebalance,
	"Transact": transact, "Administer": administer, "Journey": journey,
}

func run(line string) (told answer) {
	defer func() {
		if failure := recover(); failure != nil {
			told = answer{"failed": fmt.Sprint(failure)}
		}
	}()
	words := strings.Fields(line)
	a := arguments{}
	for _, pair := range words[1:] {
		name, value, _ := strings.Cut(pair, "=")
		a[name] = value
	}
	step, ok := steps[words[0]]
	if !ok {
		return answer{"failed": "no step " + words[0]}
	}
	limit := time.Duration(a.number("seconds", stepSeconds)) * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	told, err := step(ctx, a)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("out of time")
		}
		return answer{"failed": err.Error()}
	}
	return told
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for in.Scan() {
		if err := out.Encode(run(in.Text())); err != nil {
			os.Exit(1)
		}
	}
}
