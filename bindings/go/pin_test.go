// SPDX-License-Identifier: BSD-3-Clause

//go:build go1.21

package rank

import (
	"bytes"
	"runtime"
	"testing"
	"time"
)

// Memory of Go is pinned while requests use it.
func TestPinned(t *testing.T) {
	contexts, conns := pair(t)
	b := buffer(t, 1<<20)
	m, err := contexts[0].Register(b, ReadWrite)
	must(t, err)
	key, err := m.Key()
	must(t, err)
	remote, err := conns[1].Open(background, key)
	must(t, err)
	for i := 0; i < 50; i++ {
		out, in, back := make([]byte, 1<<uint(i%21)), make([]byte, 1<<20), make([]byte, 1<<20)
		for j := range out {
			out[j] = byte(i + j*5)
		}
		received, err := conns[1].IrecvBytes(in, 1)
		must(t, err)
		sent, err := conns[0].IsendBytes(out, 1)
		must(t, err)
		put, err := remote.IputBytes(out, 0)
		must(t, err)
		runtime.GC()
		must(t, WaitAll(background, received, sent, put))
		must(t, remote.Flush(background))
		got, err := remote.IgetBytes(back[:len(out)], 0)
		must(t, err)
		<-got.Done()
		must(t, WaitAll(background, got))
		check(t, bytes.Equal(in[:len(out)], out) && bytes.Equal(back[:len(out)], out), "%d bytes are damaged", len(out))
	}
	long := make([]byte, 8<<20)
	ctx, cancel := withTimeout(20 * time.Millisecond)
	defer cancel()
	is(t, "a pinned ssend", conns[0].Ssend(ctx, long, 9), ErrTimedOut)
}
