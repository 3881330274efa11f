// SPDX-License-Identifier: BSD-3-Clause

package rank

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"syscall"
	"time"
)

// worldSide is the program of go.sh that xrun starts: random calls of all ranks against a model.
func worldSide(t failer) {
	limit, cancel := withTimeout(60 * time.Second)
	defer cancel()
	_, err := World()
	is(t, "World before Init", err, ErrState)
	is(t, "Finalize before Init", Finalize(limit), ErrState)
	world, err := Init(limit)
	must(t, err)
	_, err = Init(limit)
	is(t, "a second Init", err, ErrState)
	same, err := World()
	must(t, err)
	check(t, same == world && world.Rank() < world.Size(), "World: rank %d of %d", world.Rank(), world.Size())
	is(t, "Free of the world", world.Free(limit), ErrState)

	seed := []int64{time.Now().UnixNano()}
	must(t, Bcast(limit, world, seed, 0))
	r := rand.New(rand.NewSource(seed[0])) // makes the same numbers on all ranks
	if world.Rank() == 0 {
		fmt.Println("# seed", seed[0])
	}
	teams := []*Team{world}
	dup, err := world.Dup(limit)
	must(t, err)
	teams = append(teams, dup)
	shared, err := world.SplitShared(limit, 0)
	must(t, err)
	check(t, shared.Size() == world.Size(), "%d ranks share memory", shared.Size())
	must(t, shared.Free(limit))
	is(t, "a freed team", shared.Barrier(limit), ErrClosed)
	half, err := world.Split(limit, world.Rank()%2, -world.Rank())
	must(t, err)
	sum := []int{world.Rank()}
	must(t, Allreduce(limit, half, sum, nil, Sum))
	want, ranks := 0, 0
	for k := world.Rank() % 2; k < world.Size(); k += 2 {
		want, ranks = want+k, ranks+1
	}
	check(t, half.Size() == ranks && sum[0] == want && half.Rank() == ranks-1-world.Rank()/2, "Split: rank %d of %d, sum %d",
		half.Rank(), half.Size(), sum[0])
	color := 0
	if world.Rank() == 0 {
		color = Undefined
	}
	rest, err := world.Split(limit, color, 0)
	must(t, err)
	check(t, (rest == nil) == (world.Rank() == 0), "Undefined: %v", rest)

	for round := 0; round < 60; round++ {
		team := teams[r.Intn(len(teams))]
		switch r.Intn(13) {
		case 0:
			worldCollective[int8](t, team, r)
		case 1:
			worldCollective[uint16](t, team, r)
		case 2:
			worldCollective[int32](t, team, r)
		case 3:
			worldCollective[int](t, team, r)
		case 4:
			worldCollective[time.Duration](t, team, r)
		case 5:
			worldCollective[float32](t, team, r)
		case 6:
			worldCollective[complex128](t, team, r)
		case 7:
			worldMessages(t, team, r)
		case 8:
			worldRing(t, team, r)
		case 9:
			worldMemory(t, team, r)
		case 10:
			worldLists(t, team, r)
		case 11:
			worldLate(t, team)
		default:
			worldCollective[uint8](t, team, r)
		}
	}
	worldWrong(t, world)
	worldOpen(t, world, limit)
	other, conn := worldConn(t, world, limit)
	b := buffer(t, 8)
	pending, err := world.Irecv(b.All(), AnySource, 99)
	must(t, err)
	results := make(chan error, 3)
	go func() { _, err := conn.Recv(background, make([]byte, 8), 1); results <- err }()
	go func() { _, err := world.Recv(background, make([]byte, 8), AnySource, 98); results <- err }()
	go func() { _, err := pending.Wait(background); results <- err }()
	time.Sleep(20 * time.Millisecond)
	must(t, Finalize(limit))
	allEnd(t, results, 3, ErrClosed)
	must(t, other.Close())
	is(t, "Send after Finalize", world.Send(limit, nil, 0, 0), ErrClosed)
	is(t, "Barrier after Finalize", world.Barrier(limit), ErrClosed)
	_, err = world.Context().Register(b, Read)
	is(t, "Register after Finalize", err, ErrClosed)
	_, err = World()
	is(t, "World after Finalize", err, ErrState)
	world, err = Init(limit)
	must(t, err)
	must(t, world.Barrier(limit))
	over, cancel := withTimeout(0)
	defer cancel()
	Finalize(over) // goes on
	must(t, world.Context().Shutdown(limit))
	fmt.Printf("ok rank %d of %d\n", same.Rank(), same.Size())

	Exit(0)
}

