// SPDX-License-Identifier: BSD-3-Clause

package rank

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func withTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(background, d)
}

// is checks that err is each of the targets.
func is(t failer, what string, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		check(t, errors.Is(err, target), "%s: %v is not %v", what, err, target)
	}
}

// Deadlines and cancels end waits, canceled receives take no message, and sends that are canceled send none.
func TestTimeouts(t *testing.T) {
	contexts, conns := pair(t)
	b := buffer(t, 1<<20)
	defer b.Free()
	m, err := contexts[0].Register(b, ReadWrite)
	must(t, err)
	l, err := contexts[0].Listen(background, "127.0.0.1:0", nil)
	must(t, err)
	req, err := conns[0].Irecv(b.Slice(0, 10), 1)
	must(t, err)
	calls := map[string]func(ctx context.Context) error{
		"short recv":  func(ctx context.Context) error { _, err := conns[0].Recv(ctx, make([]byte, 8), 2); return err },
		"long recv":   func(ctx context.Context) error { _, err := conns[0].Recv(ctx, make([]byte, 1<<20), 2); return err },
		"long ssend":  func(ctx context.Context) error { return conns[0].Ssend(ctx, make([]byte, 8<<20), 3) },
		"short ssend": func(ctx context.Context) error { return conns[0].Ssend(ctx, make([]byte, 8), 4) },
		"new":         func(ctx context.Context) error { _, _, err := conns[0].RecvNew(ctx, 2); return err },
		"wait":        func(ctx context.Context) error { _, err := req.Wait(ctx); return err },
		"signal":      func(ctx context.Context) error { _, err := m.WaitSignal(ctx, 8, Equal, 1); return err },
		"accept":      func(ctx context.Context) error { _, err := l.Accept(ctx); return err },
	}
	for name, call := range calls {
		ctx, cancel := withTimeout(30 * time.Millisecond)
		start := time.Now()
		is(t, name, call(ctx), ErrTimedOut, context.DeadlineExceeded, os.ErrDeadlineExceeded)
		is(t, name+" at once", call(ctx), ErrTimedOut)
		cancel()
		check(t, time.Since(start) < 2*time.Second, "%s took %v", name, time.Since(start))
		ctx, cancel = context.WithCancel(background)
		time.AfterFunc(10*time.Millisecond, cancel)
		is(t, name, call(ctx), ErrCanceled, context.Canceled)
		cancel()
	}
	req.Cancel()
	l.Close()
}

// The two sides agree after timeouts: nothing was lost.
func TestNothingLost(t *testing.T) {
	contexts, conns := pair(t)
	for _, n := range []int{8, 1 << 20} {
		for i := 0; i < 20; i++ {
			ctx, cancel := withTimeout(time.Duration(i%5) * time.Millisecond)
			_, err := conns[1].Recv(ctx, make([]byte, n), 1)
			is(t, "recv", err, ErrTimedOut)
			cancel()
			sent := make(chan error)
			go func() { sent <- conns[0].Send(background, []byte{byte(i)}, 1) }()
			data := make([]byte, n)
			e, err := conns[1].Recv(background, data, 1)
			must(t, err)
			must(t, <-sent)
			check(t, e.Bytes == 1 && data[0] == byte(i), "message %d: %+v", i, e)
		}
	}
	b := buffer(t, 8)
	r, err := conns[1].Irecv(b.All(), 2)
	must(t, err)
	b.Free()
	r.Cancel()
	_, err = r.Wait(background)
	is(t, "a canceled request", err, ErrCanceled)
	check(t, b.uses.Load() == 0, "the Buffer is in use")
	must(t, conns[0].Close())
	is(t, "a closed connection", conns[0].Send(background, nil, 1), ErrClosed)
	_, err = conns[1].Recv(background, nil, 1)
	is(t, "a connection that the peer closed", err, ErrClosed)
	must(t, contexts[0].Close())
	_, err = contexts[0].Connect(background, "127.0.0.1:1", nil)
	is(t, "a closed context", err, ErrClosed)
}

