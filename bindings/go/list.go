// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"fmt"
	"unsafe"
)

// NoticeMax is the length of the longest notice.
const NoticeMax = C.RANK_NOTICE_MAX

// Notice is a message that the peer receives with Tag when a list is done.
type Notice struct {
	Tag  int64
	Data []byte // at most NoticeMax
}

// IwriteList starts to write blocks to the memory of peer, which may lie in any number of memories. It is complete when the
// data is visible there. notice may be nil. If one block is wrong, none moves. blocks and notice may be used again, the
// Views not until the Request is complete.
func (t *Team) IwriteList(blocks []Block, peer int, notice *Notice) (*Request, error) {
	return t.beginList("write a list", C.GO_WRITE, blocks, peer, notice)
}

// IreadList starts to read blocks from the memory of peer. It is complete when the data is here. With the notice the peer
// learns that its memory is free. Else it is as IwriteList.
func (t *Team) IreadList(blocks []Block, peer int, notice *Notice) (*Request, error) {
	return t.beginList("read a list", C.GO_READ, blocks, peer, notice)
}

// WriteList is IwriteList that waits. When ctx ends, it goes on, and the buffers stay until it is complete.
func (t *Team) WriteList(ctx context.Context, blocks []Block, peer int, notice *Notice) error {
	_, err := started(ctx, "write a list", func() (*Request, error) { return t.IwriteList(blocks, peer, notice) })
	return err
}

// ReadList is IreadList that waits. When ctx ends, it goes on, and the buffers stay until it is complete.
func (t *Team) ReadList(ctx context.Context, blocks []Block, peer int, notice *Notice) error {
	_, err := started(ctx, "read a list", func() (*Request, error) { return t.IreadList(blocks, peer, notice) })
	return err
}

// holdBlocks keeps the memory of blocks for an operation. Returns nothing and an error if one is wrong.
func (t *Team) holdBlocks(call string, blocks []Block, peer int) ([]View, error) {
	views := make([]View, 0, len(blocks))
	for i, b := range blocks {
		err := b.Local.hold(call, false)
		if err == nil {
			views = append(views, b.Local)
			if !b.Remote.isOf(t, peer) {
				err = wrong(call, ErrArg, fmt.Sprintf("the Remote of block %d is not of this peer", i))
			}
		}
		if err != nil {
			releaseAll(views)
			return nil, err
		}
	}
	return views, nil
}

// isOf reports whether the memory may be of peer. The library finds whether another team has the peer.
func (r *Remote) isOf(t *Team, peer int) bool {
	return r != nil && r.team.owner == t.owner && (r.team == t && r.peer == peer || !r.team.conn && !t.conn && r.team != t)
}

// writeList writes blocks and notice to the memory of C of an operation.
func (o *operation) writeList(blocks []Block, notice *Notice) {
	// Zeroed: the garbage collector reads pointers that are overwritten.
	list := (*C.rank_block_t)(C.calloc(C.size_t(len(blocks)+1), C.sizeof_rank_block_t))
	o.op.blocks = list
	for i, to := 0, unsafe.Slice(list, len(blocks)); i < len(to); i++ {
		b := &blocks[i]
		to[i] = C.rank_block_t{local: b.Local.pointer(), bytes: C.int64_t(b.Local.n), mem: b.Remote.mem, offset: C.int64_t(b.Offset)}
	}
	if notice != nil {
		o.op.notice = C.rank_notice_t{tag: C.int64_t(notice.Tag), data: C.CBytes(someBytes(notice.Data)), bytes: C.int64_t(len(notice.Data))}
	}
}

func (t *Team) beginList(call string, kind C.int, blocks []Block, peer int, notice *Notice) (*Request, error) {
	views, err := t.holdBlocks(call, blocks, peer)
	if err != nil {
		return nil, err
	}
	r := &Request{team: t, call: call, views: views}
	return r.start(func(o *operation) C.int {
		o.writeList(blocks, notice)
		return C.go_op_start(o.handle(), t.handle(), kind, nil, C.int64_t(len(blocks)), toRank(peer), 0, 0, C.GO_LATER, 1)
	})
}

// OpenAll opens a list of keys of peer, in few messages: all of them or none. When ctx ends, they are closed again.
func (t *Team) OpenAll(ctx context.Context, keys []byte, peer int) ([]*Remote, error) {
	copied := append([]byte(nil), keys...) // of this call, which may outlive ctx
	remotes, err := later(ctx, "open", func() ([]*Remote, Status) {
		some := someBytes(copied)
		mems := make([]C.rank_mem_t, 1)
		var n C.int64_t
		status := Status(C.go_remote_open_all(t.c, toRank(peer), unsafe.Pointer(&some[0]), C.size_t(len(copied)), &n, &mems[0]))
		if status == ErrTruncated {
			mems = make([]C.rank_mem_t, int(n))
			status = Status(C.go_remote_open_all(t.c, toRank(peer), unsafe.Pointer(&some[0]), C.size_t(len(copied)), &n, &mems[0]))
		}
		if status != success {
			return nil, t.judge(status)
		}
		remotes := make([]*Remote, int(n))
		for i := range remotes {
			remotes[i] = &Remote{team: t, peer: peer, mem: mems[i]}
		}
		return remotes, success
	}, func(remotes []*Remote) {
		for _, r := range remotes {
			r.Close(context.Background())
		}
	})
	return remotes, t.explain(err)
}
