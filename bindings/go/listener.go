// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
import "C"

import (
	"context"
	"sync"
)

// Listener accepts connections.
type Listener struct {
	owner   *Context
	l       C.rank_listener_t
	results chan accepted
	closing chan struct{}
	start   sync.Once
	close   sync.Once
}

type accepted struct {
	conn   *Conn
	status Status
}

// run accepts one connection ahead of Accept, on a thread of its own.
func (l *Listener) run() {
	for {
		var native *C.go_team
		var a accepted
		a.status = Status(C.go_accept(l.owner.c, l.l, &native))
		if a.status == success {
			a.conn, a.status = l.owner.adopt(native)
		}
		if a.status == ErrClosed {
			return
		}
		select {
		case l.results <- a:
		case <-l.closing:
			if a.conn != nil {
				a.conn.Close()
			}
			return
		}
	}
}

// Accept returns the next connection. When ctx ends, the client stays for the next call. ErrSystem: no file descriptor was
// left for a client, which still waits.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	const call = "accept"
	l.start.Do(func() { go l.run() })
	select {
	case a := <-l.results:
		return a.conn, fail(call, a.status)
	case <-l.closing:
		return nil, fail(call, ErrClosed)
	case <-ctx.Done():
		return nil, ended(call, ctx)
	}
}

// Address returns "host:port", with the port that the system chose.
func (l *Listener) Address() string {
	var text [256]C.char
	n := C.size_t(len(text))
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	if _, open := l.owner.listeners[l]; !open || C.rank_listener_address(l.l, &text[0], &n) != C.RANK_OK {
		return ""
	}
	return C.GoString(&text[0])
}

// Close closes it, and connections that are not accepted yet. Calls of Accept return ErrClosed.
func (l *Listener) Close() error {
	var status Status
	l.close.Do(func() {
		close(l.closing)
		l.start.Do(func() {}) // not from now on
		l.owner.mu.Lock()
		delete(l.owner.listeners, l)
		native := l.l // l.l stays: a thread in accept compares it
		l.owner.mu.Unlock()
		status = Status(C.rank_listener_close(&native))
	})
	return fail("close", status)
}
