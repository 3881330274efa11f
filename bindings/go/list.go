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

// IwriteList starts to write blocks to the memory of the peer, which may lie in any number of memories. It is complete when
// the data is visible there. notice may be nil. If one block is wrong, none moves. blocks and notice may be used again, the
// Views not until the Request is complete.
func (c *Conn) IwriteList(blocks []Block, notice *Notice) (*Request, error) {
	return c.beginList("write a list", C.GO_WRITE, blocks, notice)
}

// IreadList starts to read blocks from the memory of the peer. It is complete when the data is here. With the notice the
// peer learns that its memory is free. Else it is as IwriteList.
func (c *Conn) IreadList(blocks []Block, notice *Notice) (*Request, error) {
	return c.beginList("read a list", C.GO_READ, blocks, notice)
}

// WriteList is IwriteList that waits. When ctx ends, it goes on, and the buffers stay until it is complete.
func (c *Conn) WriteList(ctx context.Context, blocks []Block, notice *Notice) error {
	return c.waitList(ctx, "write a list", C.GO_WRITE, blocks, notice)
}

// ReadList is IreadList that waits. When ctx ends, it goes on, and the buffers stay until it is complete.
func (c *Conn) ReadList(ctx context.Context, blocks []Block, notice *Notice) error {
	return c.waitList(ctx, "read a list", C.GO_READ, blocks, notice)
}

func (c *Conn) waitList(ctx context.Context, call string, kind C.int, blocks []Block, notice *Notice) error {
	_, err := started(ctx, call, func() (*Request, error) { return c.beginList(call, kind, blocks, notice) })
	return err
}

func (c *Conn) beginList(call string, kind C.int, blocks []Block, notice *Notice) (*Request, error) {
	r := &Request{conn: c, call: call, views: make([]View, 0, len(blocks))}
	for i, b := range blocks {
		err := b.Local.hold(call, false)
		if err == nil {
			r.views = append(r.views, b.Local)
			if b.Remote == nil || b.Remote.conn != c {
				err = wrong(call, ErrArg, fmt.Sprintf("the Remote of block %d is not of this connection", i))
			}
		}
		if err != nil {
			r.release()
			return nil, err
		}
	}
	return r.start(func(o *operation) C.int {
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
		return C.go_op_start(o.op, c.c, kind, nil, C.int64_t(len(blocks)), 0, nil, C.GO_LATER, 1)
	})
}

// OpenAll opens a list of keys of the peer, in few messages: all of them or none. When ctx ends, they are closed again.
func (c *Conn) OpenAll(ctx context.Context, keys []byte) ([]*Remote, error) {
	copied := append([]byte(nil), keys...) // of this call, which may outlive ctx
	return later(ctx, "open", func() ([]*Remote, Status) {
		some := someBytes(copied)
		mems := make([]C.rank_mem_t, 1)
		var n C.int64_t
		status := Status(C.go_remote_open_all(c.c, unsafe.Pointer(&some[0]), C.size_t(len(copied)), &n, &mems[0]))
		if status == ErrTruncated {
			mems = make([]C.rank_mem_t, int(n))
			status = Status(C.go_remote_open_all(c.c, unsafe.Pointer(&some[0]), C.size_t(len(copied)), &n, &mems[0]))
		}
		if status != success {
			return nil, c.judge(status)
		}
		remotes := make([]*Remote, int(n))
		for i := range remotes {
			remotes[i] = &Remote{conn: c, mem: mems[i]}
		}
		return remotes, success
	}, func(remotes []*Remote) {
		for _, r := range remotes {
			r.Close(context.Background())
		}
	})
}
