// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"runtime"
	"sync"
	"unsafe"
)

// Request is an operation that has been started. Its memory belongs to the library until it is complete. Call Wait, Test or
// Done until it is, or Forget: without them its memory stays until the Context is closed.
type Request struct {
	team  *Team
	call  string
	views []View // in use by it
	pin   pinned

	transfer *Transfer // that was started, or nil

	mu       sync.Mutex
	o        *operation // nil when it is complete
	parked   bool
	over     chan struct{}
	envelope Envelope
	status   Status
}

// begin starts an operation on a Buffer.
func (t *Team) begin(call string, kind C.int, v View, peer int, where int64, mem C.rank_mem_t) (*Request, error) {
	if err := v.hold(call, false); err != nil {
		return nil, err
	}
	r := &Request{team: t, call: call, views: []View{v}}
	return r.start(func(o *operation) C.int {
		return C.go_op_start(o.handle(), t.handle(), kind, v.pointer(), C.int64_t(v.n), toRank(peer), C.int64_t(where), handleOf(mem), C.GO_LATER, 1)
	})
}

// beginBytes starts an operation on memory that can be pinned.
func (t *Team) beginBytes(call string, kind C.int, data []byte, peer int, where int64, mem C.rank_mem_t) (*Request, error) {
	r := &Request{team: t, call: call}
	some := someBytes(data)
	r.pin.pin(some)
	return r.start(func(o *operation) C.int {
		return C.go_op_start(o.handle(), t.handle(), kind, unsafe.Pointer(&some[0]), C.int64_t(len(data)), toRank(peer), C.int64_t(where), handleOf(mem), C.GO_LATER, 1)
	})
}

// beginVector starts a message of several views.
func (t *Team) beginVector(call string, kind C.int, views []View, peer int, tag int64) (*Request, error) {
	r := &Request{team: t, call: call}
	for _, v := range views {
		if err := v.hold(call, true); err != nil {
			r.release()
			return nil, err
		}
		r.views = append(r.views, v)
	}
	return r.start(func(o *operation) C.int {
		// Zeroed: the garbage collector reads pointers that are overwritten.
		o.op.iov = (*C.rank_iov_t)(C.calloc(C.size_t(len(views)+1), C.sizeof_rank_iov_t))
		for i, iov := range unsafe.Slice(o.op.iov, len(views)) {
			v := views[i]
			iov.base, iov.bytes, iov.count, iov.stride = v.pointer(), C.int64_t(v.n), C.int64_t(v.count), C.int64_t(v.stride)
			unsafe.Slice(o.op.iov, len(views))[i] = iov
		}
		return C.go_op_start(o.handle(), t.handle(), kind, nil, C.int64_t(len(views)), toRank(peer), C.int64_t(tag), 0, C.GO_LATER, 1)
	})
}

// start takes an operation and runs begin. An error of begin is that of the call.
func (r *Request) start(begin func(o *operation) C.int) (*Request, error) {
	o := r.team.owner.take()
	if o == nil {
		r.release()
		return nil, r.team.explain(r.team.owner.takeFailed(r.call))
	}
	return r.startOn(o, begin)
}

// startOn runs begin on an operation.
func (r *Request) startOn(o *operation, begin func(o *operation) C.int) (*Request, error) {
	r.o = o
	r.over = make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	o.req.Store(r)
	if begin(o) == C.GO_DONE {
		started, reason := o.op.started != 0, o.reason()
		r.finish(false)
		if !started {
			return nil, r.team.failedFor(r.call, r.status, reason)
		}
	}
	return r, nil
}

func (r *Request) release() {
	releaseAll(r.views)
	r.views = nil
	r.pin.unpin()
}

// finish stores the end, and gives operation and memory back. Call it with r.mu held.
func (r *Request) finish(closed bool) {
	o := r.o
	if o == nil {
		return
	}
	r.envelope, r.status = o.result(closed)
	r.o = nil
	o.parked.Store(false)
	o.req.Store(nil)
	if r.transfer != nil {
		r.transfer.ended()
	} else {
		o.put()
		r.release()
	}
	runtime.KeepAlive(r.team)
	close(r.over)
}

// park leaves completion to the dispatcher. Call it with r.mu held.
func (r *Request) park() {
	o := r.o
	if o == nil || r.parked {
		return
	}
	r.parked = true
	o.parked.Store(true)
	if C.go_op_park(o.op) == C.GO_DONE {
		r.finish(false)
	} else if r.team.owner.over.Load() {
		r.finish(true)
	}
}

// parkAgain parks a request that a shut context has not parked.
func (r *Request) parkAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.o != nil && r.parked && r.o.op.how != C.GO_PARK {
		r.parked = false
		r.park()
	}
}

// poll tests for the end; if long, for the time of a short wait.
func (r *Request) poll(long bool) {
	if r.o == nil || r.parked {
		return
	}
	done := C.int(C.GO_PENDING)
	if long {
		done = C.go_op_wait(r.o.op)
	} else {
		done = C.go_op_test(r.o.op)
	}
	if done == C.GO_DONE {
		r.finish(false)
	} else if r.team.owner.over.Load() {
		r.finish(true)
	}
}

// Wait waits until the operation is complete, and returns its end. The Envelope is that of a receive. When ctx ends, the
// operation goes on: wait again, or Cancel it.
func (r *Request) Wait(ctx context.Context) (Envelope, error) {
	waits := ctx.Err() == nil
	r.mu.Lock()
	r.poll(waits)
	if waits {
		r.park()
	}
	r.mu.Unlock()
	select {
	case <-r.over:
		return r.end()
	default:
	}
	select {
	case <-r.over:
		return r.end()
	case <-ctx.Done():
		return Envelope{}, ended(r.call, ctx)
	}
}

func (r *Request) end() (Envelope, error) {
	return r.envelope, r.team.failed(r.call, r.status)
}

// Test makes progress, and reports whether the operation is complete. Then Wait returns at once.
func (r *Request) Test() bool {
	r.mu.Lock()
	r.poll(false)
	r.mu.Unlock()
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// Done returns a channel that is closed when the operation is complete. Then Wait returns at once.
func (r *Request) Done() <-chan struct{} {
	r.Forget()
	return r.over
}

// Forget lets the operation go on without a wait: its memory is given back when it is complete.
func (r *Request) Forget() {
	r.mu.Lock()
	r.park()
	r.mu.Unlock()
}

// Cancel cancels a send or a receive that has not begun. It ends with ErrCanceled, for Wait. Vectors and one-sided
// operations have always begun. No-op if it is complete.
func (r *Request) Cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.o != nil {
		C.go_op_cancel(r.o.op)
	}
}

// started starts an operation and waits for it. If ctx ends first, it goes on.
func started(ctx context.Context, call string, start func() (*Request, error)) (Envelope, error) {
	if ctx.Err() != nil {
		return Envelope{}, ended(call, ctx)
	}
	r, err := start()
	if err != nil {
		return Envelope{}, err
	}
	envelope, err := r.Wait(ctx)
	r.Forget() // no-op if it is complete
	return envelope, err
}

// WaitAll waits for all of them. Returns the first error in order. When ctx ends, all that are not complete go on.
func WaitAll(ctx context.Context, requests ...*Request) error {
	var first error
	for _, r := range requests {
		if _, err := r.Wait(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}