// inputs makes n elements a rank, which all ranks know.
func inputs[T Element](ranks, n int, r *rand.Rand) [][]T {
	all := make([][]T, ranks)
	for k := range all {
		all[k] = make([]T, n)
		for i := range all[k] {
			for c := r.Intn(4); c > 0; c-- {
				all[k][i]++
			}
		}
	}
	return all
}

// total sums elements from to to-1 of some ranks.
func total[T Element](all [][]T, from, to int) []T {
	sum := make([]T, to-from)
	for _, in := range all {
		for i := range sum {
			sum[i] += in[from+i]
		}
	}
	return sum
}

func column[T Element](all [][]T, from, to int) (out []T) {
	for _, in := range all {
		out = append(out, in[from:to]...)
	}
	return out
}

func worldCollective[T Element](t failer, team *Team, r *rand.Rand) {
	size, me := team.Size(), team.Rank()
	n, root := []int{0, 1, 3, 1000, 20000}[r.Intn(5)], r.Intn(size)
	kind, place := r.Intn(9), r.Intn(2) == 0
	blocks := kind == 4 || kind == 5 || kind == 8 // in has a block a rank
	ctx, cancel := background, context.CancelFunc(func() {})
	if r.Intn(2) == 0 {
		ctx, cancel = withTimeout(30 * time.Second)
	}
	defer cancel()
	length := n
	if blocks {
		length = size * n
	}
	all := inputs[T](size, length, r)
	in := append([]T{}, all[me]...)
	var out, want []T
	var err error
	inside := func(n int) { // out has the input in place
		out = make([]T, n)
		if place {
			copy(out, in)
			in = nil
		}
	}
	switch kind {
	case 0:
		inside(n)
		err, want = Allreduce(ctx, team, out, in, Sum), total(all, 0, n)
	case 1:
		if me == root {
			inside(n)
			want = total(all, 0, n)
		}
		err = Reduce(ctx, team, out, in, Sum, root)
	case 2:
		out = make([]T, size*n)
		if place {
			copy(out[me*n:], in)
			in = nil
		}
		err, want = Allgather(ctx, team, out, in), column(all, 0, n)
	case 3:
		if me == root {
			out, want = make([]T, size*n), column(all, 0, n)
			if place {
				copy(out[me*n:], in)
				in = nil
			}
		}
		err = Gather(ctx, team, out, in, root)
	case 4:
		inside(size * n)
		err, want = Alltoall(ctx, team, out, in), column(all, me*n, me*n+n)
	case 5:
		out, want = make([]T, n), total(all, me*n, me*n+n)
		err = ReduceScatter(ctx, team, out, in, Sum)
	case 6:
		inside(n)
		err, want = Scan(ctx, team, out, in, Sum), total(all[:me+1], 0, n)
	case 7:
		out = make([]T, n)
		if want = total(all[:me], 0, n); me == 0 {
			want = append([]T{}, out...)
		}
		err = Exscan(ctx, team, out, in, Sum)
	case 8:
		want = all[root][me*n : me*n+n]
		if me == root && place {
			must(t, Scatter(ctx, team, nil, in, root))
			out = in[me*n : me*n+n]
			break
		}
		out = make([]T, n)
		if me != root {
			in = nil
		}
		err = Scatter(ctx, team, out, in, root)
	}
	must(t, err)
	check(t, bytes.Equal(Bytes(out), Bytes(want)), "collective %d of %d %T, in place %v: wrong result", kind, n, out, place)
	for k := 0; k < size && r.Intn(2) == 0; k++ {
		data := append([]T{}, all[k]...)
		if me != k {
			data = make([]T, length)
		}
		must(t, Bcast(ctx, team, data, k))
		check(t, bytes.Equal(Bytes(data), Bytes(all[k])), "bcast of %d %T: wrong result", n, out)
	}
	must(t, team.Barrier(ctx))
}

