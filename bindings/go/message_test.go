// SPDX-License-Identifier: BSD-3-Clause

package rank

import (
	"bytes"
	"context"
	"math/rand"
	"sync"
	"testing"
	"time"
)

const modelMessages = 400

// message is one of the model: both sides make the same list of a seed.
type message struct {
	tag  int64
	data []byte
}

func modelOf(seed int64) []message {
	r := rand.New(rand.NewSource(seed))
	list := make([]message, modelMessages)
	for i := range list {
		n := []int{0, 8, 100, 4096, 4097, 70000, 300000}[r.Intn(7)]
		if n > 0 {
			n -= r.Intn(n/8 + 1)
		}
		list[i] = message{int64(r.Intn(3)), make([]byte, n)}
		r.Read(list[i].data)
	}
	return list
}

// cut makes views of parts of a Buffer of n bytes, in order.
func cut(b *Buffer, n int, r *rand.Rand) []View {
	var views []View
	for at := 0; at < n; {
		k := 1 + r.Intn(n-at)
		views = append(views, b.Slice(at, at+k))
		at += k
	}
	return views
}

// sendModel sends the list by calls of all forms.
func sendModel(t failer, conn *Conn, list []message, r *rand.Rand) {
	type pending struct {
		r *Request
		b *Buffer
	}
	var open []pending
	for i, m := range list {
		switch form := r.Intn(4); form {
		case 0:
			must(t, conn.Send(background, m.data, m.tag))
		case 1:
			ctx, cancel := withTimeout(20 * time.Second)
			must(t, conn.Ssend(ctx, m.data, m.tag))
			cancel()
		default:
			b := buffer(t, len(m.data))
			copy(b.Bytes(), m.data)
			var req *Request
			var err error
			if form == 2 {
				req, err = conn.Isend(b.All(), m.tag)
			} else {
				req, err = conn.Isendv(cut(b, len(m.data), r), m.tag)
			}
			must(t, err)
			b.Free() // it stays until the request is complete
			open = append(open, pending{req, b})
		}
		for len(open) > 0 && (len(open) > 8 || r.Intn(3) == 0 || i == len(list)-1) {
			_, err := open[0].r.Wait(background)
			must(t, err)
			check(t, open[0].b.uses.Load() == 0, "a complete send uses its Buffer")
			open = open[1:]
		}
	}
}

// recvModel receives the list by calls of all forms.
func recvModel(t failer, conn *Conn, list []message, r *rand.Rand) {
	type pending struct {
		r *Request
		b *Buffer
		i int
	}
	var open []pending
	same := func(i int, data []byte, e Envelope) {
		m := list[i]
		check(t, e.Tag == m.tag && e.Bytes == len(m.data) && e.SentBytes == len(m.data) && e.Source == 1-conn.Rank(),
			"message %d of %d bytes with tag %d: %+v", i, len(m.data), m.tag, e)
		check(t, bytes.Equal(data[:e.Bytes], m.data), "message %d of %d bytes is damaged", i, len(m.data))
		check(t, len(bytes.Trim(data[e.Bytes:], "\x00")) == 0, "message %d of %d bytes damages what is behind it", i, len(m.data))
	}
	for i, m := range list {
		tag, room := m.tag, len(m.data)+r.Intn(100)
		if r.Intn(3) == 0 {
			tag = AnyTag
		}
		switch form := r.Intn(5); form {
		case 0:
			data := make([]byte, room)
			e, err := conn.Recv(background, data, tag)
			must(t, err)
			same(i, data, e)
		case 1:
			ctx, cancel := withTimeout(20 * time.Second)
			data := make([]byte, room)
			e, err := conn.Recv(ctx, data, tag)
			cancel()
			must(t, err)
			same(i, data, e)
		case 2:
			data, e, err := conn.RecvNew(background, tag)
			must(t, err)
			same(i, data, e)
		default:
			b := buffer(t, room)
			var req *Request
			var err error
			if form == 3 {
				req, err = conn.Irecv(b.All(), tag)
			} else {
				req, err = conn.Irecvv(cut(b, room, r), tag)
			}
			must(t, err)
			open = append(open, pending{req, b, i})
		}
		for len(open) > 0 && (len(open) > 8 || r.Intn(3) == 0 || i == len(list)-1) {
			p := open[0]
			if r.Intn(2) == 0 {
				<-p.r.Done()
			}
			e, err := p.r.Wait(background)
			must(t, err)
			same(p.i, p.b.Bytes(), e)
			p.b.Free()
			open = open[1:]
		}
	}
}

