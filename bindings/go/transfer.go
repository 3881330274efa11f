// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
import "C"

import (
	"context"
	"sync/atomic"
)

// Transfer is a list that can be started many times, one at a time. Its Views are held until Close.
type Transfer struct {
	team  *Team
	call  string
	n     int
	views []View
	o     *operation
	state atomic.Int32
}

const (
	transferIdle int32 = iota
	transferRunning
	transferClosing // it is closed at its end
	transferClosed
)

// PrepareWrite is IwriteList of which Start starts each copy. The blocks are checked here, and blocks and notice may be used
// again.
func (t *Team) PrepareWrite(blocks []Block, peer int, notice *Notice) (*Transfer, error) {
	return t.prepare("write a list", C.GO_WRITE, blocks, peer, notice)
}

// PrepareRead is IreadList of which Start starts each copy. Else it is as PrepareWrite.
func (t *Team) PrepareRead(blocks []Block, peer int, notice *Notice) (*Transfer, error) {
	return t.prepare("read a list", C.GO_READ, blocks, peer, notice)
}

func (t *Team) prepare(call string, kind C.int, blocks []Block, peer int, notice *Notice) (*Transfer, error) {
	views, err := t.holdBlocks(call, blocks, peer)
	if err != nil {
		return nil, err
	}
	x := &Transfer{team: t, call: call, n: len(blocks), views: views, o: t.owner.take()}
	if x.o == nil {
		releaseAll(views)
		return nil, t.explain(t.owner.takeFailed(call))
	}
	x.o.writeList(blocks, notice)
	_, err = reasoned(call, func() (struct{}, Status) {
		return struct{}{}, t.judge(Status(C.go_op_prepare(x.o.op, t.c, kind, C.int64_t(len(blocks)), toRank(peer))))
	})
	if err != nil {
		x.release()
		return nil, t.explain(err)
	}
	return x, nil
}

// Istart starts the list. ErrState: it has been started, and has not ended.
func (x *Transfer) Istart() (*Request, error) {
	if !x.state.CompareAndSwap(transferIdle, transferRunning) {
		if x.state.Load() == transferRunning {
			return nil, wrong(x.call, ErrState, "the list has been started, and has not ended")
		}
		return nil, wrong(x.call, ErrHandle, "the Transfer is closed")
	}
	r := &Request{team: x.team, call: x.call, transfer: x}
	return r.startOn(x.o, func(o *operation) C.int {
		return C.go_op_start(o.handle(), x.team.handle(), C.GO_START, nil, C.int64_t(x.n), 0, 0, 0, C.GO_LATER, 1)
	})
}

// Start starts the list and waits for its end. When ctx ends, it goes on.
func (x *Transfer) Start(ctx context.Context) error {
	_, err := started(ctx, x.call, x.Istart)
	return err
}

// Close gives the memory back, at the end of a list that is not complete. No-op if it is closed.
func (x *Transfer) Close() {
	for state := x.state.Load(); state == transferIdle || state == transferRunning; state = x.state.Load() {
		if x.state.CompareAndSwap(transferIdle, transferClosed) {
			x.release()
		} else {
			x.state.CompareAndSwap(transferRunning, transferClosing)
		}
	}
}

// ended makes it ready for the next start.
func (x *Transfer) ended() {
	x.o.op.started, x.o.op.canceled = 0, 0
	if !x.state.CompareAndSwap(transferRunning, transferIdle) {
		x.state.Store(transferClosed)
		x.release()
	}
}

func (x *Transfer) release() {
	x.o.put()
	releaseAll(x.views)
	x.views = nil
}
