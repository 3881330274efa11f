// SPDX-License-Identifier: BSD-3-Clause

package rank

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var background = context.Background()

var secret = []byte("a secret of the tests")

// options are those of all connections. GO_RANK_TEST_TCP chooses the channel.
var options = ConnOptions{Secret: secret, Hello: []byte("hi"), NoShm: os.Getenv("GO_RANK_TEST_TCP") != ""}

// A test that runs its second side in a process of its own names it here, by GO_RANK_TEST.
var sides = map[string]func(t failer, c *Context, conn *Conn, seed int64){}

// failer is what both a test and a second process have.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

type process struct{}

func (process) Helper() {}

func (process) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "second process: "+format+"\n", args...)
	os.Exit(1)
}

func TestMain(m *testing.M) {
	switch name := os.Getenv("GO_RANK_TEST"); name {
	case "":
	case "world":
		worldSide(process{})
		return
	case "dead":
		deadSide(process{})
		return
	case "hang":
		hangSide(process{})
		return
	default:
		second(name)
		return
	}
	os.Exit(m.Run())
}

// second is the other process: it connects to its parent.
func second(name string) {
	var seed int64
	var address string
	fmt.Sscan(os.Getenv("GO_RANK_TEST_AT"), &seed, &address)
	c, err := Open(&Options{Name: "second"})
	must(process{}, err)
	conn, err := c.Connect(background, address, &options)
	must(process{}, err)
	sides[name](process{}, c, conn, seed)
	must(process{}, c.Close())
}

func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func check(t failer, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// pair opens two contexts of this process that are connected, until the end of the test.
func pair(t *testing.T) (contexts [2]*Context, conns [2]*Conn) {
	t.Helper()
	contexts, conns = connected(t)
	for _, c := range contexts {
		c := c
		t.Cleanup(func() { c.Close() })
	}
	return contexts, conns
}

// connected opens two contexts of this process that are connected. The caller closes them.
func connected(t *testing.T) (contexts [2]*Context, conns [2]*Conn) {
	t.Helper()
	for i := range contexts {
		c, err := Open(&Options{Name: fmt.Sprint("side ", i)})
		must(t, err)
		contexts[i] = c
	}
	l, err := contexts[1].Listen(background, "127.0.0.1:0", &options)
	must(t, err)
	conns[0], err = contexts[0].Connect(background, l.Address(), &options)
	must(t, err)
	conns[1], err = l.Accept(background)
	must(t, err)
	return contexts, conns
}

// withProcess opens a context here and the side name in another process. The caller waits for the command.
func withProcess(t *testing.T, name string, seed int64) (*Context, *Conn, *exec.Cmd) {
	t.Helper()
	c, err := Open(nil)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	l, err := c.Listen(background, "127.0.0.1:0", &options)
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GO_RANK_TEST="+name, fmt.Sprintf("GO_RANK_TEST_AT=%d %s", seed, l.Address()))
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	limit, cancel := context.WithTimeout(background, 20*time.Second)
	defer cancel()
	conn, err := l.Accept(limit)
	must(t, err)
	must(t, l.Close())
	return c, conn, cmd
}

// descriptors counts those of this process that belong to contexts.
func descriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	n := 0
	for _, e := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if !strings.HasPrefix(to, "/dev/") && !strings.HasPrefix(to, "/proc/") {
			n++
		}
	}
	return n
}

// threads counts those of this process.
func threads() int {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "Threads:") {
			fmt.Sscan(strings.Fields(s.Text())[1], &n)
		}
	}
	return n
}

func buffer(t failer, n int) *Buffer {
	t.Helper()
	b, err := Alloc(n)
	must(t, err)
	return b
}
