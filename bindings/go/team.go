// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Special values of a tag and of a peer.
const (
	AnyTag    int64 = C.RANK_ANY_TAG    // of a receive: every message
	AnySource int   = C.RANK_ANY_SOURCE // of a receive: every rank
	ProcNull  int   = C.RANK_PROC_NULL  // no process: the call is complete at once
)

// Undefined is the color of a rank that Split gives no team.
const Undefined int = C.RANK_UNDEFINED

// Team is a group of ranks. A connection is a team of two.
//
// Blocking calls take any memory. Up to 4 KiB is copied. More is used in place: before Go 1.21 its call, or a goroutine of
// the package, then holds a thread until the operation ends.
type Team struct {
	owner    *Context
	c        *C.go_team
	rank     int
	size     int
	peer     int // of a connection: the other side
	conn     bool
	shutDown atomic.Bool
	shutAt   atomic.Int64 // time in ns; 0: it is not
	closing  sync.Once
	gone     chan struct{} // closed when it is closed
	status   Status        // of the close, after gone
	order    chan struct{} // has an element while a collective runs
}

// newTeam makes a Team of a team of C, which it frees when nothing refers to it any more.
func newTeam(owner *Context, native *C.go_team, conn bool) *Team {
	t := &Team{owner: owner, c: native, rank: int(C.go_team_rank(native)), size: int(C.go_team_size(native)), peer: Undefined,
		conn: conn, gone: make(chan struct{}), order: make(chan struct{}, 1)}
	if conn {
		t.peer = 1 - t.rank
	}
	runtime.SetFinalizer(t, func(t *Team) { C.go_team_drop(t.c) })
	return t
}

// toRank returns a rank for C. The library refuses Undefined.
func toRank(peer int) C.int {
	if int(int32(peer)) != peer {
		return C.RANK_UNDEFINED
	}
	return C.int(peer)
}

// handle returns its C part for a call that cgo does not check.
func (t *Team) handle() C.go_handle {
	return C.go_handle(uintptr(unsafe.Pointer(t.c)))
}

// handleOf returns a memory for a call that cgo does not check.
func handleOf(mem C.rank_mem_t) C.go_handle {
	return C.go_handle(uintptr(unsafe.Pointer(mem)))
}

// Rank returns the rank of this side. In a connection 0 has connected, and 1 has accepted.
func (t *Team) Rank() int {
	return t.rank
}

// Size returns the number of ranks.
func (t *Team) Size() int {
	return t.size
}

// Context returns its Context.
func (t *Team) Context() *Context {
	return t.owner
}

// shut refuses calls from now on, and waits for those that are about to use the team.
func (t *Team) shut() {
	t.shutDown.Store(true)
	t.shutAt.CompareAndSwap(0, time.Now().UnixNano())
	C.go_team_shut(t.c)
}

// end closes the team once with a call of C. If all is true, no call is left in it before, else after: a call that had
// begun when the team was shut gets the grace to wait in the library, which ends it then.
func (t *Team) end(all bool, closes func() Status) Status {
	t.closing.Do(func() {
		limit := t.shutAt.Load() + int64(grace)
		for C.go_team_blocked(t.c) > 0 && (all || time.Now().UnixNano() < limit) {
			time.Sleep(drainPause)
		}
		t.status = closes()
		for C.go_team_blocked(t.c) > 0 {
			time.Sleep(drainPause)
		}
		close(t.gone)
	})
	<-t.gone
	return t.status
}

// Free frees a team of Split or Dup, and refuses calls from now on. It waits for calls of other goroutines that hold a
// thread, and not for other ranks. Other calls and requests go on: a receive still waits for its message. Free its memory
// first. When ctx ends, it goes on in another goroutine. ErrState: the team is that of Init, which Finalize ends. Free of a
// connection is Disconnect.
func (t *Team) Free(ctx context.Context) error {
	const call = "free"
	if t.conn {
		return (&Conn{t}).Disconnect(ctx)
	}
	if t.owner.team == t {
		return wrong(call, ErrState, "Finalize ends the team of all ranks")
	}
	t.shut()
	return closes(ctx, call, func() Status {
		return t.end(true, func() Status { return Status(C.go_team_close(t.c)) })
	})
}