// Each rank sends to each, and receives from any.
func worldMessages(t failer, team *Team, r *rand.Rand) {
	size, me, n := team.Size(), team.Rank(), []int{0, 8, 5000, 100000}[r.Intn(4)]
	all := inputs[uint8](size, n, r)
	var requests []*Request
	for k := 0; k < size; k++ {
		b := buffer(t, n)
		copy(b.Bytes(), all[me])
		req, err := team.Isend(b.All(), k, int64(me))
		must(t, err)
		b.Free()
		requests = append(requests, req)
	}
	seen := make([]bool, size)
	for k := 0; k < size; k++ {
		var data []byte
		var e Envelope
		var err error
		if k%2 == 0 {
			data, e, err = team.RecvNew(background, AnySource, AnyTag)
		} else {
			data = make([]byte, n)
			e, err = team.Recv(background, data, AnySource, AnyTag)
		}
		must(t, err)
		check(t, !seen[e.Source] && e.Tag == int64(e.Source) && bytes.Equal(data[:e.Bytes], all[e.Source]), "a message is damaged: %+v", e)
		seen[e.Source] = true
	}
	must(t, WaitAll(background, requests...))
	must(t, team.Barrier(background))
}

func worldRing(t failer, team *Team, r *rand.Rand) {
	size, me, n := team.Size(), team.Rank(), []int{1, 100, 200000}[r.Intn(3)]
	all := inputs[float64](size, n, r)
	in := make([]float64, n)
	left, right := (me+size-1)%size, (me+1)%size
	e, err := team.Sendrecv(background, Bytes(all[me]), right, 3, Bytes(in), left, 3)
	must(t, err)
	check(t, e.Source == left && e.Bytes == 8*n && bytes.Equal(Bytes(in), Bytes(all[left])), "Sendrecv: %+v", e)
	_, err = team.Sendrecv(background, nil, ProcNull, 0, nil, ProcNull, 0)
	must(t, err)
}

// Each rank has a part that all write to: a block, a sum, and a signal.
func worldMemory(t failer, team *Team, r *rand.Rand) {
	const block = 5000
	size, me := team.Size(), team.Rank()
	all := inputs[uint8](size, block, r)
	where := int64((size*block + 7) / 8 * 8)
	m, err := team.Alloc(background, int(where)+16)
	must(t, err)
	for k := 0; k < size; k++ {
		part := m.Remote(k)
		must(t, part.Put(background, all[me][:block/2], int64(me*block)))
		_, err := Atomic(background, part, Add, where+8, int64(me))
		must(t, err)
		must(t, part.Fence(background))
		must(t, part.PutSignal(background, all[me][block/2:], int64(me*block+block/2), part, where, 1, SignalAdd))
	}
	must(t, m.Flush(background))
	seen, err := m.WaitSignal(background, where, GreaterEqual, uint64(size))
	must(t, err)
	sum := binary.LittleEndian.Uint64(m.Buffer().Bytes()[where+8:])
	check(t, seen == uint64(size) && sum == uint64(size*(size-1)/2), "signal %d, sum %d", seen, sum)
	check(t, bytes.Equal(m.Buffer().Bytes()[:size*block], column(all, 0, block)), "puts are damaged")
	back := make([]byte, size*block)
	must(t, m.Remote((me+1)%size).Get(background, back, 0))
	must(t, team.Barrier(background))
	before, err := Atomic(background, m.Remote(0), FetchAdd, where, uint64(1))
	must(t, err)
	check(t, before >= uint64(size) && before < uint64(2*size), "counter %d", before)
	must(t, m.Remote(0).Close(background))
	must(t, m.Free(background))
	is(t, "freed memory", m.Free(background), ErrHandle)
}

