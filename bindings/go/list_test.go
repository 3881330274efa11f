// SPDX-License-Identifier: BSD-3-Clause

package rank

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"sync"
	"testing"
	"time"
)

const listRounds, listMems, listBlocks = 30, 5, 1000

// listSizes returns the lengths of the memories of the model.
func listSizes(r *rand.Rand) (sizes [listMems]int) {
	for i := range sizes {
		sizes[i] = 1000 + r.Intn(300000)
	}
	return sizes
}

// listOf makes one list: for each memory parts that do not overlap, in any order, with their bytes.
type part struct {
	mem, at int
	data    []byte
}

func listOf(r *rand.Rand, sizes [listMems]int) []part {
	var list []part
	for m, size := range sizes {
		for at := r.Intn(500); len(list) < listBlocks*(m+1)/listMems; {
			n := 1 + r.Intn(1+r.Intn(2000))
			if at+n > size {
				break
			}
			p := part{m, at, make([]byte, n)}
			r.Read(p.data)
			list = append(list, p)
			at += n + r.Intn(2)*r.Intn(100)
		}
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:r.Intn(len(list)+1)]
}

// listSide has the memories, and compares them with the model at each notice.
func listSide(t failer, c *Context, conn *Conn, seed int64) {
	r := rand.New(rand.NewSource(seed))
	sizes := listSizes(r)
	var mems [listMems]*Mem
	var model [listMems][]byte
	for i := range mems {
		var err error
		if i%2 == 0 {
			mems[i], err = c.Alloc(sizes[i], ReadWrite)
		} else {
			b := buffer(t, sizes[i])
			mems[i], err = c.Register(b, ReadWrite)
			b.Free()
		}
		must(t, err)
		model[i] = make([]byte, sizes[i])
	}
	keys, err := c.Keys(mems[:]...)
	must(t, err)
	must(t, conn.Send(background, keys, 0))
	for round := 0; round < listRounds; round++ {
		for _, p := range listOf(r, sizes) {
			copy(model[p.mem][p.at:], p.data)
		}
		data, _, err := conn.RecvNew(background, 5) // of the write
		must(t, err)
		check(t, binary.LittleEndian.Uint64(data) == uint64(round), "round %d: the notice is of another", round)
		for i := range mems {
			check(t, bytes.Equal(mems[i].Buffer().Bytes(), model[i]), "round %d: memory %d is not that of the model", round, i)
		}
		e, err := conn.Recv(background, nil, 6) // of the read
		must(t, err)
		check(t, e.Bytes == 0, "an empty notice has %d bytes", e.Bytes)
		must(t, conn.Send(background, nil, 0))
	}
	for _, m := range mems {
		must(t, m.Deregister(background))
	}
	must(t, conn.Send(background, nil, 0))
	_, err = conn.Recv(background, nil, 0)
	must(t, err)
}

// listPeer writes and reads the lists.
func listPeer(t failer, c *Context, conn *Conn, seed int64) {
	limit, cancel := withTimeout(20 * time.Second)
	defer cancel()
	r := rand.New(rand.NewSource(seed))
	sizes := listSizes(r)
	keys, _, err := conn.RecvNew(limit, 0)
	must(t, err)
	remotes, err := conn.OpenAll(limit, keys)
	must(t, err)
	check(t, len(remotes) == listMems, "%d memories are open", len(remotes))
	b := buffer(t, 2000*listBlocks)
	defer b.Free()
	blocks := func(list []part) (blocks []Block) {
		at := 0
		for _, p := range list {
			blocks = append(blocks, Block{b.Slice(at, at+len(p.data)), remotes[p.mem], int64(p.at)})
			at += len(p.data)
		}
		return blocks
	}
	for round := 0; round < listRounds; round++ {
		list := listOf(r, sizes)
		to := blocks(list)
		for i, p := range list {
			copy(to[i].Local.Bytes(), p.data)
		}
		var number [8]byte
		binary.LittleEndian.PutUint64(number[:], uint64(round))
		if len(list) > 0 { // one wrong block: nothing moves, and there is no notice
			wrong := append(append([]Block(nil), to...), to[0])
			wrong[len(to)].Offset = int64(sizes[list[0].mem])
			is(t, "a block outside", conn.WriteList(limit, wrong, &Notice{5, number[:]}), ErrBounds)
		}
		must(t, conn.WriteList(limit, to, &Notice{5, number[:]}))
		for i := range b.Bytes() {
			b.Bytes()[i] = 0
		}
		req, err := conn.IreadList(to, &Notice{Tag: 6})
		must(t, err)
		_, err = req.Wait(limit)
		must(t, err)
		for i, p := range list {
			check(t, bytes.Equal(to[i].Local.Bytes(), p.data), "round %d: block %d is damaged", round, i)
		}
		_, err = conn.Recv(limit, nil, 0)
		must(t, err)
	}
	_, err = conn.Recv(limit, nil, 0)
	must(t, err)
	if err := conn.ReadList(limit, blocks(listOf(r, sizes))[:1], nil); err == nil {
		t.Fatalf("a memory that is no longer registered was read")
	}
	must(t, conn.Send(limit, nil, 0))
}

func init() {
	sides["list"] = listSide
}

func TestLists(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	contexts, conns := pair(t)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		listSide(t, contexts[0], conns[0], seed)
	}()
	listPeer(t, contexts[1], conns[1], seed)
	wg.Wait()
}

func TestListsOfAnotherProcess(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	c, conn, cmd := withProcess(t, "list", seed)
	listPeer(t, c, conn, seed)
	must(t, cmd.Wait())
}

// Peers have the rights that the registration gives.
func TestAccess(t *testing.T) {
	contexts, conns := pair(t)
	for _, access := range []Access{Read, Write} {
		m, err := contexts[0].Alloc(64, access)
		must(t, err)
		key, err := m.Key()
		must(t, err)
		r, err := conns[1].Open(background, key)
		must(t, err)
		data := make([]byte, 8)
		put, get := r.Put(background, data, 0), r.Get(background, data, 0)
		if access == Read {
			put, get = get, put
		}
		must(t, put)
		is(t, "without access", get, ErrArg)
	}
	_, err := contexts[0].Alloc(64, 0)
	is(t, "no access", err, ErrArg)
}
