// SPDX-License-Identifier: BSD-3-Clause

package rank

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"strings"
	"testing"
	"time"
)

const (
	memBytes = 1 << 18
	signalAt = memBytes // behind the data
)

// remoteSide has the memory. It compares it with the model each time the peer signals.
func remoteSide(t failer, c *Context, conn *Conn, seed int64) {
	b := buffer(t, memBytes+8)
	m, err := c.Register(b, ReadWrite)
	must(t, err)
	b.Free()
	key, err := m.Key()
	must(t, err)
	must(t, conn.Send(background, key, 0))
	model := make([]byte, memBytes)
	r := rand.New(rand.NewSource(seed))
	for round := uint64(1); round <= modelRounds; round++ {
		for i := 0; i < modelSteps; i++ {
			stepOfModel(r).apply(model)
		}
		seen, err := m.WaitSignal(background, signalAt, GreaterEqual, round)
		must(t, err)
		check(t, seen == round, "the signal is %d, not %d", seen, round)
		check(t, bytes.Equal(b.Bytes()[:memBytes], model), "round %d: the memory is not that of the model", round)
		must(t, conn.Send(background, nil, 0))
	}
	_, err = conn.Recv(background, nil, 1)
	must(t, err)
	must(t, m.Deregister(background))
}

const modelRounds, modelSteps = 20, 20

// step writes data in blocks at offsets, or adds to a number.
type step struct {
	form    int
	data    []byte
	offsets []int64
	n       int
	number  uint64
}

func stepOfModel(r *rand.Rand) step {
	s := step{form: r.Intn(6), number: r.Uint64()}
	blocks := 1
	if s.form == 2 {
		blocks = 1 + r.Intn(20)
	}
	s.n = 1 + r.Intn([]int{16, 4096, 10000}[r.Intn(3)])
	s.data = make([]byte, s.n*blocks)
	r.Read(s.data)
	at := r.Int63n(int64(memBytes - 20*10000))
	for i := 0; i < blocks; i++ {
		s.offsets = append(s.offsets, at+int64(i*s.n))
	}
	return s
}

func (s *step) word() int64 {
	return s.offsets[0] &^ 7
}

func (s step) apply(model []byte) {
	word := model[s.word():][:8]
	switch s.form {
	case 4:
		binary.LittleEndian.PutUint64(word, binary.LittleEndian.Uint64(word)+s.number)
	case 5:
		binary.LittleEndian.PutUint64(word, s.number)
	default:
		for i, at := range s.offsets {
			copy(model[at:], s.data[i*s.n:(i+1)*s.n])
		}
	}
}

// accessSide carries out the steps, reads the memory back, and signals.
func accessSide(t failer, c *Context, conn *Conn, seed int64) {
	limit, cancel := withTimeout(60 * time.Second)
	defer cancel()
	key, _, err := conn.RecvNew(background, 0)
	must(t, err)
	remote, err := conn.Open(limit, key)
	must(t, err)
	model := make([]byte, memBytes)
	b := buffer(t, memBytes)
	defer b.Free()
	r, mine := rand.New(rand.NewSource(seed)), rand.New(rand.NewSource(seed+1))
	for round := uint64(1); round <= modelRounds; round++ {
		for i := 0; i < modelSteps; i++ {
			s := stepOfModel(r)
			before := binary.LittleEndian.Uint64(model[s.word():])
			s.apply(model)
			switch s.form {
			case 0:
				must(t, remote.Put(background, s.data, s.offsets[0]))
			case 1:
				must(t, remote.Put(limit, s.data, s.offsets[0]))
			case 2:
				var blocks []Block
				copy(b.Bytes(), s.data)
				for i, at := range s.offsets {
					blocks = append(blocks, Block{Local: b.Slice(i*s.n, (i+1)*s.n), Offset: at})
				}
				must(t, remote.Putv(background, blocks))
			case 3:
				copy(b.Bytes(), s.data)
				req, err := remote.Iput(b.Slice(0, len(s.data)), s.offsets[0])
				must(t, err)
				_, err = req.Wait(limit)
				must(t, err)
			case 4:
				got, err := Atomic(limit, remote, FetchAdd, s.word(), s.number)
				must(t, err)
				check(t, got == before, "round %d: fetched %d, not %d", round, got, before)
			case 5:
				got, err := CompareSwap(background, remote, s.word(), before, s.number)
				must(t, err)
				check(t, got == before, "round %d: compared with %d, not %d", round, got, before)
			}
			must(t, remote.Flush(limit)) // steps overlap
		}
		from := mine.Intn(memBytes / 2)
		n := mine.Intn(memBytes / 2)
		data := make([]byte, n)
		switch mine.Intn(3) {
		case 0:
			must(t, remote.Get(limit, data, int64(from)))
		case 1:
			req, err := remote.Iget(b.Slice(0, n), int64(from))
			must(t, err)
			<-req.Done()
			must(t, WaitAll(background, req))
			copy(data, b.Bytes())
		case 2:
			half := n / 2
			must(t, remote.Getv(limit, []Block{{Local: b.Slice(0, half), Offset: int64(from)},
				{Local: b.Slice(half, n), Offset: int64(from + half)}}))
			copy(data, b.Bytes())
		}
		check(t, bytes.Equal(data, model[from:from+n]), "round %d: %d bytes at %d are not those of the model", round, n, from)
		must(t, remote.Fence(limit))
		must(t, remote.PutSignal(limit, nil, 0, remote, signalAt, 1, SignalAdd))
		_, err = conn.Recv(background, nil, 0)
		must(t, err)
	}
	err = remote.Put(background, make([]byte, 8), memBytes+8)
	is(t, "a put outside", err, ErrBounds)
	check(t, strings.Contains(err.Error(), "leave the memory"), "a put outside: %v", err)
	must(t, remote.Close(background))
	must(t, conn.Send(background, nil, 1))
}

func init() {
	sides["remote"] = remoteSide
}

func TestRemote(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	contexts, conns := pair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		remoteSide(t, contexts[0], conns[0], seed)
	}()
	accessSide(t, contexts[1], conns[1], seed)
	<-done
}

func TestRemoteOfAnotherProcess(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	c, conn, cmd := withProcess(t, "remote", seed)
	accessSide(t, c, conn, seed)
	must(t, cmd.Wait())
}
