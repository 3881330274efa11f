// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"sync"
	"unsafe"
)

// Access is what peers may do with registered memory.
type Access uint

// The rights of peers. Puts and signals need Write, gets Read, atomics that return a value both.
const (
	Read      Access = C.RANK_ACCESS_READ
	Write     Access = C.RANK_ACCESS_WRITE
	ReadWrite Access = Read | Write
)

// Mem is registered memory: peers that have its key can access it.
type Mem struct {
	owner  *Context
	mem    C.rank_mem_t
	buf    *Buffer
	end    sync.Once
	status Status // of Deregister, after end
}

// Register registers a Buffer for all connections of the context. It stays until Deregister.
func (c *Context) Register(b *Buffer, access Access) (*Mem, error) {
	const call = "register"
	if b == nil {
		return nil, wrong(call, ErrArg, "there is no Buffer")
	}
	if !b.retain() {
		return nil, wrong(call, ErrHandle, "the Buffer is freed")
	}
	m := &Mem{owner: c, buf: b}
	return m, c.registered(call, m, func() Status {
		return Status(C.go_mem_register(c.c, b.p, C.int64_t(b.n), C.uint(access), &m.mem))
	})
}

// Alloc allocates n bytes of shared memory, which peers of this host map, and registers them. Deregister frees them, and so
// does Close of the context. The Buffer needs no Free.
func (c *Context) Alloc(n int, access Access) (*Mem, error) {
	m := &Mem{owner: c, buf: &Buffer{n: n, shared: true}}
	m.buf.uses.Store(1)
	return m, c.registered("alloc", m, func() Status {
		return Status(C.go_mem_alloc(c.c, C.int64_t(n), C.uint(access), &m.buf.p, &m.mem))
	})
}

// registered adds a Mem that run has registered, or gives its Buffer back.
func (c *Context) registered(call string, m *Mem, run func() Status) error {
	_, err := reasoned(call, func() (struct{}, Status) {
		status := run()
		c.mu.Lock()
		defer c.mu.Unlock()
		if status == success && c.mems == nil {
			status = ErrClosed
		} else if status == success {
			c.mems[m] = struct{}{}
		}
		return struct{}{}, status
	})
	if err != nil {
		m.buf.release()
	}
	return err
}

// Buffer returns its memory.
func (m *Mem) Buffer() *Buffer {
	return m.buf
}

// Key returns the key, for Conn.Open of a peer.
func (m *Mem) Key() ([]byte, error) {
	var key [C.RANK_RKEY_MAX]byte
	n := C.size_t(len(key))
	status := Status(C.go_mem_pack(m.owner.c, m.mem, unsafe.Pointer(&key[0]), &n))
	if status != success {
		return nil, fail("key", status)
	}
	return append([]byte(nil), key[:int(n)]...), nil
}

// Keys returns the keys of several memories of the context as one list, for Conn.OpenAll of a peer.
func (c *Context) Keys(mems ...*Mem) ([]byte, error) {
	const call = "keys"
	handles := make([]C.rank_mem_t, len(mems)+1) // none is empty
	for i, m := range mems {
		handles[i] = m.mem
	}
	var n C.size_t
	status := Status(C.go_mem_pack_all(c.c, C.int64_t(len(mems)), &handles[0], nil, &n))
	if status != success {
		return nil, fail(call, status)
	}
	keys := make([]byte, int(n)+1)
	status = Status(C.go_mem_pack_all(c.c, C.int64_t(len(mems)), &handles[0], unsafe.Pointer(&keys[0]), &n))
	return keys[:int(n)], fail(call, status)
}

// Deregister ends the access of peers, and waits until those of this host have confirmed. No other call may use the Mem
// meanwhile. ErrTimedOut: ctx has ended before, and a peer may still touch the memory, which is never freed then. ErrState:
// operations use the memory of Alloc. Close of the context does the same.
func (m *Mem) Deregister(ctx context.Context) error {
	const call = "deregister"
	if m.buf.shared && m.buf.uses.Load() > 1 {
		return wrong(call, ErrState, "operations use the memory")
	}
	return closes(ctx, call, func() Status {
		m.end.Do(func() { m.status = m.deregister(ctx) })
		return m.status
	})
}

