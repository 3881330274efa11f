// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
import "C"

import (
	"context"
)

// TeamMem is memory of all ranks of a team: each has a part. Ranks of a host share it.
type TeamMem struct {
	team *Team
	mem  C.rank_mem_t
	buf  *Buffer
}

// Alloc allocates n bytes on each rank, zeroed. Collective: all give the same n. All ranks get it or none. Free it before
// the team. When ctx ends, it goes on, and its memory stays until Finalize.
func (t *Team) Alloc(ctx context.Context, n int) (*TeamMem, error) {
	return inOrder(ctx, t, "alloc", func() (*TeamMem, Status) {
		m := &TeamMem{team: t, buf: &Buffer{n: n, shared: true}}
		m.buf.uses.Store(1)
		return m, Status(C.go_team_alloc(t.c, C.int64_t(n), &m.buf.p, &m.mem))
	}, nil)
}

// Buffer returns the part of this rank.
func (m *TeamMem) Buffer() *Buffer {
	return m.buf
}

// Remote returns the part of peer, which may be this rank. It needs no Close.
func (m *TeamMem) Remote(peer int) *Remote {
	return &Remote{team: m.team, peer: peer, mem: m.mem, part: true}
}

// Flush is that of the Remotes of all ranks.
func (m *TeamMem) Flush(ctx context.Context) error {
	all := Remote{team: m.team, peer: int(C.RANK_ALL), mem: m.mem}
	return all.Flush(ctx)
}

// WaitSignal waits for a signal in the part of this rank, as Mem.WaitSignal.
func (m *TeamMem) WaitSignal(ctx context.Context, offset int64, cmp Cmp, value uint64) (uint64, error) {
	seen, err := m.team.owner.waitSignal(ctx, m.mem, offset, cmp, value)
	return seen, m.team.explain(err)
}

// Free frees the parts of all ranks. Collective. No other call may use it. ErrState: operations use its Buffer. When ctx
// ends, it goes on.
func (m *TeamMem) Free(ctx context.Context) error {
	const call = "free"
	if m.buf.uses.Load() > 1 {
		return wrong(call, ErrState, "operations use the memory")
	}
	if m.buf.freed.Swap(true) {
		return wrong(call, ErrHandle, "the memory is freed")
	}
	_, err := inOrder(ctx, m.team, call, func() (struct{}, Status) {
		return struct{}{}, Status(C.go_team_free(m.team.c, m.mem))
	}, nil)
	return err
}
