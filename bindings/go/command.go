package kafkascope

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// locate gives the words that start kafkascope: those that were asked for, else what KAFKASCOPE
// says, else the program on the PATH.
func locate(wished []string) ([]string, error) {
	told := os.Getenv("KAFKASCOPE")
	if len(wished) == 0 && told != "" {
		if _, err := os.Stat(told); err == nil {
			return []string{told}, nil // a path may hold blanks
		}
		var err error
		if wished, err = split(told); err != nil {
			return nil, fmt.Errorf("KAFKASCOPE: %w", err)
		}
	}
	where := ""
	if len(wished) == 0 {
		wished = []string{"kafkascope"}
	} else {
		where = " at " + wished[0]
	}
	if _, err := exec.LookPath(wished[0]); err != nil {
		return nil, fmt.Errorf(
			"there is no kafkascope%s: install it, or say where it is (KAFKASCOPE)", where)
	}
	return wished, nil
}

// split gives the words of a command as a shell does, with quotes and backslashes alone.
func split(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	inside, escaped := false, false
	for _, each := range command {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`\n", each) {
				word.WriteRune('\\')
			}
			word.WriteRune(each)
			escaped = false
		case each == '\\' && quote != '\'':
			inside, escaped = true, true
		case quote != 0 && each == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(each)
		case each == '\'' || each == '"':
			inside, quote = true, each
		case strings.ContainsRune(" \t\r\n", each):
			if inside {
				words = append(words, word.String())
				word.Reset()
			}
			inside = false
		default:
			inside = true
			word.WriteRune(each)
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote or a backslash has no end")
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}
