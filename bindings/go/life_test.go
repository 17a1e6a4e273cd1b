package kafkascope

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWithoutKafkascopeItSaysWhatToDo(t *testing.T) {
	for _, told := range []string{"/nowhere/kafkascope", "no-such-program --at-all"} {
		t.Setenv("KAFKASCOPE", told)
		for _, test := range []func(t testing.TB){
			func(t testing.TB) { Proxy(t, "127.0.0.1:1") },
			func(t testing.TB) { Serve(t, sample) },
			func(t testing.TB) { Open(t, sample) },
		} {
			w := watch("TestNone", test)
			oneSentence(t, w)
			contains(t, w.text(), strings.Fields(told)[0], "install it, or say where it is (KAFKASCOPE)")
		}
	}
	t.Setenv("KAFKASCOPE", "")
	t.Setenv("PATH", t.TempDir())
	w := watch("TestNone", func(t testing.TB) { Proxy(t, "127.0.0.1:1") })
	oneSentence(t, w)
	contains(t, w.text(), "there is no kafkascope: install it, or say where it is (KAFKASCOPE)")
}

func TestAnotherKafkascopeIsRefused(t *testing.T) {
	for _, each := range []struct{ kafkascope, said string }{
		{
			`read line; echo '{"ok":true,"protocol":1,"bootstrap":"127.0.0.1:1"}'; cat`,
			"this kafkascope speaks protocol 1 of its control channel, and 3 is needed: update kafkascope",
		},
		{
			`echo "Error: No such option '--control'" >&2; exit 2`,
			"kafkascope did not start: it is too old for this module, update kafkascope: Error: No such",
		},
		{`echo "kafkascope: no" >&2; exit 3`, "kafkascope did not start: no (exit status 3)"},
		{`exit 0`, "kafkascope did not start: exit status 0"},
		{
			`echo hello; exit 0`,
			`kafkascope did not start, and said "hello", which is no answer of the control channel`,
		},
	} {
		path := script(t, each.kafkascope)
		w := watch("TestOther", func(t testing.TB) { Proxy(t, "127.0.0.1:1", Command(path)) })
		oneSentence(t, w)
		contains(t, w.text(), each.said)
	}
	path := script(t, `echo "kafkascope: broken" >&2; exit 3`)
	w := watch("TestOther", func(t testing.TB) { Serve(t, sample, Command(path)) })
	oneSentence(t, w)
	contains(t, w.text(), "kafkascope did not start: broken (exit status 3)")
}

func TestATakenPortIsTold(t *testing.T) {
	needed(t)
	served := Serve(t, sample)
	for _, test := range []func(t testing.TB){
		func(t testing.TB) { Proxy(t, "127.0.0.1:1", Listen(served.Bootstrap())) },
		func(t testing.TB) { Serve(t, sample, Listen(served.Bootstrap())) },
	} {
		w := watch("TestTaken", test)
		oneSentence(t, w)
		contains(t, strings.ToLower(w.text()), "kafkascope did not start: ", "address already in use",
			" (exit status 3)")
	}
}

func pid(t testing.TB, p *RunningProxy) int {
	t.Helper()
	var told struct{ PID int }
	if err := p.Ask("status", nil, &told); err != nil {
		t.Fatalf("%v", err)
	}
	return told.PID
}

func TestAProxyThatDiesIsTold(t *testing.T) {
	needed(t)
	for turn, hears := range []bool{false, true} {
		w := watch("TestDies", func(t testing.TB) {
			p := Proxy(t, "127.0.0.1:1")
			if err := syscall.Kill(pid(t, p), syscall.SIGKILL); err != nil {
				t.Fatalf("%v", err)
			}
			if hears {
				p.Fault("api == Fetch -> drop")
			}
			p.shared.control.child.ends(time.Minute)
		})
		if len(w.said) == 0 {
			t.Fatal("it was not told")
		}
		contains(t, w.said[0], []string{
			"kafkascope: kafkascope has ended before the test: ", "fault: kafkascope has ended: ",
		}[turn], "(signal: killed)")
		if all := w.text(); strings.Count(all, "has ended") != 1 {
			t.Errorf("it is told twice:\n%s", all)
		}
	}
}

