// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// AnyTag is the tag of a receive or a probe that takes every message.
const AnyTag int64 = C.RANK_ANY_TAG

// Conn is a connection: a team of two. The side that connected is rank 0.
//
// Blocking calls take any memory. Up to 4 KiB is copied. More is used in place: before Go 1.21 its call, or a goroutine of
// the package, then holds a thread until the operation ends.
type Conn struct {
	owner    *Context
	c        *C.go_conn
	rank     int
	shutDown atomic.Bool
	closing  sync.Once
	gone     chan struct{} // closed when it is disconnected
	status   Status        // of the disconnect, after gone
}

// adopt makes a Conn of a connection, or closes it if the context is being closed.
func (c *Context) adopt(native *C.go_conn) (*Conn, Status) {
	conn := &Conn{owner: c, c: native, rank: int(C.go_conn_rank(native)), gone: make(chan struct{})}
	runtime.SetFinalizer(conn, func(conn *Conn) { C.go_conn_free(conn.c) })
	c.mu.Lock()
	closing := c.closing
	if !closing {
		c.conns[conn] = struct{}{}
	}
	c.mu.Unlock()
	if !closing {
		return conn, success
	}
	conn.shut()
	conn.end(0)
	return nil, ErrClosed
}

// shut refuses calls from now on, and waits for those that are about to use the team.
func (c *Conn) shut() {
	c.shutDown.Store(true)
	C.go_conn_shut(c.c)
}

// end disconnects once, and waits until no call is left in it.
func (c *Conn) end(ns int64) Status {
	c.closing.Do(func() {
		c.status = Status(C.go_conn_disconnect(c.c, C.int64_t(ns)))
		if c.status == ErrTimedOut {
			c.owner.unconfirmed.Store(true)
		}
		for C.go_conn_blocked(c.c) > 0 {
			time.Sleep(drainPause)
		}
		c.owner.mu.Lock()
		delete(c.owner.conns, c)
		c.owner.mu.Unlock()
		close(c.gone)
	})
	<-c.gone
	return c.status
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
	return closes(ctx, "disconnect", func() Status { return c.end(untilNs(ctx)) })
}

// Rank returns the rank of this side: 0 if it connected, 1 if it accepted.
func (c *Conn) Rank() int {
	return c.rank
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

	MessagesSent, MessagesReceived int64
	Transfers, Blocks              int64         // lists that began here, and their blocks
	Refused                        int64         // frames and requests of the peer that were refused here
	SentAgo, ReceivedAgo           time.Duration // since the last byte moved; negative: none has moved
}

// Info describes the connection.
func (c *Conn) Info() (ConnInfo, error) {
	var n C.rank_conn_info_t
	status := Status(C.go_conn_info(c.c, &n))
	runtime.KeepAlive(c)
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

// Send sends a message. It returns when data may be used again. Long messages wait for their receive. When ctx ends, a send
// that has not begun is canceled. One that has begun goes on: the peer may receive it, and data must not change any more.
func (c *Conn) Send(ctx context.Context, data []byte, tag int64) error {
	_, err := c.block(ctx, "send", C.GO_SEND, data, tag, nil)
	return err
}

// Ssend is Send that returns only after a receive has matched the message.
func (c *Conn) Ssend(ctx context.Context, data []byte, tag int64) error {
	_, err := c.block(ctx, "ssend", C.GO_SSEND, data, tag, nil)
	return err
}

// Recv receives a message with tag, or AnyTag. ErrTruncated: it is longer than data, and the rest is lost. When ctx ends, a
// receive that has no message yet is canceled. One that has begun goes on: its message is lost, and data must not be used
// any more.
func (c *Conn) Recv(ctx context.Context, data []byte, tag int64) (Envelope, error) {
	return c.block(ctx, "recv", C.GO_RECV, data, tag, nil)
}

// Isend starts a send. Vectors are started with Isendv.
func (c *Conn) Isend(v View, tag int64) (*Request, error) {
	return c.begin("isend", C.GO_SEND, v, tag, nil)
}

// Issend starts a send that is complete only after a receive has matched it.
func (c *Conn) Issend(v View, tag int64) (*Request, error) {
	return c.begin("issend", C.GO_SSEND, v, tag, nil)
}

// Irecv starts a receive. The views of pending receives must not overlap.
func (c *Conn) Irecv(v View, tag int64) (*Request, error) {
	return c.begin("irecv", C.GO_RECV, v, tag, nil)
}

// Isendv starts a send of several views as one message.
func (c *Conn) Isendv(views []View, tag int64) (*Request, error) {
	return c.beginVector("isendv", C.GO_SENDV, views, tag)
}

// Irecvv starts a receive of one message into several views.
func (c *Conn) Irecvv(views []View, tag int64) (*Request, error) {
	return c.beginVector("irecvv", C.GO_RECVV, views, tag)
}

// Sendv sends several views as one message. When ctx ends, it goes on, and the buffers stay until it is complete.
func (c *Conn) Sendv(ctx context.Context, views []View, tag int64) error {
	_, err := started(ctx, "sendv", func() (*Request, error) { return c.Isendv(views, tag) })
	return err
}

// Recvv receives one message into several views. When ctx ends, it goes on, and takes the next message that matches.
func (c *Conn) Recvv(ctx context.Context, views []View, tag int64) (Envelope, error) {
	return started(ctx, "recvv", func() (*Request, error) { return c.Irecvv(views, tag) })
}

// RecvNew receives a message of any length into new memory. When ctx ends, the message stays for the next receive, unless
// its data is already on the way.
func (c *Conn) RecvNew(ctx context.Context, tag int64) ([]byte, Envelope, error) {
	const call = "recv"
	var message C.rank_message_t
	var native C.rank_envelope_t
	err := inSlices(ctx, call, func(ns int64) Status {
		return Status(C.go_mprobe(c.c, C.int64_t(tag), C.int64_t(ns), &message, &native))
	})
	if err != nil {
		return nil, Envelope{}, err
	}
	data := make([]byte, int(native.bytes))
	some := someBytes(data)
	var received C.rank_envelope_t
	status := Status(C.go_mrecv(c.c, unsafe.Pointer(&some[0]), C.int64_t(len(data)), &message, &received))
	runtime.KeepAlive(c)
	if status != success {
		return nil, Envelope{}, c.failed(call, status)
	}
	return data, Envelope{int(received.source), int64(received.tag), int(received.bytes), int(received.sent_bytes)}, nil
}
