// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

const bufferAlign = 4096

// Buffer is zeroed memory that the garbage collector neither moves nor frees. Nonblocking operations and peers access it.
type Buffer struct {
	p     unsafe.Pointer
	n     int
	uses  atomic.Int64 // Free, operations and registrations
	freed atomic.Bool

	shared bool // of Context.Alloc: the library frees it
}

// Alloc allocates n bytes, aligned to pages. Free them.
func Alloc(n int) (*Buffer, error) {
	const call = "alloc"
	if n < 0 {
		return nil, wrong(call, ErrCount, fmt.Sprintf("%d bytes: use 0 or more", n))
	}
	b := &Buffer{n: n}
	room := C.size_t(n)
	if n == 0 {
		room = 1
	}
	if C.posix_memalign(&b.p, bufferAlign, room) != 0 {
		return nil, fail(call, ErrNoMemory)
	}
	for i, data := 0, unsafe.Slice((*byte)(b.p), n); i < len(data); i++ {
		data[i] = 0
	}
	b.uses.Store(1)
	return b, nil
}

// Free frees it when no operation and no Mem uses it any more. Slices of Bytes must not be used afterwards. No-op for memory
// of Context.Alloc.
func (b *Buffer) Free() {
	if !b.shared && b.freed.CompareAndSwap(false, true) {
		b.release()
	}
}

func (b *Buffer) release() {
	if b.uses.Add(-1) == 0 && !b.shared {
		C.free(b.p)
	}
}

// retain returns false if the memory is freed.
func (b *Buffer) retain() bool {
	for {
		n := b.uses.Load()
		if n == 0 || b.freed.Load() {
			return false
		}
		if b.uses.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Len returns its length in bytes.
func (b *Buffer) Len() int {
	return b.n
}

// Bytes returns its memory, without a copy.
func (b *Buffer) Bytes() []byte {
	return unsafe.Slice((*byte)(b.p), b.n)
}

// All returns the whole of it.
func (b *Buffer) All() View {
	return View{buf: b, n: b.n}
}

// Slice returns bytes from to to-1. It panics if they are not in the Buffer, as b.Bytes()[from:to] does.
func (b *Buffer) Slice(from, to int) View {
	_ = b.Bytes()[from:to]
	return View{buf: b, off: from, n: to - from}
}

// View is a part of a Buffer: bytes in a row, or blocks at equal distances.
type View struct {
	buf    *Buffer
	off, n int
	count  int // 0: one block
	stride int
}

// Repeat returns count blocks as v, each stride bytes after the one before. It is for vectors. It panics if they are not in
// the Buffer.
func (v View) Repeat(count, stride int) View {
	if count < 1 || v.count != 0 {
		panic("rank: Repeat needs a count of 1 or more, and is done once")
	}
	span := stride * (count - 1)
	if count > 1 && span/(count-1) != stride || v.off+span < 0 || v.off+span > v.buf.n-v.n {
		panic(fmt.Sprintf("rank: Repeat(%d, %d) leaves the Buffer of %d bytes", count, stride, v.buf.n))
	}
	v.count, v.stride = count, stride
	return v
}

// Len returns the number of bytes.
func (v View) Len() int {
	if v.count > 0 {
		return v.n * v.count
	}
	return v.n
}

// Bytes returns the memory of the first block, without a copy.
func (v View) Bytes() []byte {
	return v.buf.Bytes()[v.off : v.off+v.n]
}

func (v View) pointer() unsafe.Pointer {
	return unsafe.Add(v.buf.p, v.off)
}

// hold keeps the memory for an operation. release ends that.
func (v View) hold(call string, vector bool) error {
	if v.buf == nil {
		return wrong(call, ErrArg, "the View is of no Buffer")
	}
	if v.count > 1 && !vector {
		return wrong(call, ErrArg, "the View has several blocks; use a vector, such as Sendv")
	}
	if !v.buf.retain() {
		return wrong(call, ErrHandle, "the Buffer is freed")
	}
	return nil
}

func releaseAll(views []View) {
	for _, v := range views {
		v.buf.release()
	}
}
