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
	op     *C.go_op    // its copy: of bounceMax bytes, or nil
	parked atomic.Bool // the dispatcher or the close of the context signals it
	done   chan bool   // of an operation without a Request; true: the context was closed first
	req    atomic.Pointer[Request]
}

// handle returns its C part for a call that cgo does not check.
func (o *operation) handle() C.go_handle {
	return C.go_handle(uintptr(unsafe.Pointer(o.op)))
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
	if o.op.req != nil || o.op.iov != nil || o.op.blocks != nil || o.op.persistent != 0 {
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

// block carries out an operation on memory of Go.
func (t *Team) block(ctx context.Context, call string, kind C.int, data []byte, peer int, where int64, mem C.rank_mem_t) (Envelope, error) {
	if ctx.Err() != nil {
		return Envelope{}, ended(call, ctx)
	}
	o := t.owner.take()
	if o == nil {
		return Envelope{}, t.explain(t.owner.takeFailed(call))
	}
	if len(data) <= bounceMax {
		return t.blockCopied(ctx, call, kind, o, data, peer, where, mem)
	}
	if canPin {
		return t.blockPinned(ctx, call, kind, o, data, peer, where, mem)
	}
	if ctx.Done() != nil {
		return t.blockHeld(ctx, call, kind, o, data, peer, where, mem)
	}
	C.go_op_start(o.handle(), t.handle(), kind, unsafe.Pointer(&data[0]), C.int64_t(len(data)), toRank(peer), C.int64_t(where), handleOf(mem), C.GO_STAY, 0)
	return t.finish(ctx, call, o, false)
}

// cancels returns for C whether an operation may be canceled.
func cancels(ctx context.Context) C.int {
	if ctx.Done() != nil {
		return 1
	}
	return 0
}

// blockCopied carries out an operation on a copy, which the library may use for longer than the call.
func (t *Team) blockCopied(ctx context.Context, call string, kind C.int, o *operation, data []byte, peer int, where int64,
	mem C.rank_mem_t) (Envelope, error) {
	if o.op.copy == nil {
		o.op.copy = C.malloc(bounceMax) // never nil
	}
	copied := unsafe.Slice((*byte)(o.op.copy), len(data))
	if kind != C.GO_RECV && kind != C.GO_GET {
		copy(copied, data)
	}
	o.parked.Store(true)
	done := C.go_op_start(o.handle(), t.handle(), kind, o.op.copy, C.int64_t(len(data)), toRank(peer), C.int64_t(where), handleOf(mem), C.GO_PARK, cancels(ctx))
	closed, left := o.settle(ctx, done)
	if left {
		go t.abandon(o, nil, nil)
		return Envelope{}, ended(call, ctx)
	}
	if kind == C.GO_RECV && !closed {
		copy(data, copied[:int(o.op.envelope.bytes)])
	} else if kind == C.GO_GET && !closed && o.op.status == C.RANK_OK {
		copy(data, copied)
	}
	return t.finish(ctx, call, o, closed)
}

// blockPinned carries out an operation in place.
func (t *Team) blockPinned(ctx context.Context, call string, kind C.int, o *operation, data []byte, peer int, where int64,
	mem C.rank_mem_t) (Envelope, error) {
	p := new(pinned)
	p.pin(data)
	o.parked.Store(true)
	done := C.go_op_start(o.handle(), t.handle(), kind, unsafe.Pointer(&data[0]), C.int64_t(len(data)), toRank(peer), C.int64_t(where), handleOf(mem), C.GO_PARK,
		cancels(ctx))
	closed, left := o.settle(ctx, done)
	if left {
		go t.abandon(o, p, data)
		return Envelope{}, ended(call, ctx)
	}
	p.unpin()
	return t.finish(ctx, call, o, closed)
}

// blockHeld lets another goroutine stay in the call of C for as long as the library uses the memory.
func (t *Team) blockHeld(ctx context.Context, call string, kind C.int, o *operation, data []byte, peer int, where int64,
	mem C.rank_mem_t) (Envelope, error) {
	go func() {
		C.go_op_start(o.handle(), t.handle(), kind, unsafe.Pointer(&data[0]), C.int64_t(len(data)), toRank(peer), C.int64_t(where), handleOf(mem), C.GO_HOLD, 1)
		o.done <- false
	}()
	closed, left := o.await(ctx)
	if left {
		go t.abandon(o, nil, data)
		return Envelope{}, ended(call, ctx)
	}
	return t.finish(ctx, call, o, closed)
}

// abandon waits for the end of an operation that its caller has left.
func (t *Team) abandon(o *operation, p *pinned, data []byte) {
	<-o.done
	if p != nil {
		p.unpin()
	}
	o.put()
	runtime.KeepAlive(data)
	runtime.KeepAlive(t)
}

// settle waits until a parked operation is complete. left: ctx has ended, and it goes on.
func (o *operation) settle(ctx context.Context, done C.int) (closed, left bool) {
	if done == C.GO_PENDING {
		return o.await(ctx)
	}
	if !o.parked.CompareAndSwap(true, false) {
		<-o.done // the close of the context has signaled it
	}
	return false, false
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

// finish ends a complete operation.
func (t *Team) finish(ctx context.Context, call string, o *operation, closed bool) (Envelope, error) {
	envelope, status := o.result(closed)
	reason := ""
	if !closed && status != success {
		reason = o.reason()
	}
	o.put()
	runtime.KeepAlive(t)
	if status == ErrCanceled && ctx.Err() != nil {
		return Envelope{}, ended(call, ctx)
	}
	return envelope, t.failedFor(call, status, reason)
}

// judge returns the status of a call. A stale handle of a connection that is closed here is ErrClosed.
func (t *Team) judge(status Status) Status {
	if status == ErrHandle && t.shutDown.Load() {
		return ErrClosed
	}
	return status
}

// failed makes the error of a call, or nil.
func (t *Team) failed(call string, status Status) error {
	return t.failedFor(call, status, "")
}

// failedFor is failed with the reason of the library, or "".
func (t *Team) failedFor(call string, status Status, reason string) error {
	judged := t.judge(status)
	if judged != status {
		reason = ""
	}
	return t.explain(failWith(call, judged, judged.detail(reason)))
}

// reason returns why an operation was not started, or "".
func (o *operation) reason() string {
	if o.op.reason == nil {
		return ""
	}
	return C.GoString(o.op.reason)
}
