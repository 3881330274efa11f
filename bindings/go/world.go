// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// The Context of the ranks that a launcher started, between Init and Finalize. joining is held meanwhile.
var (
	world   atomic.Pointer[Context]
	joining sync.Mutex
)

// Init joins the ranks that xrun or another launcher started, and returns the team of all of them. A process that starts
// alone is a team of one. Collective. After Finalize it can be called again; see Exit. When ctx ends, it goes on: World returns the
// team when it has joined. ErrState: it has been called.
func Init(ctx context.Context) (*Team, error) {
	return later(ctx, "init", func() (*Team, Status) {
		joining.Lock()
		defer joining.Unlock()
		if world.Load() != nil {
			return nil, ErrState
		}
		c := newContext()
		c.world = true
		if status := Status(C.go_ctx_join(&c.c)); status != success {
			return nil, status
		}
		c.start()
		var native *C.go_team
		status := Status(C.go_team_world(c.c, &native))
		if status != success { // no memory
			return nil, status
		}
		c.team = newTeam(c, native, false)
		world.Store(c)
		return c.team, success
	}, nil)
}

// World returns the team of all ranks. ErrState: Init has not been called, or Finalize has.
func World() (*Team, error) {
	c := world.Load()
	if c == nil {
		return nil, wrong("world", ErrState, "call Init first")
	}
	return c.team, nil
}

// Finalize leaves the ranks: what was sent is completed, and all objects are closed. Collective. Calls and requests of this
// process end with ErrClosed, but Finalize waits for calls of other goroutines that hold a thread. When ctx ends during this,
// the team stays open, without its connections. When ctx ends later, it goes on in another goroutine.
func Finalize(ctx context.Context) error {
	c := world.Load()
	if c == nil {
		return wrong("finalize", ErrState, "call Init first")
	}
	return c.Shutdown(ctx)
}

// Abort ends all ranks. The exit code of the launcher is code & 255, or 1 if that is 0. It prints text if it is not empty.
// It does not return.
func Abort(code int, text string) {
	var native *C.char
	if text != "" {
		native = C.CString(text)
	}
	C.rank_abort(C.int(code&255), native)
	C.free(unsafe.Pointer(native)) // not reached
}

// Exit ends the process as exit(3) does, with its exit handlers. A program under a launcher that has called Init more than
// once ends so: such a handler leaves the launcher's server. The end of main runs none.
func Exit(code int) {
	C.exit(C.int(code))
}

// finalize is Shutdown for the Context of Init.
func (c *Context) finalize(ctx context.Context) error {
	const call = "finalize"
	c.leaving.Lock()
	defer c.leaving.Unlock()
	if c.ending { // another call goes on
		return closes(ctx, call, func() Status { <-c.closed; return c.status })
	}
	status := c.closeParts(ctx)
	C.go_ctx_shut(c.c)
	for C.go_ctx_users(c.c) > 0 {
		if ctx.Err() != nil {
			c.reopen()
			err := ended(call, ctx).(*Error)
			err.Detail = "calls of other goroutines have not ended; the world is open"
			return err
		}
		time.Sleep(drainPause)
	}
	c.ending = true
	_, err := begun(ctx, call, func() (struct{}, Status) {
		c.status = status
		world.CompareAndSwap(c, nil)
		c.closeNative(ctx)
		return struct{}{}, c.status
	}, nil)
	return err
}

// reopen permits calls again, and parks the requests that were waited for meanwhile.
func (c *Context) reopen() {
	C.go_ctx_reopen(c.c)
	c.mu.Lock()
	c.closing = false
	ops := append([]*operation(nil), c.ops...)
	c.mu.Unlock()
	for _, o := range ops {
		if r := o.req.Load(); r != nil {
			r.parkAgain()
		}
	}
}
