package conformance

import (
	"os"
	"strings"
	"testing"
)

func TestTheDocumentedExampleIsTheOneThatIsRun(t *testing.T) {
	text, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example := strings.Replace(string(text), "package conformance", "package shop", 1)
	if !strings.Contains(string(page), "```go\n"+example+"```") {
		t.Error("the README's example is not example_test.go")
	}
}