// Each rank writes a list to its right neighbor's registered and common memory, prepared and not.
func worldLists(t failer, team *Team, r *rand.Rand) {
	const n = 1000
	size, me := team.Size(), team.Rank()
	left, right := (me+size-1)%size, (me+1)%size
	common, err := team.Alloc(background, 2*n)
	must(t, err)
	own := buffer(t, 2*n)
	mem, err := team.Context().Register(own, ReadWrite)
	must(t, err)
	keys, err := team.Context().Keys(mem)
	must(t, err)
	kb := buffer(t, len(keys))
	copy(kb.Bytes(), keys)
	sent, err := team.Isend(kb.All(), left, 7)
	must(t, err)
	got, _, err := team.RecvNew(background, right, 7)
	must(t, err)
	remotes, err := team.OpenAll(background, got, right)
	must(t, err)
	all := inputs[uint8](size, 2*n, r)
	local := buffer(t, 2*n)
	blocks := []Block{{local.Slice(0, n), remotes[0], n}, {local.Slice(n, 2*n), common.Remote(right), 0}}
	copy(local.Bytes(), all[me])
	x, err := team.PrepareWrite(blocks, right, &Notice{Tag: 8})
	must(t, err)
	for i := 0; i < 3; i++ {
		if i == 2 {
			must(t, team.WriteList(background, blocks, right, &Notice{Tag: 8}))
		} else {
			must(t, x.Start(background))
		}
		_, err = team.Recv(background, nil, left, 8)
		must(t, err)
		check(t, bytes.Equal(own.Bytes()[n:], all[left][:n]) && bytes.Equal(common.Buffer().Bytes()[:n], all[left][n:]), "a list is damaged")
		for j := range own.Bytes() {
			own.Bytes()[j] = 0
		}
		must(t, team.Barrier(background))
	}
	x.Close()
	if size > 1 {
		is(t, "a list to another rank", team.WriteList(background, blocks, left, nil), errorOf(size == 2, nil, ErrArg))
	}
	must(t, WaitAll(background, sent))
	must(t, remotes[0].Close(background))
	must(t, team.Barrier(background))
	must(t, mem.Deregister(background))
	must(t, common.Free(background))
	own.Free()
	kb.Free()
	local.Free()
}

func errorOf(first bool, a, b error) error {
	if first {
		return a
	}
	return b
}

// A collective that ctx has left goes on, and the next one follows it.
func worldLate(t failer, team *Team) {
	if team.Rank() == 0 {
		ctx, cancel := withTimeout(5 * time.Millisecond)
		defer cancel()
		if err := team.Barrier(ctx); err != nil || team.Size() > 1 {
			is(t, "a barrier", err, ErrTimedOut, context.DeadlineExceeded)
		}
	} else {
		time.Sleep(50 * time.Millisecond)
		must(t, team.Barrier(background))
	}
	sum := []int32{1}
	must(t, Allreduce(background, team, sum, nil, Sum))
	check(t, int(sum[0]) == team.Size(), "sum %d", sum[0])
}

func worldWrong(t failer, team *Team) {
	data := make([]int64, 4)
	is(t, "overlap", Allreduce(background, team, data[:3], data[1:], Sum), ErrArg)
	is(t, "a length", Allreduce(background, team, data[:3], make([]int64, 2), Sum), ErrCount)
	is(t, "a root", Bcast(background, team, data, team.Size()), ErrRank)
	is(t, "an operation", Allreduce(background, team, data, nil, Avg), ErrDtype)
	is(t, "an operation", Allreduce(background, team, data, nil, 5), ErrOp)
	is(t, "a peer", team.Send(background, nil, team.Size(), 0), ErrRank)
	is(t, "a peer", team.Send(background, nil, AnySource, 0), ErrRank)
	_, err := team.Recv(background, nil, 1<<40, 0)
	is(t, "a peer", err, ErrRank)
	_, err = team.Split(background, -5, 0)
	is(t, "a color", err, ErrArg)
}