func TestATestThatPassesLeavesNothing(t *testing.T) {
	needed(t)
	t.Setenv("TMPDIR", t.TempDir())
	var number int
	w := watch("TestPasses", func(t testing.TB) {
		p := Proxy(t, "127.0.0.1:1")
		number = pid(t, p)
	})
	left, _ := os.ReadDir(os.Getenv("TMPDIR"))
	if w.failed || alive(number) || len(left) != 0 {
		t.Errorf("%v %v %v", w.said, alive(number), left)
	}
}

func TestATestThatFailsKeepsItsCapture(t *testing.T) {
	needed(t)
	kept := t.TempDir()
	for _, each := range []struct{ where, option, environment string }{
		{"the folder of the option", kept, ""}, {"that of the environment", "", kept}, {"", "", ""},
	} {
		t.Setenv("KAFKASCOPE_DIR", each.environment)
		w := watch("TestFails/some thing", func(t testing.TB) {
			p := Proxy(t, Serve(t, sample).Bootstrap(), KeepIn(each.option))
			apiVersions(t, p.Bootstrap(), "fails")
			t.Errorf("it fails")
		})
		_, path, _ := strings.Cut(w.text(), "the traffic of this test: ")
		if each.where == "" {
			defer os.RemoveAll(filepath.Dir(path))
		} else {
			contains(t, path, filepath.Join(kept, "TestFails-some-thing-"))
		}
		Open(t, path).AssertRequest(t, "client == fails", Times(1))
	}
}

// TestEndless is the victim of the next test.
func TestEndless(t *testing.T) {
	if os.Getenv("KAFKASCOPE_TEST_ENDLESS") == "" {
		t.Skip("it is started by another test")
	}
	served := Serve(t, sample)
	p := Proxy(t, served.Bootstrap(), Hold("api == ApiVersions"))
	send(t, connect(t, p.Bootstrap()), "endless")
	p.AwaitHeld(1)
	fmt.Printf("pids %d %d\n", pid(t, p), served.control.child.command.Process.Pid)
	time.Sleep(time.Hour)
}

func TestATestThatIsKilledLeavesNoProcess(t *testing.T) {
	needed(t)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		victim := exec.Command(os.Args[0], "-test.run=^TestEndless$", "-test.v")
		victim.Env = append(os.Environ(), "KAFKASCOPE_TEST_ENDLESS=1", "TMPDIR="+t.TempDir())
		out, err := victim.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		var pids [2]int
		for lines := bufio.NewScanner(out); pids[0] == 0 && lines.Scan(); {
			_, _ = fmt.Sscanf(lines.Text(), "pids %d %d", &pids[0], &pids[1])
		}
		if pids[0] == 0 || !alive(pids[0]) || !alive(pids[1]) {
			t.Fatalf("it did not start: %v", pids)
		}
		_ = victim.Process.Signal(signal)
		_ = victim.Wait()
		eventually(t, "it leaves a process behind", func() bool {
			return !alive(pids[0]) && !alive(pids[1])
		})
	}
}

func TestACommandIsSplitAsInAShell(t *testing.T) {
	for _, each := range []struct {
		command string
		words   []string
	}{
		{"kafkascope", []string{"kafkascope"}},
		{"  /a/python  -m\tkafkascope ", []string{"/a/python", "-m", "kafkascope"}},
		{`'/a b/c' "d e" f\ g ''`, []string{"/a b/c", "d e", "f g", ""}},
		{`a"b 'c'"'d "e'`, []string{`ab 'c'd "e`}},
		{`"\a\"\\" '\'`, []string{`\a"\`, `\`}},
		{"", nil},
	} {
		words, err := split(each.command)
		if err != nil || !slices.Equal(words, each.words) {
			t.Errorf("%s: %q %v", each.command, words, err)
		}
	}
	for _, command := range []string{`'a`, `"a`, `a\`} {
		if words, err := split(command); err == nil {
			t.Errorf("%s: %q", command, words)
		}
	}
}