// Wrong use is refused, with the error of rank(3).
func TestRefusals(t *testing.T) {
	c, err := Open(nil)
	must(t, err)
	defer c.Close()
	l, err := c.Listen(background, "127.0.0.1:0", &ConnOptions{Secret: secret})
	must(t, err)
	other, err := Open(nil)
	must(t, err)
	defer other.Close()
	connect := func(address string, opts *ConnOptions) error {
		ctx, cancel := withTimeout(10 * time.Second)
		defer cancel()
		_, err := other.Connect(ctx, address, opts)
		return err
	}
	for i := 0; i < 2; i++ { // the reason each time
		for address, reason := range map[string]string{"127.0.0.1": "has no port", "127.0.0.1:x": "not a number", "127.0.0.1:1": "nothing listens"} {
			err := connect(address, nil)
			check(t, err != nil && strings.Contains(err.Error(), reason), "connect to %s: %v", address, err)
		}
	}
	is(t, "no port", connect("127.0.0.1", nil), ErrArg)
	is(t, "nothing listens", connect("127.0.0.1:1", nil), ErrUnreachable)
	is(t, "no secret", connect(l.Address(), nil), ErrSecret)
	is(t, "another secret", connect(l.Address(), &ConnOptions{Secret: []byte("0123456789abcdef")}), ErrSecret)
	_, err = c.Connect(background, l.Address(), &ConnOptions{Secret: secret})
	is(t, "itself", err, ErrRefused)
	_, err = c.Listen(background, ":0", nil)
	is(t, "off the loopback interface", err, ErrArg)
	_, err = c.Listen(background, l.Address(), nil)
	is(t, "an address in use", err, ErrSystem)

	_, conns := pair(t)
	b := buffer(t, 64)
	_, err = conns[0].Isend(b.Slice(0, 8).Repeat(2, 16), 1)
	is(t, "blocks in a send", err, ErrArg)
	b.Free()
	_, err = conns[0].Isend(b.All(), 1)
	is(t, "a freed Buffer", err, ErrHandle)
	_, err = conns[0].Isend(View{}, 1)
	is(t, "no Buffer", err, ErrArg)
	is(t, "a tag", conns[0].Send(background, nil, -5), ErrTag)
	_, err = conns[0].Open(background, []byte("no key"))
	is(t, "no key", err, ErrHandle)
	must(t, conns[0].Send(background, make([]byte, 100), 1))
	e, err := conns[1].Recv(background, make([]byte, 10), 1)
	is(t, "a long message", err, ErrTruncated)
	check(t, e.Bytes == 10 && e.SentBytes == 100, "truncated: %+v", e)
}

// startWaits starts calls that wait for the peer, some of them until ctx ends. Their errors come through the channel.
func startWaits(t failer, ctx context.Context, conn *Conn) (results chan error, n int) {
	t.Helper()
	results = make(chan error, 16)
	start := func(call func() error) {
		n++
		go func() { results <- call() }()
	}
	b := buffer(t, 1<<20)
	for tag := int64(0); tag < 4; tag++ {
		r, err := conn.Irecv(b.Slice(int(tag)*10, int(tag)*10+10), 10+tag)
		must(t, err)
		start(func() error { _, err := r.Wait(background); return err })
	}
	b.Free()
	start(func() error { _, err := conn.Recv(background, make([]byte, 8), 1); return err })
	start(func() error { _, err := conn.Recv(ctx, make([]byte, 8), 2); return err })
	start(func() error { _, err := conn.Recv(background, make([]byte, 1<<16), 3); return err })
	start(func() error { _, err := conn.Recv(ctx, make([]byte, 1<<16), 4); return err })
	start(func() error { return conn.Ssend(ctx, make([]byte, 1<<16), 5) })
	start(func() error { return conn.Ssend(background, make([]byte, 8), 6) })
	start(func() error { _, _, err := conn.RecvNew(background, 7); return err })
	return results, n
}

// Errors have the reasons of their own calls.
func TestReasons(t *testing.T) {
	contexts, conns := pair(t)
	const wrongTag = -5
	reason := func(what string, err error, status Status, text string) {
		t.Helper()
		is(t, what, err, status)
		detail := err.(*Error).Detail
		check(t, strings.Contains(detail, text) && (text != "" || detail == ""), "%s: %q has no %q", what, detail, text)
	}
	_, err := contexts[0].Alloc(8, 0)
	reason("alloc", err, ErrArg, "access 0")
	_, err = conns[0].PrepareRead(nil, &Notice{Tag: wrongTag})
	reason("prepare", err, ErrTag, "-5")
	reason("send", conns[0].Send(background, nil, wrongTag), ErrTag, "-5")
	must(t, conns[0].Close())
	reason("send after close", conns[0].Send(background, nil, 1), ErrClosed, "")
}

// allEnd checks that the calls end soon, with an error.
func allEnd(t failer, results chan error, n int, target error) {
	t.Helper()
	limit := time.After(5 * time.Second)
	for i := 0; i < n; i++ {
		select {
		case err := <-results:
			is(t, "a wait", err, target)
		case <-limit:
			t.Fatalf("%d of %d waits have not ended", n-i, n)
		}
	}
}

func TestPeerKilled(t *testing.T) {
	_, conn, cmd := withProcess(t, "killed", 0)
	limit, cancel := withTimeout(time.Hour)
	defer cancel()
	_, err := conn.Recv(background, nil, 0)
	must(t, err)
	results, n := startWaits(t, limit, conn)
	time.Sleep(100 * time.Millisecond)
	start := time.Now()
	must(t, cmd.Process.Kill())
	allEnd(t, results, n, ErrPeerDead)
	check(t, time.Since(start) < 2*time.Second, "the ends took %v", time.Since(start))
	is(t, "send", conn.Send(background, make([]byte, 1<<20), 1), ErrPeerDead)
	cmd.Wait()
}

func init() {
	sides["killed"] = func(t failer, c *Context, conn *Conn, seed int64) {
		must(t, conn.Send(background, nil, 0))
		select {}
	}
}