// worldOpen lets Finalize run out of time, since a call holds a thread: the world stays open, with its requests.
func worldOpen(t failer, world *Team, limit context.Context) {
	const tagCall, tagRequest = 96, 97
	results, b := make(chan error, 2), buffer(t, 8)
	req, err := world.Irecv(b.All(), world.Rank(), tagRequest)
	must(t, err)
	go func() {
		_, err := world.Sendrecv(limit, nil, ProcNull, 0, make([]byte, 8), world.Rank(), tagCall)
		results <- err
	}()
	time.Sleep(200 * time.Millisecond)
	short, cancel := withTimeout(300 * time.Millisecond)
	defer cancel()
	time.AfterFunc(100*time.Millisecond, func() { _, err := req.Wait(limit); results <- err })
	is(t, "Finalize while a call waits", Finalize(short), ErrTimedOut)
	for _, tag := range []int64{tagRequest, tagCall} {
		must(t, world.Send(limit, make([]byte, 8), world.Rank(), tag))
		must(t, <-results)
	}
	b.Free()
}

// worldConn connects the Context of Init to another one of this process. A connection has the calls of a team.
func worldConn(t failer, world *Team, limit context.Context) (*Context, *Conn) {
	l, err := world.Context().Listen(limit, "127.0.0.1:0", &options)
	must(t, err)
	other, err := Open(nil)
	must(t, err)
	conn, err := other.Connect(limit, l.Address(), &options)
	must(t, err)
	peer, err := l.Accept(limit)
	must(t, err)
	results := make(chan error)
	go func() {
		sum := []int16{300}
		err := Allreduce(limit, peer.Team, sum, nil, Sum)
		if err == nil {
			err = peer.Team.Send(limit, Bytes(sum), 0, 1)
		}
		results <- err
	}()
	sum := []int16{7}
	must(t, Allreduce(limit, conn.Team, sum, nil, Sum))
	in := []int16{0}
	_, err = conn.Recv(limit, Bytes(in), 1)
	must(t, err)
	must(t, <-results)
	check(t, sum[0] == 307 && in[0] == 307, "sums %d and %d", sum[0], in[0])
	return other, conn
}

// deadSide ends its last rank, for which the others wait. xrun continues the job.
func deadSide(t failer) {
	limit, cancel := withTimeout(20 * time.Second)
	defer cancel()
	world, err := Init(limit)
	must(t, err)
	last := world.Size() - 1
	must(t, world.Barrier(limit))
	if world.Rank() == last {
		time.Sleep(50 * time.Millisecond)
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	b := buffer(t, 8)
	req, err := world.Irecv(b.All(), last, 1)
	must(t, err)
	results := make(chan error, 4)
	go func() { _, err := req.Wait(limit); results <- err }()
	go func() { _, err := world.Recv(limit, make([]byte, 8), last, 2); results <- err }()
	go func() { _, err := world.Recv(background, make([]byte, 8000), last, 3); results <- err }()
	go func() { results <- world.Barrier(limit) }()
	allEnd(t, results, 4, ErrPeerDead)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], 7)
	if world.Rank() == 0 && last > 1 {
		must(t, world.Send(limit, word[:], 1, 5))
	} else if world.Rank() == 1 {
		_, err := world.Recv(limit, word[:], 0, 5)
		must(t, err)
	}
	must(t, Finalize(limit))
	fmt.Printf("ok survivor %d of %d\n", world.Rank(), world.Size())
}

// hangSide waits in three ways for the next rank, which xrun reports.
func hangSide(t failer) {
	limit, cancel := withTimeout(60 * time.Second)
	defer cancel()
	world, err := Init(limit)
	must(t, err)
	next := (world.Rank() + 1) % world.Size()
	switch world.Rank() {
	case 0:
		_, err = world.Recv(limit, make([]byte, 8), next, 7)
	case 1:
		_, _, err = world.RecvNew(limit, next, 7)
	default:
		b := buffer(t, 8)
		req, begin := world.Irecv(b.All(), next, 7)
		must(t, begin)
		_, err = req.Wait(limit)
	}
	must(t, err)
}
