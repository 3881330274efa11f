// SPDX-License-Identifier: BSD-3-Clause

// Package rank connects processes that no launcher started, and joins the ranks that one started: messages, one-sided
// access, atomics, signals and collectives, by librank.
//
//	ctx, err := rank.Open(nil)
//	conn, err := ctx.Connect(context.Background(), "hosta:7471", nil)
//	err = conn.Send(context.Background(), data, 1)
//
//	world, err := rank.Init(context.Background()) // under xrun
//	err = rank.Allreduce(context.Background(), world, numbers, nil, rank.Sum)
//
// All methods may be called by any goroutine at any time, also while others close the object: their calls end with ErrClosed.
// Team.Free ends none.
package rank

// #include "go_rank.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Version returns the version of librank.
func Version() string {
	return C.GoString(C.rank_version())
}

const (
	closeTimeout = time.Second           // of Close
	grace        = 10 * time.Millisecond // for an operation that a context.Context ends, to end
	drainPause   = 200 * time.Microsecond
	reapMax      = 256
)

// Options of a Context.
type Options struct {
	Name       string // shown to peers, at most 63 bytes; "": the name of the program
	NetDevices string // RDMA devices for its connections, as in RANK_NICS; "": those of RANK_NICS
}

// native is what the library uses. It does not refer to the Context: a cycle has no finalizer.
type native struct {
	c    *C.go_ctx // also has the memory of operations
	bell *os.File  // readable when operations are complete
}

func (n *native) free() {
	C.go_ctx_free(n.c)
}

// Context is an instance of the library. A thread of the library makes progress in it.
type Context struct {
	*native

	mu        sync.Mutex
	ops       []*operation // by id
	free      []*operation
	conns     map[*Team]struct{}
	listeners map[*Listener]struct{}
	mems      map[*Mem]struct{}
	closing   bool

	world   bool       // of Init
	team    *Team      // of all ranks, if it is of Init
	leaving sync.Mutex // held by Finalize
	ending  bool       // Finalize has begun to close the context of the library; guarded by leaving

	unconfirmed atomic.Bool // a peer has not confirmed a disconnect

	over   atomic.Bool   // the context of the library is closed
	closed chan struct{} // closed when Shutdown is over
	status Status        // of Shutdown, after closed
}

// Open opens a Context. opts may be nil. A process may open any number. Close it.
func Open(opts *Options) (*Context, error) {
	var name *C.char
	if opts != nil && opts.Name != "" {
		name = C.CString(opts.Name)
		defer C.free(unsafe.Pointer(name))
	}
	var devices *C.char
	if opts != nil && opts.NetDevices != "" {
		devices = C.CString(opts.NetDevices)
		defer C.free(unsafe.Pointer(devices))
	}
	c := newContext()
	_, err := reasoned("open", func() (struct{}, Status) { return struct{}{}, Status(C.go_ctx_open(name, devices, &c.c)) })
	if err != nil {
		return nil, err
	}
	c.start()
	return c, nil
}

func newContext() *Context {
	return &Context{native: new(native), conns: map[*Team]struct{}{}, listeners: map[*Listener]struct{}{}, mems: map[*Mem]struct{}{},
		closed: make(chan struct{})}
}

// start begins to take completions, of a context that C has opened.
func (c *Context) start() {
	c.bell = os.NewFile(uintptr(C.go_ctx_event_fd(c.c)), "rank")
	go dispatch(c)
}

func (c *Context) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// dispatch gives complete operations to the goroutines that wait for them, until the context is closed.
func dispatch(c *Context) {
	var ids [reapMax]uint64
	var ring [8]byte
	for {
		n := int(C.go_ctx_reap(c.c, (*C.uint64_t)(unsafe.Pointer(&ids[0])), reapMax))
		for _, id := range ids[:n] {
			c.mu.Lock()
			o := c.ops[id]
			c.mu.Unlock()
			o.signal(false)
		}
		if n == 0 {
			if _, err := c.bell.Read(ring[:]); err != nil {
				return
			}
		}
	}
}

// Close is Shutdown for at most a second.
func (c *Context) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return c.Shutdown(ctx)
}

// Shutdown closes listeners, disconnects connections, and ends all calls with ErrClosed. A context.Context that ends
// before peers have confirmed gives ErrTimedOut: they may still touch registered memory, which is never freed then. The
// Context is closed in any case, in another goroutine if ctx ends first. It waits for calls of Connect. That of Init is
// closed by Finalize.
func (c *Context) Shutdown(ctx context.Context) error {
	if c.world {
		return c.finalize(ctx)
	}
	return closes(ctx, "close", func() Status { return c.shutdown(ctx) })
}

