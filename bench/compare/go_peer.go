// SPDX-License-Identifier: BSD-3-Clause

// go_peer: run the cases of peer_link.py by the Go binding of librank: write and read of one block, and ping.
//
//	go_peer listen HOST:PORT
//	go_peer connect HOST:PORT CASE...
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"rank"
)

// As in peer_link.py.
const (
	gap     = 0x5a
	batch   = 50
	fewest  = 7
	tagWord = 1
	tagData = 2
)

type testCase struct {
	text, op string
	bytes    int
	seconds  float64
}

// peer is one of the two sides.
type peer struct {
	ctx    context.Context
	conn   *rank.Conn
	local  []byte
	back   []byte
	target *rank.Buffer
	remote *rank.Remote
}

func must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "go_peer: %s: %v\n", what, err)
		os.Exit(1)
	}
}

func parseCase(text string) testCase {
	words := strings.Split(text, ":")
	if len(words) < 3 {
		must(fmt.Errorf("it is not a case"), text)
	}
	c := testCase{text: text, op: words[0], seconds: 0.3}
	var err error
	c.bytes, err = strconv.Atoi(words[1])
	must(err, text)
	if words[2] != "1" || (c.op != "write" && c.op != "read" && c.op != "ping") {
		must(fmt.Errorf("lists are not measured"), text)
	}
	if len(words) > 3 {
		c.seconds, err = strconv.ParseFloat(words[3], 64)
		must(err, text)
	}
	return c
}

func (p *peer) putWord(word uint64) {
	var data [8]byte
	binary.LittleEndian.PutUint64(data[:], word)
	must(p.conn.Send(p.ctx, data[:], tagWord), "Send")
}

func (p *peer) getWord() uint64 {
	var data [8]byte
	_, err := p.conn.Recv(p.ctx, data[:], tagWord)
	must(err, "Recv")
	return binary.LittleEndian.Uint64(data[:])
}

func fill(data []byte, value byte) {
	for n := copy(data, []byte{value}); n < len(data); n *= 2 {
		copy(data[n:], data[:n])
	}
}

// differs compares data with a row of the value.
func (p *peer) differs(data []byte, value byte) uint64 {
	fill(p.back[:len(data)], value)
	if bytes.Equal(data, p.back[:len(data)]) {
		return 0
	}
	return 1
}

func (p *peer) moveOnce(c testCase, turn uint64) (time.Duration, uint64) {
	data, value := p.local[:c.bytes], byte(turn%251)
	if c.op == "write" {
		fill(data, value)
		start := time.Now()
		must(p.remote.Put(p.ctx, data, 0), "Put")
		must(p.remote.Flush(p.ctx), "Flush")
		took := time.Since(start)
		p.putWord(turn)
		return took, p.getWord()
	}
	fill(data, gap)
	p.putWord(turn)
	p.getWord()
	start := time.Now()
	must(p.remote.Get(p.ctx, data, 0), "Get")
	took := time.Since(start)
	return took, p.differs(data, value)
}

func (p *peer) pingOnce(c testCase, turn uint64) (time.Duration, uint64) {
	wrong := uint64(0)
	p.putWord(turn)
	start := time.Now()
	for k := 0; k < batch; k++ {
		fill(p.local[:c.bytes], byte(k))
		must(p.conn.Send(p.ctx, p.local[:c.bytes], tagData), "Send")
		_, err := p.conn.Recv(p.ctx, p.back[:c.bytes], tagData)
		must(err, "Recv")
		if !bytes.Equal(p.local[:c.bytes], p.back[:c.bytes]) {
			wrong++
		}
	}
	return time.Since(start) / batch, wrong
}

func (p *peer) runFirst(c testCase) {
	var times []time.Duration
	wrong := uint64(0)
	once := p.moveOnce
	if c.op == "ping" {
		once = p.pingOnce
	} else {
		p.getWord()
	}
	end := time.Now().Add(time.Duration(c.seconds * 1e9))
	for len(times) < fewest || time.Now().Before(end) {
		took, bad := once(c, uint64(len(times)+1))
		times = append(times, took)
		wrong += bad
	}
	p.putWord(0)
	times = times[2:]
	sort.Slice(times, func(i, k int) bool { return times[i] < times[k] })
	fmt.Printf("%s %.3f %d\n", c.text, float64(times[len(times)/2])/1e3, wrong)
}

func (p *peer) runSecond(c testCase) {
	if c.op == "ping" {
		for p.getWord() != 0 {
			for k := 0; k < batch; k++ {
				_, err := p.conn.Recv(p.ctx, p.back[:c.bytes], tagData)
				must(err, "Recv")
				must(p.conn.Send(p.ctx, p.back[:c.bytes], tagData), "Send")
			}
		}
		return
	}
	block := p.target.Bytes()[:2*c.bytes]
	fill(block, gap)
	p.putWord(0)
	for turn := p.getWord(); turn != 0; turn = p.getWord() {
		wrong := uint64(0)
		if c.op == "read" {
			fill(block[:c.bytes], byte(turn%251))
		} else {
			wrong = p.differs(block[:c.bytes], byte(turn%251)) + p.differs(block[c.bytes:], gap)
		}
		p.putWord(wrong)
	}
}

// join connects, and exchanges the cases.
func (p *peer) join(library *rank.Context, role, address string, texts []string) []string {
	var err error
	if role == "connect" {
		p.conn, err = library.Connect(p.ctx, address, nil)
		must(err, address)
		must(p.conn.Send(p.ctx, []byte(strings.Join(texts, " ")), tagWord), "Send")
		return texts
	}
	listener, err := library.Listen(p.ctx, address, &rank.ConnOptions{Open: true})
	must(err, address)
	p.conn, err = listener.Accept(p.ctx)
	must(err, "Accept")
	data, _, err := p.conn.RecvNew(p.ctx, tagWord)
	must(err, "RecvNew")
	return strings.Fields(string(data))
}

func main() {
	if len(os.Args) < 3 || (os.Args[1] != "listen" && os.Args[1] != "connect") {
		fmt.Fprintln(os.Stderr, "usage: go_peer listen HOST:PORT | go_peer connect HOST:PORT CASE...")
		os.Exit(2)
	}
	p := &peer{ctx: context.Background()}
	library, err := rank.Open(nil)
	must(err, "Open")
	texts := p.join(library, os.Args[1], os.Args[2], os.Args[3:])
	largest := 8
	var cases []testCase
	for _, text := range texts {
		c := parseCase(text)
		cases = append(cases, c)
		if c.bytes > largest {
			largest = c.bytes
		}
	}
	p.local, p.back = make([]byte, largest), make([]byte, largest)
	if os.Args[1] == "connect" {
		key, _, err := p.conn.RecvNew(p.ctx, tagWord)
		must(err, "RecvNew")
		p.remote, err = p.conn.Open(p.ctx, key)
		must(err, "Open")
	} else {
		p.target, err = rank.Alloc(2 * largest)
		must(err, "Alloc")
		mem, err := library.Register(p.target, rank.ReadWrite)
		must(err, "Register")
		key, err := mem.Key()
		must(err, "Key")
		must(p.conn.Send(p.ctx, key, tagWord), "Send")
	}
	for _, c := range cases {
		if os.Args[1] == "connect" {
			p.runFirst(c)
		} else {
			p.runSecond(c)
		}
	}
	must(p.conn.Close(), "Close")
	must(library.Close(), "Close")
}