func (m *Mem) deregister(ctx context.Context) Status {
	c := m.owner
	c.mu.Lock()
	_, registered := c.mems[m]
	delete(c.mems, m)
	c.mu.Unlock()
	if !registered {
		return success // the context has closed it
	}
	m.buf.freed.Store(m.buf.shared || m.buf.freed.Load())
	status := Status(C.go_mem_deregister(c.c, m.mem, C.int64_t(untilNs(ctx))))
	if status == ErrClosed { // a close of the context is about to
		<-c.closed
		if status = success; c.unconfirmed.Load() {
			status = ErrTimedOut
		}
	}
	if status != ErrTimedOut {
		m.buf.release()
	}
	return status
}

// Cmp compares a signal with a value.
type Cmp int

// The comparisons of WaitSignal.
const (
	Equal        Cmp = C.RANK_CMP_EQ
	NotEqual     Cmp = C.RANK_CMP_NE
	Greater      Cmp = C.RANK_CMP_GT
	GreaterEqual Cmp = C.RANK_CMP_GE
	Less         Cmp = C.RANK_CMP_LT
	LessEqual    Cmp = C.RANK_CMP_LE
)

// WaitSignal waits for a signal of PutSignal at offset, a multiple of 8, that compares with value. Returns the value that
// ended the wait. When ctx ends, the signal is not affected. The call holds a thread.
func (m *Mem) WaitSignal(ctx context.Context, offset int64, cmp Cmp, value uint64) (uint64, error) {
	return m.owner.waitSignal(ctx, m.mem, offset, cmp, value)
}

func (c *Context) waitSignal(ctx context.Context, mem C.rank_mem_t, offset int64, cmp Cmp, value uint64) (uint64, error) {
	var seen C.uint64_t
	err := inSlices(ctx, "wait for a signal", func(ns int64) Status {
		return Status(C.go_signal_wait(c.c, mem, C.int64_t(offset), C.int(cmp), C.uint64_t(value), C.int64_t(ns), &seen))
	})
	return uint64(seen), err
}

// Remote is memory of a peer.
type Remote struct {
	team *Team
	peer int
	mem  C.rank_mem_t
	part bool // of a TeamMem, which has the handle
	end  sync.Once
}

// Open opens a key of peer. It may wait until the peer makes progress. When ctx ends, the memory is closed again.
func (t *Team) Open(ctx context.Context, key []byte, peer int) (*Remote, error) {
	copied := append([]byte{0}, key...) // of this call, which may outlive ctx
	r, err := later(ctx, "open", func() (*Remote, Status) {
		r := &Remote{team: t, peer: peer}
		n := C.size_t(len(copied) - 1)
		status := Status(C.go_remote_open(t.c, toRank(peer), unsafe.Pointer(&copied[1:][: len(copied)-1 : len(copied)-1][0]), n, &r.mem))
		return r, t.judge(status)
	}, func(r *Remote) { r.Close(context.Background()) })
	return r, t.explain(err)
}

// Close flushes and closes it. That of a TeamMem is only flushed. No other call may use it meanwhile. When ctx ends, it is closed later.
func (r *Remote) Close(ctx context.Context) error {
	if r.part {
		return r.Flush(ctx)
	}
	var err error
	r.end.Do(func() {
		over := make(chan Status, 1)
		go func() { over <- r.team.judge(Status(C.go_remote_close(r.team.c, r.mem))) }()
		select {
		case status := <-over:
			err = fail("close", status)
		case <-ctx.Done():
			err = ended("close", ctx)
		}
	})
	return err
}

// Put copies data to offset. It returns when data may be used again. Flush makes it visible. When ctx ends, it goes on: data
// must not change any more.
func (r *Remote) Put(ctx context.Context, data []byte, offset int64) error {
	_, err := r.team.block(ctx, "put", C.GO_PUT, data, r.peer, offset, r.mem)
	return err
}

// Get copies from offset to data. When ctx ends, it goes on: data must not be used any more.
func (r *Remote) Get(ctx context.Context, data []byte, offset int64) error {
	_, err := r.team.block(ctx, "get", C.GO_GET, data, r.peer, offset, r.mem)
	return err
}