func (c *Context) shutdown(ctx context.Context) Status {
	c.mu.Lock()
	first := !c.closing
	c.closing = true
	c.mu.Unlock()
	if !first {
		<-c.closed
		return c.status
	}
	c.status = c.closeParts(ctx)
	// Operations that the ends of connections have completed.
	for end := time.Now().Add(closeTimeout); C.go_ctx_parked(c.c) > 0 && time.Now().Before(end); {
		time.Sleep(drainPause)
	}
	C.go_ctx_shut(c.c)
	for C.go_ctx_users(c.c) > 0 {
		time.Sleep(drainPause)
	}
	c.closeNative(ctx)
	return c.status
}

// closeParts closes listeners and connections. Returns the first error.
func (c *Context) closeParts(ctx context.Context) (first Status) {
	c.mu.Lock()
	c.closing = true
	conns, listeners := keys(c.conns), keys(c.listeners)
	c.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	for _, conn := range conns {
		conn.shut()
	}
	for _, conn := range conns {
		if status := conn.disconnect(untilNs(ctx)); status != success && first == success {
			first = status
		}
	}
	return first
}

// closeNative closes the context of the library, in which no call is left, and ends what waits for it.
func (c *Context) closeNative(ctx context.Context) {
	status := Status(C.go_ctx_close(c.c, C.int64_t(untilNs(ctx))))
	if c.status == success {
		c.status = status
	}
	if status == ErrTimedOut {
		c.unconfirmed.Store(true)
	}
	c.over.Store(true)
	c.bell.Close()
	c.mu.Lock()
	ops, mems := append([]*operation(nil), c.ops...), keys(c.mems)
	c.mems = nil
	c.mu.Unlock()
	for _, o := range ops {
		o.signal(true)
	}
	for _, m := range mems {
		if !c.unconfirmed.Load() { // else a peer may still touch it
			m.buf.release()
		}
	}
	runtime.SetFinalizer(c.native, (*native).free)
	close(c.closed)
}

func keys[T comparable](set map[T]struct{}) []T {
	list := make([]T, 0, len(set))
	for v := range set {
		list = append(list, v)
	}
	return list
}

// untilNs returns what is left until the deadline, or -1 if there is none, or 0 if ctx is over.
func untilNs(ctx context.Context) int64 {
	if ctx.Err() != nil {
		return 0
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	if left := time.Until(deadline); left > 0 {
		return int64(left)
	}
	return 0
}

// ConnOptions are the options of Listen and Connect. The zero value has the defaults.
type ConnOptions struct {
	Secret   []byte        // both sides prove that they have it, 16 to 4096 bytes; nil: that of the file RANK_SECRET_FILE
	Hello    []byte        // shown to the other side, at most 1024 bytes
	Timeout  time.Duration // of the handshake; 0: 5 s
	Silence  time.Duration // the peer is dead when its host has not answered for so long; 0: 10 s
	MaxConns int           // of a listener: connections at a time; 0: 1024
	Open     bool          // of a listener: accept other hosts without a secret
	Backlog  int           // of a listener: clients that the system keeps waiting; 0: 1024
	NoShm    bool          // use TCP within a host, too
}

// firstByte has a byte to point at where there is none.
var firstByte [1]byte

// someBytes returns data, or memory to point at if it is empty.
func someBytes(data []byte) []byte {
	if len(data) == 0 {
		return firstByte[:]
	}
	return data
}

// native returns the options for C, without secret and hello.
func (o *ConnOptions) native() C.rank_conn_opts_t {
	var n C.rank_conn_opts_t
	n.size = C.sizeof_rank_conn_opts_t
	n.secret_bytes = C.size_t(len(o.Secret))
	n.hello_bytes = C.size_t(len(o.Hello))
	n.timeout_ns = C.int64_t(o.Timeout)
	n.silence_ns = C.int64_t(o.Silence)
	n.max_conns = C.int32_t(o.MaxConns)
	n.backlog = C.int32_t(o.Backlog)
	if o.MaxConns > 1<<31-1 || o.MaxConns < 0 {
		n.max_conns = -1
	}
	if o.Backlog > 1<<31-1 || o.Backlog < 0 {
		n.backlog = -1
	}
	if o.Open {
		n.flags |= C.RANK_CONN_OPEN
	}
	if o.NoShm {
		n.flags |= C.RANK_CONN_NO_SHM
	}
	return n
}

// pointers returns secret and hello, or nil where there is none.
func (o *ConnOptions) pointers() (secret, hello *byte) {
	if len(o.Secret) > 0 {
		secret = &o.Secret[0]
	}
	if len(o.Hello) > 0 {
		hello = &o.Hello[0]
	}
	return
}

// copied returns a copy that a call keeps after its return.
func (o *ConnOptions) copied() *ConnOptions {
	if o == nil {
		return &ConnOptions{}
	}
	n := *o
	n.Secret, n.Hello = append([]byte(nil), o.Secret...), append([]byte(nil), o.Hello...)
	return &n
}

// Listen listens on "host:port", "[v6]:port" or ":port", which is all interfaces. Port 0: the system chooses. opts may be
// nil. An address off the loopback interface needs a secret or opts.Open. When ctx ends, name servers are no longer waited
// for.
func (c *Context) Listen(ctx context.Context, address string, opts *ConnOptions) (*Listener, error) {
	const call = "listen"
	o := opts.copied()
	l, err := later(ctx, call, func() (*Listener, Status) {
		text := C.CString(address)
		defer C.free(unsafe.Pointer(text))
		secret, hello := o.pointers()
		l := &Listener{owner: c, results: make(chan accepted), closing: make(chan struct{})}
		status := Status(C.go_listen(c.c, text, o.native(), unsafe.Pointer(secret), unsafe.Pointer(hello), &l.l))
		if status != success {
			return nil, status
		}
		if !c.adoptListener(l) {
			l.Close()
			return nil, ErrClosed
		}
		return l, success
	}, func(l *Listener) { l.Close() })
	return l, err
}

func (c *Context) adoptListener(l *Listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.listeners[l] = struct{}{}
	}
	return !c.closing
}

