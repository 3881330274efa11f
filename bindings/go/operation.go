// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// bounceMax is the length of messages that a blocking call copies, so that it holds no thread.
const bounceMax = 4096

// Envelope is the result of a receive or a probe.
type Envelope struct {
	Source    int   // rank of the sender in the team: 0 is the side that connected
	Tag       int64 // of the message
	Bytes     int   // received; of a probe: waiting
	SentBytes int   // that the sender sent; more than Bytes if the message was truncated
}

// operation is one in flight, with memory of C. It is used again.
type operation struct {
	owner  *Context
	op     *C.go_op
	bounce unsafe.Pointer // of bounceMax bytes, or nil
	parked atomic.Bool    // the dispatcher or the close of the context signals it
	done   chan bool      // of an operation without a Request; true: the context was closed first
	req    atomic.Pointer[Request]
}

// take gets an operation that is not in use, or nil.
func (c *Context) take() *operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		o := c.free[n-1]
		c.free = c.free[:n-1]
		return o
	}
	if c.closing {
		return nil
	}
	native := C.go_op_new(c.c)
	if native == nil {
		return nil
	}
	o := &operation{owner: c, op: native, done: make(chan bool, 1)}
	native.id = C.uint64_t(len(c.ops))
	c.ops = append(c.ops, o)
	return o
}

// takeFailed is the error of a take that returned nil.
func (c *Context) takeFailed(call string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return fail(call, ErrClosed)
	}
	return fail(call, ErrNoMemory)
}

// put gives an operation back that is complete.
func (o *operation) put() {
	if o.op.req != nil || o.op.iov != nil || o.op.persistent != 0 {
		C.go_op_end(o.op)
	} else {
		o.op.started, o.op.canceled = 0, 0
	}
	c := o.owner
	c.mu.Lock()
	c.free = append(c.free, o)
	c.mu.Unlock()
}

// signal ends the wait for a parked operation. closed: it is not complete, but the context is closed.
func (o *operation) signal(closed bool) {
	r := o.req.Load()
	if closed && r != nil {
		r.mu.Lock()
		r.finish(true)
		r.mu.Unlock()
		return
	}
	if !o.parked.CompareAndSwap(true, false) {
		return
	}
	if r == nil {
		o.done <- closed
		return
	}
	r.mu.Lock()
	r.finish(closed)
	r.mu.Unlock()
}

// result returns the end of a complete operation.
func (o *operation) result(closed bool) (Envelope, Status) {
	if closed {
		return Envelope{}, ErrClosed
	}
	e := &o.op.envelope
	return Envelope{int(e.source), int64(e.tag), int(e.bytes), int(e.sent_bytes)}, Status(o.op.status)
}

// receives reports whether an operation writes local memory.
func receives(kind C.int) bool {
	return kind == C.GO_RECV || kind == C.GO_RECVV || kind == C.GO_GET
}

// block carries out an operation on memory of Go.
func (c *Conn) block(ctx context.Context, call string, kind C.int, data []byte, where int64, mem C.rank_mem_t) (Envelope, error) {
	if ctx.Err() != nil {
		return Envelope{}, ended(call, ctx)
	}
	o := c.owner.take()
	if o == nil {
		return Envelope{}, c.owner.takeFailed(call)
	}
	n, some := C.int64_t(len(data)), someBytes(data)
	cancels := C.int(0)
	if ctx.Done() != nil {
		cancels = 1
	}
	var p pinned
	var done C.int
	after := func() {}
	switch {
	case len(data) <= bounceMax:
		if o.bounce == nil {
			o.bounce = C.malloc(bounceMax)
		}
		copied := unsafe.Slice((*byte)(o.bounce), len(data))
		if receives(kind) {
			after = func() { copy(data, copied) }
		} else {
			copy(copied, data)
		}
		o.parked.Store(true)
		done = C.go_op_start(o.op, c.c, kind, o.bounce, n, C.int64_t(where), mem, C.GO_PARK, cancels)
	case canPin:
		p.pin(data)
		o.parked.Store(true)
		done = C.go_op_start(o.op, c.c, kind, unsafe.Pointer(&some[0]), n, C.int64_t(where), mem, C.GO_PARK, cancels)
	case cancels == 0:
		C.go_op_start(o.op, c.c, kind, unsafe.Pointer(&some[0]), n, C.int64_t(where), mem, C.GO_STAY, 0)
		return c.finish(ctx, call, o, false, nil)
	default: // another goroutine stays in the call as long as the library uses the memory
		go func() {
			C.go_op_start(o.op, c.c, kind, unsafe.Pointer(&some[0]), n, C.int64_t(where), mem, C.GO_HOLD, 1)
			o.done <- false
		}()
		done = C.GO_PENDING
	}
	closed := false
	if done == C.GO_DONE {
		if !o.parked.CompareAndSwap(true, false) {
			<-o.done // the close of the context has signaled it
		}
	} else {
		var left bool
		if closed, left = o.await(ctx); left {
			go func() {
				<-o.done
				p.unpin()
				runtime.KeepAlive(data)
				runtime.KeepAlive(c)
				o.put()
			}()
			return Envelope{}, ended(call, ctx)
		}
	}
	p.unpin()
	return c.finish(ctx, call, o, closed, after)
}

// await waits until the operation is complete, or canceled because ctx has ended. left: it goes on.
func (o *operation) await(ctx context.Context) (closed, left bool) {
	select {
	case closed = <-o.done:
		return closed, false
	case <-ctx.Done():
	}
	C.go_op_cancel(o.op)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case closed = <-o.done:
		return closed, false
	case <-timer.C:
		return false, true
	}
}

// finish ends a complete operation. after copies what was received.
func (c *Conn) finish(ctx context.Context, call string, o *operation, closed bool, after func()) (Envelope, error) {
	envelope, status := o.result(closed)
	if after != nil && (status == success || status == ErrTruncated) {
		after()
	}
	o.put()
	runtime.KeepAlive(c)
	if status == ErrCanceled && ctx.Err() != nil {
		return Envelope{}, ended(call, ctx)
	}
	return envelope, c.failed(call, status)
}

// failed makes the error of a call, or nil. A stale handle of a connection that is closed here is ErrClosed.
func (c *Conn) failed(call string, status Status) error {
	if status == ErrHandle && c.shutDown.Load() {
		status = ErrClosed
	}
	return fail(call, status)
}