// modelSide sends one list and receives another, at the same time.
func modelSide(t failer, c *Context, conn *Conn, seed int64) {
	var wg sync.WaitGroup
	wg.Add(2)
	me := int64(conn.Rank())
	go func() {
		defer wg.Done()
		sendModel(t, conn, modelOf(seed+me), rand.New(rand.NewSource(seed+10+me)))
	}()
	go func() {
		defer wg.Done()
		recvModel(t, conn, modelOf(seed+1-me), rand.New(rand.NewSource(seed+20+me)))
	}()
	wg.Wait()
}

func init() {
	sides["messages"] = modelSide
}

func TestMessages(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	contexts, conns := pair(t)
	info, err := conns[1].Info()
	must(t, err)
	check(t, info.Name == "side 0" && string(info.Hello) == "hi" && info.Proved, "info: %+v", info)
	var wg sync.WaitGroup
	wg.Add(2)
	for i := range conns {
		go func(i int) {
			defer wg.Done()
			modelSide(t, contexts[i], conns[i], seed)
		}(i)
	}
	wg.Wait()
}

func TestMessagesOfTwoProcesses(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	c, conn, cmd := withProcess(t, "messages", seed)
	modelSide(t, c, conn, seed)
	must(t, cmd.Wait())
}

// Each goroutine has its tag and answers its partner. None may hold a thread: messages are short.
func TestThousandGoroutines(t *testing.T) {
	const goroutines, rounds = 1000, 10
	_, conns := pair(t)
	var wg sync.WaitGroup
	wg.Add(2 * goroutines)
	for side := range conns {
		for g := 0; g < goroutines; g++ {
			go func(conn *Conn, side, g int) {
				defer wg.Done()
				ctx, cancel := withTimeout(60 * time.Second)
				defer cancel()
				data := make([]byte, 64+g)
				for i := 0; i < rounds; i++ {
					if (i+side)%2 == 0 {
						data[g%64] = byte(i)
						must(t, conn.Send(ctx, data, int64(g)))
						continue
					}
					data[g%64] = 0xff
					e, err := conn.Recv(ctx, data, int64(g))
					must(t, err)
					check(t, e.Bytes == len(data) && data[g%64] == byte(i), "goroutine %d, round %d: %+v", g, i, e)
				}
			}(conns[side], side, g)
		}
	}
	wg.Wait()
	if n := threads(); n > goroutines {
		t.Errorf("%d threads for goroutines that wait", n)
	}
}

// Blocking calls of short messages and puts allocate nothing, also with a deadline that is not reached.
func TestAllocations(t *testing.T) {
	contexts, conns := pair(t)
	m, err := contexts[0].Alloc(64, ReadWrite)
	must(t, err)
	key, err := m.Key()
	must(t, err)
	remote, err := conns[1].Open(background, key)
	must(t, err)
	limit, cancel := withTimeout(20 * time.Second)
	defer cancel()
	data, back := make([]byte, 8), make([]byte, 8)
	for _, ctx := range []context.Context{background, limit} {
		ctx := ctx
		n := 1.0
		for try := 0; try < 50 && n > 0; try++ { // a call that waits long allocates: on a busy machine some do
			n = testing.AllocsPerRun(10, func() {
				must(t, conns[0].Send(ctx, data, 1))
				_, err := conns[1].Recv(ctx, back, 1)
				must(t, err)
				must(t, remote.Put(ctx, data, 0))
				must(t, remote.Get(ctx, back, 8))
				must(t, remote.Flush(background))
			})
		}
		check(t, n == 0, "%v allocations", n)
	}
}
