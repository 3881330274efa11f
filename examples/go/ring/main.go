// SPDX-License-Identifier: BSD-3-Clause

// ring: pass numbers round the ranks that xrun starts, sum them, and count the ranks in the memory of rank 0.
//
//	go build -o ring . && xrun -n 4 ./ring
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"rank"
)

const hops = 1000

// run is one rank. Each call ends with an error when ctx ends, or when a rank that it needs has died.
func run(ctx context.Context, world *rank.Team) error {
	me, size := world.Rank(), world.Size()
	left, right := (me+size-1)%size, (me+1)%size

	// A number goes round. Sendrecv cannot deadlock.
	turn, next := []int64{int64(me)}, []int64{0}
	start := time.Now()
	for i := 0; i < hops; i++ {
		if _, err := world.Sendrecv(ctx, rank.Bytes(turn), right, 1, rank.Bytes(next), left, 1); err != nil {
			return err
		}
		turn, next = next, turn
	}
	hop := time.Since(start) / hops
	if want := int64(((me-hops)%size + size) % size); turn[0] != want {
		return fmt.Errorf("the number is %d, not %d", turn[0], want)
	}

	// All ranks get the sum.
	sum := []int64{turn[0] + 1}
	if err := rank.Allreduce(ctx, world, sum, nil, rank.Sum); err != nil {
		return err
	}

	// Each rank adds one to a counter in the memory of rank 0.
	memory, err := world.Alloc(ctx, 8)
	if err != nil {
		return err
	}
	before, err := rank.Atomic(ctx, memory.Remote(0), rank.FetchAdd, 0, int64(1))
	if err != nil {
		return err
	}
	if before == int64(size-1) {
		fmt.Printf("sum of %d ranks: %d; %.2f us a hop\n", size, sum[0], float64(hop.Nanoseconds())/1e3)
	}
	return memory.Free(ctx)
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	world, err := rank.Init(ctx)
	if err == nil {
		err = run(ctx, world)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ring:", err)
		rank.Abort(1, err.Error())
	}
	if err := rank.Finalize(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ring:", err)
		os.Exit(1)
	}
}