// Split makes teams of the ranks of equal color, which is >= 0. They are ordered by key, then by rank here. Collective. A
// rank with the color Undefined gets nil. When ctx ends, it goes on, and its team is freed.
func (t *Team) Split(ctx context.Context, color, key int) (*Team, error) {
	return t.split(ctx, "split", C.GO_SPLIT, color, key)
}

// SplitShared is Split by shared memory: ranks of a team can load and store each other's memory of Alloc.
func (t *Team) SplitShared(ctx context.Context, key int) (*Team, error) {
	return t.split(ctx, "split by shared memory", C.GO_SPLIT_SHARED, 0, key)
}

// Dup makes a team of the same ranks with its own tags. Collective.
func (t *Team) Dup(ctx context.Context) (*Team, error) {
	return t.split(ctx, "dup", C.GO_DUP, 0, 0)
}

func (t *Team) split(ctx context.Context, call string, how C.int, color, key int) (*Team, error) {
	if int(int32(color)) != color || int(int32(key)) != key {
		return nil, wrong(call, ErrArg, "color and key are numbers of 32 bits")
	}
	made, err := inOrder(ctx, t, call, func() (*Team, Status) {
		var native *C.go_team
		status := Status(C.go_team_make(t.c, how, C.int(color), C.int(key), &native))
		if status != success || native == nil {
			return nil, status
		}
		return newTeam(t.owner, native, false), success
	}, func(made *Team) {
		if made != nil {
			made.Free(context.Background())
		}
	})
	return made, err
}

// inOrder runs a collective. Those of a team run one after the other, also those that ctx has left.
func inOrder[T any](ctx context.Context, t *Team, call string, run func() (T, Status), drop func(T)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, ended(call, ctx)
	}
	select {
	case t.order <- struct{}{}:
	default:
		select {
		case t.order <- struct{}{}:
		case <-ctx.Done():
			return none, ended(call, ctx)
		}
	}
	value, err := begun(ctx, call, func() (T, Status) {
		value, status := run()
		<-t.order
		runtime.KeepAlive(t)
		return value, t.judge(status)
	}, drop)
	return value, t.explain(err)
}

// explain adds why a call on a world that has ended is ErrClosed.
func (t *Team) explain(err error) error {
	if e, ok := err.(*Error); ok && e.Status == ErrClosed && t.owner.world && t.owner.isClosing() {
		e.Detail = "Finalize has ended the world"
	}
	return err
}

// Send sends a message to peer. It returns when data may be used again. Long messages wait for their receive. When ctx ends,
// a send that has not begun is canceled. One that has begun goes on: the peer may receive it, and data must not change any
// more.
func (t *Team) Send(ctx context.Context, data []byte, peer int, tag int64) error {
	_, err := t.block(ctx, "send", C.GO_SEND, data, peer, tag, nil)
	return err
}

// Ssend is Send that returns only after a receive has matched the message.
func (t *Team) Ssend(ctx context.Context, data []byte, peer int, tag int64) error {
	_, err := t.block(ctx, "ssend", C.GO_SSEND, data, peer, tag, nil)
	return err
}

// Recv receives a message of peer or AnySource with tag or AnyTag. ErrTruncated: it is longer than data, and the rest is
// lost. When ctx ends, a receive that has no message yet is canceled. One that has begun goes on: its message is lost, and
// data must not be used any more.
func (t *Team) Recv(ctx context.Context, data []byte, peer int, tag int64) (Envelope, error) {
	return t.block(ctx, "recv", C.GO_RECV, data, peer, tag, nil)
}