// A disconnect and a close end all calls that wait, and leave nothing behind.
func TestCloseWhileWaiting(t *testing.T) {
	c, err := Open(nil) // what a process has once stays
	must(t, err)
	must(t, c.Close())
	limit, cancel := withTimeout(time.Hour)
	defer cancel()
	fds, goroutines := descriptors(), runtime.NumGoroutine()
	for round := 0; round < 6; round++ {
		var contexts [2]*Context
		for i := range contexts {
			contexts[i], err = Open(nil)
			must(t, err)
		}
		l, err := contexts[1].Listen(background, "127.0.0.1:0", nil)
		must(t, err)
		conn, err := contexts[0].Connect(background, l.Address(), &ConnOptions{NoShm: options.NoShm})
		must(t, err)
		peer, err := l.Accept(background)
		must(t, err)
		results, n := startWaits(t, limit, conn)
		accepts := make(chan error, 1)
		go func() { _, err := l.Accept(background); accepts <- err }()
		time.Sleep(20 * time.Millisecond)
		switch round % 3 {
		case 0:
			must(t, conn.Close())
		case 1:
			must(t, peer.Close())
		case 2:
			must(t, contexts[0].Close())
		}
		allEnd(t, results, n, ErrClosed)
		must(t, contexts[0].Close())
		must(t, contexts[1].Close())
		allEnd(t, accepts, 1, ErrClosed)
	}
	end := time.Now().Add(5 * time.Second)
	for (descriptors() > fds || runtime.NumGoroutine() > goroutines) && time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond)
	}
	check(t, descriptors() <= fds, "%d descriptors, before %d", descriptors(), fds)
	check(t, runtime.NumGoroutine() <= goroutines, "%d goroutines, before %d", runtime.NumGoroutine(), goroutines)
}

// Of a peer that is stopped, only limited waits end, and so do a disconnect and a shutdown.
func TestPeerStopped(t *testing.T) {
	c, conn, cmd := withProcess(t, "remote", 0)
	limit, cancel := withTimeout(10 * time.Second)
	defer cancel()
	key, _, err := conn.RecvNew(limit, 0)
	must(t, err)
	remote, err := conn.Open(limit, key)
	must(t, err)
	must(t, cmd.Process.Signal(syscall.SIGSTOP))
	start := time.Now()
	b := buffer(t, memBytes)
	calls := map[string]func(ctx context.Context) error{
		"ssend":       func(ctx context.Context) error { return conn.Ssend(ctx, make([]byte, 1<<20), 9) },
		"recv":        func(ctx context.Context) error { _, err := conn.Recv(ctx, make([]byte, 8), 9); return err },
		"long put":    func(ctx context.Context) error { return remote.Put(ctx, make([]byte, memBytes), 0) },
		"short put":   func(ctx context.Context) error { return remote.Put(ctx, make([]byte, 8), 0) },
		"flush":       remote.Flush,
		"long get":    func(ctx context.Context) error { return remote.Get(ctx, make([]byte, memBytes), 0) },
		"getv":        func(ctx context.Context) error { return remote.Getv(ctx, []Block{{Local: b.All()}}) },
		"atomic":      func(ctx context.Context) error { _, err := Atomic(ctx, remote, FetchAdd, 0, uint32(1)); return err },
		"open":        func(ctx context.Context) error { _, err := conn.Open(ctx, key); return err },
		"put, signal": func(ctx context.Context) error { return remote.PutSignal(ctx, nil, 0, remote, signalAt, 1, SignalAdd) },
	}
	for name, call := range calls {
		ctx, cancel := withTimeout(30 * time.Millisecond)
		if err := call(ctx); err != nil { // within a host some need no help of the peer
			is(t, name, err, ErrTimedOut, context.DeadlineExceeded)
		}
		cancel()
	}
	b.Free()
	canceled, cancel := context.WithCancel(background)
	time.AfterFunc(50*time.Millisecond, cancel)
	is(t, "disconnect", conn.Disconnect(canceled), ErrCanceled, context.Canceled)
	short, cancel := withTimeout(200 * time.Millisecond)
	defer cancel()
	is(t, "disconnect", conn.Disconnect(short), ErrTimedOut)
	is(t, "shutdown", c.Shutdown(short), ErrTimedOut)
	is(t, "put", remote.Put(background, []byte{1}, 0), ErrClosed)
	check(t, time.Since(start) < 5*time.Second, "the calls took %v", time.Since(start))
	must(t, cmd.Process.Kill())
	cmd.Wait()
}

// The memory of C is freed when nothing refers to a closed Context.
func TestFreed(t *testing.T) {
	freed := make(chan struct{}, 2)
	func() {
		contexts, conns := connected(t)
		must(t, conns[0].Send(background, make([]byte, 8), 1))
		_, err := conns[1].Recv(background, make([]byte, 8), 1)
		must(t, err)
		for _, c := range contexts {
			must(t, c.Close())
			runtime.SetFinalizer(c.native, nil)
			runtime.SetFinalizer(c.native, func(n *native) {
				n.free()
				freed <- struct{}{}
			})
		}
	}()
	for end := time.Now().Add(5 * time.Second); len(freed) < cap(freed) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		runtime.GC()
	}
	check(t, len(freed) == cap(freed), "%d of %d contexts are freed", len(freed), cap(freed))
}