// Connect connects to a listener. opts may be nil. When ctx ends, the connection is given up.
func (c *Context) Connect(ctx context.Context, address string, opts *ConnOptions) (*Conn, error) {
	const call = "connect"
	o := opts.copied()
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left <= 0 {
			left = 1
		}
		if o.Timeout == 0 && left < 5*time.Second || left < o.Timeout {
			o.Timeout = left
		}
	}
	conn, err := later(ctx, call, func() (*Conn, Status) {
		var native *C.go_team
		text := C.CString(address)
		defer C.free(unsafe.Pointer(text))
		secret, hello := o.pointers()
		status := Status(C.go_connect(c.c, text, o.native(), unsafe.Pointer(secret), unsafe.Pointer(hello), &native))
		if status != success {
			return nil, status
		}
		return c.adopt(native)
	}, func(conn *Conn) { conn.Close() })
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = ended(call, ctx)
	}
	return conn, err
}

// outcome is the result of a call in C.
type outcome[T any] struct {
	value T
	err   error
}

// reasoned runs a call in C on one thread, which has the reason of an error.
func reasoned[T any](call string, run func() (T, Status)) (T, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	value, status := run()
	return value, failWith(call, status, status.reason())
}

// later runs a call that waits in C. If ctx ends first, it goes on in another goroutine, and drop gets its result.
func later[T any](ctx context.Context, call string, run func() (T, Status), drop func(T)) (T, error) {
	if ctx.Err() != nil {
		var none T
		return none, ended(call, ctx)
	}
	return begun(ctx, call, run, drop)
}

// begun is later that runs the call even if ctx has ended.
func begun[T any](ctx context.Context, call string, run func() (T, Status), drop func(T)) (T, error) {
	var none T
	if ctx.Done() == nil {
		return reasoned(call, run)
	}
	results, left := make(chan outcome[T]), make(chan struct{})
	go func() {
		value, err := reasoned(call, run)
		select {
		case results <- outcome[T]{value, err}:
		case <-left:
			if err == nil && drop != nil {
				drop(value)
			}
		}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		close(left)
		return none, ended(call, ctx)
	}
}

// closes runs the end of an object. If ctx ends first, it goes on in another goroutine.
func closes(ctx context.Context, call string, run func() Status) error {
	_, err := begun(ctx, call, func() (struct{}, Status) { return struct{}{}, run() }, nil)
	if errors.Is(err, ErrTimedOut) && ctx.Err() != nil {
		return ended(call, ctx)
	}
	return err
}

// waits runs a call on a connection that waits in C and has no result but its status.
func (t *Team) waits(ctx context.Context, call string, run func() Status) error {
	_, err := later(ctx, call, func() (struct{}, Status) { return struct{}{}, t.judge(run()) }, nil)
	return t.explain(err)
}

// Slices of a wait that only a timeout ends: of one that can be canceled, and of one that can only be closed.
const (
	cancelSliceNs = 20 * int64(time.Millisecond)
	closeSliceNs  = 50 * int64(time.Millisecond)
)

// inSlices repeats a wait of limited time until it ends or ctx does. If ctx has ended, it tests once.
func inSlices(ctx context.Context, call string, wait func(ns int64) Status) error {
	slice := closeSliceNs
	if ctx.Done() != nil {
		slice = cancelSliceNs
	}
	sliced := false
	for {
		ns := untilNs(ctx)
		over := ns == 0
		if ns < 0 || ns > slice {
			ns = slice
		}
		if status := wait(ns); status != ErrTimedOut {
			return fail(call, status)
		}
		if over {
			<-ctx.Done()
			return ended(call, ctx)
		}
		if !sliced { // it takes long: one wait of this thread
			sliced = true
			runtime.LockOSThread()
			C.rank_wait_slices(1)
			defer runtime.UnlockOSThread()
			defer C.rank_wait_slices(0)
		}
	}
}
