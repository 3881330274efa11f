// SPDX-License-Identifier: BSD-3-Clause

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"time"

	"rank"
)

// client measures with one size at a time.
type client struct {
	conn   *rank.Conn
	remote *rank.Remote
	out    *rank.Buffer
	in     *rank.Buffer
	n      int
}

// row is a benchmark. once does n operations, and returns when they are complete.
type row struct {
	name      string
	doc       string
	bandwidth bool
	halves    bool // a time is that of two messages
	order     int  // what the server does meanwhile
	once      func(c *client, operations int) error
}

var rows = []row{
	{"lat", "one-way latency of a message", false, true, orderEcho, (*client).echo},
	{"bw", "bandwidth of many messages in flight", true, false, orderSink, (*client).send},
	{"put_lat", "a put and its completion at the target", false, false, orderNone, (*client).putFlush},
	{"put_bw", "bandwidth of many puts", true, false, orderNone, (*client).puts},
	{"get_lat", "a get", false, false, orderNone, (*client).get},
	{"get_bw", "bandwidth of many gets", true, false, orderNone, (*client).gets},
}

func names() []string {
	var list []string
	for _, r := range rows {
		list = append(list, r.name)
	}
	return list
}

func find(name string) *row {
	for i := range rows {
		if rows[i].name == name {
			return &rows[i]
		}
	}
	return nil
}

func (c *client) echo(int) error {
	if err := c.conn.Send(background, c.out.Bytes()[:c.n], tagData); err != nil {
		return err
	}
	_, err := c.conn.Recv(background, c.in.Bytes()[:c.n], tagData)
	return err
}

// started waits for operations that start has started.
func started(operations int, start func() (*rank.Request, error)) error {
	requests := make([]*rank.Request, operations)
	for i := range requests {
		var err error
		if requests[i], err = start(); err != nil {
			return err
		}
	}
	return rank.WaitAll(background, requests...)
}

func (c *client) send(operations int) error {
	view := c.out.Slice(0, c.n)
	err := started(operations, func() (*rank.Request, error) { return c.conn.Isend(view, tagData) })
	if err == nil {
		_, err = c.conn.Recv(background, nil, tagDone)
	}
	return err
}

func (c *client) putFlush(int) error {
	if err := c.remote.Put(background, c.out.Bytes()[:c.n], 0); err != nil {
		return err
	}
	return c.remote.Flush(background)
}

func (c *client) puts(operations int) error {
	view := c.out.Slice(0, c.n)
	err := started(operations, func() (*rank.Request, error) { return c.remote.Iput(view, 0) })
	if err == nil {
		err = c.remote.Flush(background)
	}
	return err
}

func (c *client) get(int) error {
	return c.remote.Get(background, c.in.Bytes()[:c.n], 0)
}

func (c *client) gets(operations int) error {
	view := c.in.Slice(0, c.n)
	return started(operations, func() (*rank.Request, error) { return c.remote.Iget(view, 0) })
}

// measure prints the tables that are named, or all.
func measure(conn *rank.Conn, o options) error {
	info, err := conn.Info()
	if err != nil {
		return err
	}
	c := &client{conn: conn}
	if c.out, err = rank.Alloc(int(o.max)); err != nil {
		return err
	}
	if c.in, err = rank.Alloc(int(o.max)); err != nil {
		return err
	}
	if err := c.order(orderMemory, int(o.max), 0); err != nil {
		return err
	}
	key, _, err := conn.RecvNew(background, tagKey)
	if err != nil {
		return err
	}
	if c.remote, err = conn.Open(background, key); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if len(o.names) > 0 && !contains(o.names, r.name) {
			continue
		}
		fmt.Printf("# rankperf %s: librank %s, by %s\n# %s\n", r.name, rank.Version(), info.Channel, r.doc)
		printHead(r)
		for c.n = int(o.min); c.n <= int(o.max); c.n *= 2 {
			if err := c.measureRow(r, o.time); err != nil {
				return err
			}
		}
	}
	if err := c.remote.Close(background); err != nil {
		return err
	}
	return conn.Close()
}

func contains(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

func (c *client) order(kind, size, count int) error {
	var order [24]byte
	for i, v := range []int{kind, size, count} {
		binary.LittleEndian.PutUint64(order[8*i:], uint64(v))
	}
	return c.conn.Send(background, order[:], tagOrder)
}

// sample times operations, after it has told the server to take part.
func (c *client) sample(r *row, samples, operations int) ([]float64, error) {
	if r.order != orderNone {
		if err := c.order(r.order, c.n, samples*operations); err != nil {
			return nil, err
		}
	}
	times := make([]float64, samples)
	for i := range times {
		start := time.Now()
		if err := r.once(c, operations); err != nil {
			return nil, err
		}
		times[i] = time.Since(start).Seconds()
		if r.halves {
			times[i] /= 2
		}
	}
	return times, nil
}

// wrong counts the bytes that one more operation damages.
func (c *client) wrong(r *row) (int, error) {
	for i, data := 0, c.out.Bytes()[:c.n]; i < len(data); i++ {
		data[i] = byte(i*7 + c.n)
	}
	if !r.halves { // to be read back
		if err := c.putFlush(1); err != nil {
			return 0, err
		}
	}
	if _, err := c.sample(r, 1, 1); err != nil {
		return 0, err
	}
	if !r.halves {
		if err := c.get(1); err != nil {
			return 0, err
		}
	}
	out, in, bad := c.out.Bytes()[:c.n], c.in.Bytes()[:c.n], 0
	if bytes.Equal(out, in) {
		return 0, nil
	}
	for i := range out {
		if out[i] != in[i] {
			bad++
		}
	}
	return bad, nil
}

// windowOf returns the messages in flight, of at most 32 MiB in all.
func windowOf(size int) int {
	n := window
	for n > 1 && n*size > 32<<20 {
		n /= 2
	}
	return n
}

func (c *client) measureRow(r *row, limit time.Duration) error {
	operations := 1
	if r.bandwidth {
		operations = windowOf(c.n)
	}
	warm, err := c.sample(r, 4, operations)
	if err != nil {
		return err
	}
	sort.Float64s(warm)
	samples := int(limit.Seconds() / math.Max(warm[1], 1e-7))
	if r.halves {
		samples /= 2
	}
	if samples < 4 {
		samples = 4
	}
	if samples > 1<<20 {
		samples = 1 << 20
	}
	times, err := c.sample(r, samples, operations)
	if err != nil {
		return err
	}
	bad, err := c.wrong(r)
	if err != nil {
		return err
	}
	printRow(r, c.n, operations, times, bad)
	return nil
}