// Iput starts a Put. It is complete when the View may be used again.
func (r *Remote) Iput(v View, offset int64) (*Request, error) {
	return r.team.begin("iput", C.GO_PUT, v, r.peer, offset, r.mem)
}

// Iget starts a Get. It is complete when the View has the data.
func (r *Remote) Iget(v View, offset int64) (*Request, error) {
	return r.team.begin("iget", C.GO_GET, v, r.peer, offset, r.mem)
}

// Flush completes all puts and atomics: they are visible at the peer then. When ctx ends, it goes on.
func (r *Remote) Flush(ctx context.Context) error {
	if ctx.Done() == nil { // without a closure
		status := Status(C.go_remote_flush(r.team.handle(), toRank(r.peer), handleOf(r.mem)))
		return r.team.failed("flush", status)
	}
	return r.team.waits(ctx, "flush", func() Status { return Status(C.go_remote_flush(r.team.handle(), toRank(r.peer), handleOf(r.mem))) })
}

// Fence orders puts, atomics and signals before it and later ones. When ctx ends, it goes on.
func (r *Remote) Fence(ctx context.Context) error {
	return r.team.waits(ctx, "fence", func() Status { return Status(C.go_remote_fence(r.team.c, r.mem)) })
}

// Block is a part of a list: memory here, and memory of the peer.
type Block struct {
	Local  View
	Remote *Remote // of WriteList and ReadList
	Offset int64   // in the memory of the peer
}

// vector carries out puts or gets of blocks.
func (r *Remote) vector(ctx context.Context, call string, put C.int, blocks []Block) error {
	held := make([]View, 0, len(blocks))
	// Zeroed: the garbage collector reads pointers that are overwritten.
	pieces := (*C.rank_piece_t)(C.calloc(C.size_t(len(blocks)+1), C.sizeof_rank_piece_t))
	drop := func() {
		releaseAll(held)
		C.free(unsafe.Pointer(pieces))
	}
	list := unsafe.Slice(pieces, len(blocks))
	for i, b := range blocks {
		if err := b.Local.hold(call, false); err != nil {
			drop()
			return err
		}
		held = append(held, b.Local)
		list[i] = C.rank_piece_t{local: b.Local.pointer(), bytes: C.int64_t(b.Local.n), offset: C.int64_t(b.Offset)}
	}
	if ctx.Err() != nil {
		drop()
		return ended(call, ctx)
	}
	_, err := begun(ctx, call, func() (struct{}, Status) {
		defer drop()
		return struct{}{}, r.team.judge(Status(C.go_remote_vector(r.team.c, toRank(r.peer), r.mem, put, pieces, C.int64_t(len(blocks)))))
	}, nil)
	return r.team.explain(err)
}

// Putv puts blocks. If one is invalid, none moves. When ctx ends, it goes on, and the buffers stay until it is complete.
func (r *Remote) Putv(ctx context.Context, blocks []Block) error {
	return r.vector(ctx, "putv", 1, blocks)
}

// Getv gets blocks, which must not overlap here. If one is invalid, none moves. When ctx ends, it goes on, and the buffers
// stay until it is complete.
func (r *Remote) Getv(ctx context.Context, blocks []Block) error {
	return r.vector(ctx, "getv", 0, blocks)
}

// SignalOp is what PutSignal does to the signal.
type SignalOp int

// The operations of PutSignal.
const (
	SignalSet SignalOp = C.RANK_SIGNAL_SET
	SignalAdd SignalOp = C.RANK_SIGNAL_ADD
)

// PutSignal puts data, then updates the signal, a number of 8 bytes at signalOffset of signal, and wakes the peer. A reader
// of the new value finds the data. When ctx ends, it goes on with a copy of data.
func (r *Remote) PutSignal(ctx context.Context, data []byte, offset int64, signal *Remote, signalOffset int64, value uint64, op SignalOp) error {
	some := someBytes(data)
	if ctx.Done() != nil {
		some = someBytes(append([]byte(nil), data...))
	}
	return r.team.waits(ctx, "put with a signal", func() Status {
		return Status(C.go_remote_put_signal(r.team.c, toRank(r.peer), r.mem, unsafe.Pointer(&some[0]), C.int64_t(len(data)), C.int64_t(offset),
			signal.mem, C.int64_t(signalOffset), C.uint64_t(value), C.int(op)))
	})
}
