// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
import "C"

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

// Conn is a connection: a team of two. The side that connected is rank 0. Its calls are those of its Team with the other
// side as the peer.
type Conn struct {
	*Team
}

// adopt makes a Conn of a connection, or closes it if the context is being closed.
func (c *Context) adopt(native *C.go_team) (*Conn, Status) {
	conn := &Conn{newTeam(c, native, true)}
	c.mu.Lock()
	closing := c.closing
	if !closing {
		c.conns[conn.Team] = struct{}{}
	}
	c.mu.Unlock()
	if !closing {
		return conn, success
	}
	conn.shut()
	conn.disconnect(0)
	return nil, ErrClosed
}

// disconnect disconnects once, and waits until no call is left in it.
func (t *Team) disconnect(ns int64) Status {
	return t.end(false, func() Status {
		status := Status(C.go_conn_disconnect(t.c, C.int64_t(ns)))
		if status == ErrTimedOut {
			t.owner.unconfirmed.Store(true)
		}
		t.owner.mu.Lock()
		delete(t.owner.conns, t)
		t.owner.mu.Unlock()
		return status
	})
}

// Close is Disconnect for at most a second.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return c.Disconnect(ctx)
}

// Disconnect sends what was accepted for sending, and ends all calls and requests with ErrClosed. The other side receives
// what was sent whole, then ErrClosed. nil: it has confirmed that it touches no memory of this side any more, or it is
// gone. When ctx ends first, the connection is closed all the same.
func (c *Conn) Disconnect(ctx context.Context) error {
	c.shut()
	return closes(ctx, "disconnect", func() Status { return c.disconnect(untilNs(ctx)) })
}

// ConnInfo describes a connection.
type ConnInfo struct {
	Local, Remote  string // addresses
	Name           string // of the peer's context
	Channel        string // what carries the data
	Pid            int    // of the peer, if it is on this host; 0: it is not
	Proved         bool   // both sides have proved a secret
	Sent, Received int64  // bytes on the wire
	Hello          []byte // of the peer

	MessagesSent, MessagesReceived int64         // also those of collectives
	Transfers, Blocks              int64         // lists that began here, and their blocks
	Refused                        int64         // frames and requests of the peer that were refused here
	SentAgo, ReceivedAgo           time.Duration // since the last byte moved; negative: none has moved
}

// Info describes the connection.
func (c *Conn) Info() (ConnInfo, error) {
	var n C.rank_conn_info_t
	status := Status(C.go_conn_info(c.c, &n))
	runtime.KeepAlive(c.Team)
	if status != success {
		return ConnInfo{}, c.failed("info", status)
	}
	return ConnInfo{
		Local: C.GoString(&n.local[0]), Remote: C.GoString(&n.remote[0]), Name: C.GoString(&n.name[0]),
		Channel: C.GoString(&n.channel[0]), Pid: int(n.pid), Proved: n.proved != 0,
		Sent: int64(n.sent), Received: int64(n.received),
		Hello:        C.GoBytes(unsafe.Pointer(&n.hello[0]), C.int(n.hello_bytes)),
		MessagesSent: int64(n.messages_sent), MessagesReceived: int64(n.messages_received),
		Transfers: int64(n.transfers), Blocks: int64(n.blocks), Refused: int64(n.refused),
		SentAgo: time.Duration(n.sent_ago_ns), ReceivedAgo: time.Duration(n.received_ago_ns),
	}, nil
}

// Send is Team.Send.
func (c *Conn) Send(ctx context.Context, data []byte, tag int64) error {
	return c.Team.Send(ctx, data, c.peer, tag)
}

// Ssend is Team.Ssend.
func (c *Conn) Ssend(ctx context.Context, data []byte, tag int64) error {
	return c.Team.Ssend(ctx, data, c.peer, tag)
}

// Recv is Team.Recv.
func (c *Conn) Recv(ctx context.Context, data []byte, tag int64) (Envelope, error) {
	return c.Team.Recv(ctx, data, c.peer, tag)
}

// RecvNew is Team.RecvNew.
func (c *Conn) RecvNew(ctx context.Context, tag int64) ([]byte, Envelope, error) {
	return c.Team.RecvNew(ctx, c.peer, tag)
}

// Sendrecv is Team.Sendrecv.
func (c *Conn) Sendrecv(ctx context.Context, out []byte, tagOut int64, in []byte, tagIn int64) (Envelope, error) {
	return c.Team.Sendrecv(ctx, out, c.peer, tagOut, in, c.peer, tagIn)
}

// Isend is Team.Isend.
func (c *Conn) Isend(v View, tag int64) (*Request, error) {
	return c.Team.Isend(v, c.peer, tag)
}

// Issend is Team.Issend.
func (c *Conn) Issend(v View, tag int64) (*Request, error) {
	return c.Team.Issend(v, c.peer, tag)
}

// Irecv is Team.Irecv.
func (c *Conn) Irecv(v View, tag int64) (*Request, error) {
	return c.Team.Irecv(v, c.peer, tag)
}

// Isendv is Team.Isendv.
func (c *Conn) Isendv(views []View, tag int64) (*Request, error) {
	return c.Team.Isendv(views, c.peer, tag)
}

// Irecvv is Team.Irecvv.
func (c *Conn) Irecvv(views []View, tag int64) (*Request, error) {
	return c.Team.Irecvv(views, c.peer, tag)
}

// Sendv is Team.Sendv.
func (c *Conn) Sendv(ctx context.Context, views []View, tag int64) error {
	return c.Team.Sendv(ctx, views, c.peer, tag)
}

// Recvv is Team.Recvv.
func (c *Conn) Recvv(ctx context.Context, views []View, tag int64) (Envelope, error) {
	return c.Team.Recvv(ctx, views, c.peer, tag)
}

// WriteList is Team.WriteList.
func (c *Conn) WriteList(ctx context.Context, blocks []Block, notice *Notice) error {
	return c.Team.WriteList(ctx, blocks, c.peer, notice)
}

// ReadList is Team.ReadList.
func (c *Conn) ReadList(ctx context.Context, blocks []Block, notice *Notice) error {
	return c.Team.ReadList(ctx, blocks, c.peer, notice)
}

// IwriteList is Team.IwriteList.
func (c *Conn) IwriteList(blocks []Block, notice *Notice) (*Request, error) {
	return c.Team.IwriteList(blocks, c.peer, notice)
}

// IreadList is Team.IreadList.
func (c *Conn) IreadList(blocks []Block, notice *Notice) (*Request, error) {
	return c.Team.IreadList(blocks, c.peer, notice)
}

// PrepareWrite is Team.PrepareWrite.
func (c *Conn) PrepareWrite(blocks []Block, notice *Notice) (*Transfer, error) {
	return c.Team.PrepareWrite(blocks, c.peer, notice)
}

// PrepareRead is Team.PrepareRead.
func (c *Conn) PrepareRead(blocks []Block, notice *Notice) (*Transfer, error) {
	return c.Team.PrepareRead(blocks, c.peer, notice)
}

// Open is Team.Open.
func (c *Conn) Open(ctx context.Context, key []byte) (*Remote, error) {
	return c.Team.Open(ctx, key, c.peer)
}

// OpenAll is Team.OpenAll.
func (c *Conn) OpenAll(ctx context.Context, keys []byte) ([]*Remote, error) {
	return c.Team.OpenAll(ctx, keys, c.peer)
}
