// SPDX-License-Identifier: BSD-3-Clause

//go:build go1.21

package rank

// #include "go_rank.h"
import "C"

import "runtime"

// pinned keeps memory of Go in place.
type pinned struct {
	pinner runtime.Pinner
}

const canPin = true

func (p *pinned) pin(data []byte) {
	if len(data) > 0 {
		p.pinner.Pin(&data[0])
	}
}

func (p *pinned) unpin() {
	p.pinner.Unpin()
}

// IsendBytes is Isend of memory of Go, which must not change until the Request is complete. It needs Go 1.21.
func (t *Team) IsendBytes(data []byte, peer int, tag int64) (*Request, error) {
	return t.beginBytes("isend", C.GO_SEND, data, peer, tag, nil)
}

// IssendBytes is Issend of memory of Go. It needs Go 1.21.
func (t *Team) IssendBytes(data []byte, peer int, tag int64) (*Request, error) {
	return t.beginBytes("issend", C.GO_SSEND, data, peer, tag, nil)
}

// IrecvBytes is Irecv into memory of Go, which must not be used until the Request is complete. It needs Go 1.21.
func (t *Team) IrecvBytes(data []byte, peer int, tag int64) (*Request, error) {
	return t.beginBytes("irecv", C.GO_RECV, data, peer, tag, nil)
}

// IsendBytes is Team.IsendBytes.
func (c *Conn) IsendBytes(data []byte, tag int64) (*Request, error) {
	return c.Team.IsendBytes(data, c.peer, tag)
}

// IssendBytes is Team.IssendBytes.
func (c *Conn) IssendBytes(data []byte, tag int64) (*Request, error) {
	return c.Team.IssendBytes(data, c.peer, tag)
}

// IrecvBytes is Team.IrecvBytes.
func (c *Conn) IrecvBytes(data []byte, tag int64) (*Request, error) {
	return c.Team.IrecvBytes(data, c.peer, tag)
}

// IputBytes is Iput of memory of Go. It needs Go 1.21.
func (r *Remote) IputBytes(data []byte, offset int64) (*Request, error) {
	return r.team.beginBytes("iput", C.GO_PUT, data, r.peer, offset, r.mem)
}

// IgetBytes is Iget into memory of Go. It needs Go 1.21.
func (r *Remote) IgetBytes(data []byte, offset int64) (*Request, error) {
	return r.team.beginBytes("iget", C.GO_GET, data, r.peer, offset, r.mem)
}
