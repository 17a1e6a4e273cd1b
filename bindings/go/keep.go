package kafkascope

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// keepFolder is where captures of failed tests go; empty: they stay where they are.
func keepFolder(t testing.TB, wished string) string {
	if wished == "" {
		wished = os.Getenv("KAFKASCOPE_DIR")
	}
	if wished != "" {
		if full, err := filepath.Abs(wished); err == nil {
			return full
		}
		return wished
	}
	// From Go 1.26 on; without -artifacts the folder goes with the test.
	if asked := flag.Lookup("test.artifacts"); asked != nil && asked.Value.String() == "true" {
		if it, ok := t.(interface{ ArtifactDir() string }); ok {
			return it.ArtifactDir()
		}
	}
	return ""
}

// exact is an object whose numbers stay as they are: those of Kafka have 64 bits.
type exact map[string]any

// UnmarshalJSON uses json.Number.
func (e *exact) UnmarshalJSON(data []byte) error {
	numbers := json.NewDecoder(bytes.NewReader(data))
	numbers.UseNumber()
	var told map[string]any
	err := numbers.Decode(&told)
	*e = told
	return err
}
