// SPDX-License-Identifier: BSD-3-Clause

package rank

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand"
	"os"
	"testing"
	"time"
)

// prepared is a list of the model, with its two Transfers.
type prepared struct {
	parts       []part
	to          []Block
	write, read *Transfer
}

// Lists of any blocks are started in any order, many times, and each start moves what memory has at that time.
func TestTransfers(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	contexts, conns := pair(t)
	limit, cancel := withTimeout(60 * time.Second)
	defer cancel()
	sizes := listSizes(r)
	var mems [listMems]*Mem
	for i := range mems {
		var err error
		mems[i], err = contexts[0].Alloc(sizes[i], ReadWrite)
		must(t, err)
	}
	keys, err := contexts[0].Keys(mems[:]...)
	must(t, err)
	conn := conns[1]
	remotes, err := conn.OpenAll(limit, keys)
	must(t, err)
	var lists []prepared
	for len(lists) < 8 {
		p := prepared{parts: listOf(r, sizes)}
		if len(lists) == 0 {
			p.parts = nil
		}
		b := buffer(t, 2000*listBlocks)
		at := 0
		for _, x := range p.parts {
			p.to = append(p.to, Block{b.Slice(at, at+len(x.data)), remotes[x.mem], int64(x.at)})
			at += len(x.data)
		}
		data := []byte{byte(len(lists))}
		p.write, err = conn.PrepareWrite(p.to, &Notice{5, data})
		must(t, err)
		data[0] = 0xff // it has been copied
		p.read, err = conn.PrepareRead(p.to, nil)
		must(t, err)
		b.Free() // the Transfers keep it
		lists = append(lists, p)
	}
	for round := 0; round < 200; round++ {
		k := r.Intn(len(lists))
		p := lists[k]
		for i := range p.parts {
			r.Read(p.parts[i].data)
			copy(p.to[i].Local.Bytes(), p.parts[i].data)
		}
		must(t, p.write.Start(limit))
		var notice [8]byte
		e, err := conns[0].Recv(limit, notice[:], 5)
		must(t, err)
		check(t, e.Bytes == 1 && int(notice[0]) == k, "round %d: a notice %+v of %d, not %d", round, e, notice[0], k)
		for i, x := range p.parts {
			check(t, bytes.Equal(mems[x.mem].Buffer().Bytes()[x.at:x.at+len(x.data)], x.data), "round %d: block %d is damaged", round, i)
			for j := range p.to[i].Local.Bytes() {
				p.to[i].Local.Bytes()[j] = 0
			}
		}
		req, err := p.read.Istart()
		must(t, err)
		if r.Intn(2) == 0 {
			req.Cancel() // lists have always begun
		}
		if r.Intn(2) == 0 {
			<-req.Done()
		}
		_, err = req.Wait(limit)
		must(t, err)
		for i, x := range p.parts {
			check(t, bytes.Equal(p.to[i].Local.Bytes(), x.data), "round %d: block %d was not read", round, i)
		}
	}
	for i, p := range lists {
		used := int64(len(p.to))
		if used > 0 {
			check(t, p.to[0].Local.buf.uses.Load() == 2*used, "list %d: the Buffer has %d users", i, p.to[0].Local.buf.uses.Load())
		}
		req, err := p.write.Istart()
		must(t, err)
		p.write.Close()
		p.write.Close()
		_, err = p.write.Istart()
		is(t, "a closed Transfer", err, ErrHandle)
		_, err = req.Wait(limit)
		must(t, err)
		if i == 1 {
			must(t, conns[1].Close())
		}
		if i > 0 {
			is(t, "a closed connection", p.read.Start(limit), ErrClosed)
		}
		p.read.Close()
		if i == 1 {
			return
		}
	}
}

// A Transfer that is running is not started. A peer that dies ends it, and so does its memory.
func TestTransferEnds(t *testing.T) {
	_, conn, cmd := withProcess(t, "transfer", 0)
	limit, cancel := withTimeout(20 * time.Second)
	defer cancel()
	key, _, err := conn.RecvNew(limit, 0)
	must(t, err)
	remote, err := conn.Open(limit, key)
	must(t, err)
	second, err := conn.Open(limit, key)
	must(t, err)
	b := buffer(t, memBytes)
	defer b.Free()
	blocks := []Block{{b.All(), remote, 0}}
	_, err = conn.PrepareWrite([]Block{{b.All(), remote, 1}}, nil)
	is(t, "a block outside", err, ErrBounds)
	_, err = conn.PrepareWrite([]Block{{b.All(), nil, 0}}, nil)
	is(t, "a block without a Remote", err, ErrArg)
	x, err := conn.PrepareRead([]Block{{b.All(), second, 0}}, nil)
	must(t, err)
	must(t, x.Start(limit))
	must(t, second.Close(limit))
	is(t, "a closed Remote", x.Start(limit), ErrHandle)
	x.Close()
	x, err = conn.PrepareRead(blocks, &Notice{Tag: 1})
	must(t, err)
	defer x.Close()
	pid := make([]byte, 8)
	_, err = conn.Recv(limit, pid, 0)
	must(t, err)
	check(t, binary.LittleEndian.Uint64(pid) == uint64(cmd.Process.Pid), "the peer is another process")
	must(t, cmd.Process.Kill())
	for end := time.Now().Add(5 * time.Second); err == nil && time.Now().Before(end); {
		req, again := (*Request)(nil), error(nil)
		if req, err = x.Istart(); err == nil {
			if _, again = x.Istart(); again != nil && req.Test() == false {
				is(t, "a list that is running", again, ErrState)
			}
			_, err = req.Wait(limit)
		}
	}
	is(t, "a list of a dead peer", err, ErrPeerDead)
	is(t, "a list of a dead peer", x.Start(context.Background()), ErrPeerDead)
	cmd.Wait()
}

func init() {
	sides["transfer"] = func(t failer, c *Context, conn *Conn, seed int64) {
		m, err := c.Alloc(memBytes, ReadWrite)
		must(t, err)
		key, err := m.Key()
		must(t, err)
		must(t, conn.Send(background, key, 0))
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], uint64(os.Getpid()))
		must(t, conn.Send(background, word[:], 0))
		select {}
	}
}