// Sendrecv sends out to dest, and receives a message of source into in, at the same time. The Envelope is that of the
// receive. The call holds a thread. When ctx ends, both go on: out and in must not be used any more.
func (t *Team) Sendrecv(ctx context.Context, out []byte, dest int, tagOut int64, in []byte, source int, tagIn int64) (Envelope, error) {
	const call = "sendrecv"
	from, to := someBytes(out), someBytes(in)
	envelope, err := later(ctx, call, func() (Envelope, Status) {
		var native C.rank_envelope_t
		status := Status(C.go_sendrecv(t.c, unsafe.Pointer(&from[0]), C.int64_t(len(out)), toRank(dest), C.int64_t(tagOut),
			unsafe.Pointer(&to[0]), C.int64_t(len(in)), toRank(source), C.int64_t(tagIn), &native))
		runtime.KeepAlive(t)
		return Envelope{int(native.source), int64(native.tag), int(native.bytes), int(native.sent_bytes)}, t.judge(status)
	}, nil)
	return envelope, t.explain(err)
}

// Isend starts a send. Vectors are started with Isendv.
func (t *Team) Isend(v View, peer int, tag int64) (*Request, error) {
	return t.begin("isend", C.GO_SEND, v, peer, tag, nil)
}

// Issend starts a send that is complete only after a receive has matched it.
func (t *Team) Issend(v View, peer int, tag int64) (*Request, error) {
	return t.begin("issend", C.GO_SSEND, v, peer, tag, nil)
}

// Irecv starts a receive of peer or AnySource. The views of pending receives must not overlap.
func (t *Team) Irecv(v View, peer int, tag int64) (*Request, error) {
	return t.begin("irecv", C.GO_RECV, v, peer, tag, nil)
}

// Isendv starts a send of several views as one message.
func (t *Team) Isendv(views []View, peer int, tag int64) (*Request, error) {
	return t.beginVector("isendv", C.GO_SENDV, views, peer, tag)
}

// Irecvv starts a receive of one message into several views.
func (t *Team) Irecvv(views []View, peer int, tag int64) (*Request, error) {
	return t.beginVector("irecvv", C.GO_RECVV, views, peer, tag)
}

// Sendv sends several views as one message. When ctx ends, it goes on, and the buffers stay until it is complete.
func (t *Team) Sendv(ctx context.Context, views []View, peer int, tag int64) error {
	_, err := started(ctx, "sendv", func() (*Request, error) { return t.Isendv(views, peer, tag) })
	return err
}

// Recvv receives one message into several views. When ctx ends, it goes on, and takes the next message that matches.
func (t *Team) Recvv(ctx context.Context, views []View, peer int, tag int64) (Envelope, error) {
	return started(ctx, "recvv", func() (*Request, error) { return t.Irecvv(views, peer, tag) })
}

// RecvNew receives a message of any length into new memory. When ctx ends, the message stays for the next receive, unless
// its data is already on the way.
func (t *Team) RecvNew(ctx context.Context, peer int, tag int64) ([]byte, Envelope, error) {
	const call = "recv"
	var message C.rank_message_t
	var native C.rank_envelope_t
	err := inSlices(ctx, call, func(ns int64) Status {
		return t.judge(Status(C.go_mprobe(t.c, toRank(peer), C.int64_t(tag), C.int64_t(ns), &message, &native)))
	})
	if err != nil {
		return nil, Envelope{}, t.explain(err)
	}
	data := make([]byte, int(native.bytes))
	some := someBytes(data)
	var received C.rank_envelope_t
	status := Status(C.go_mrecv(t.c, unsafe.Pointer(&some[0]), C.int64_t(len(data)), &message, &received))
	runtime.KeepAlive(t)
	if status != success {
		return nil, Envelope{}, t.failed(call, status)
	}
	return data, Envelope{int(received.source), int64(received.tag), int(received.bytes), int(received.sent_bytes)}, nil
}
