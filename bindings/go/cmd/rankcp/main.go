// SPDX-License-Identifier: BSD-3-Clause

// Command rankcp copies a file from process to process.
//
//	rankcp -listen :7471 -out FILE        # receive one file
//	rankcp FILE HOST:7471                 # send it
//
// Both sides prove the secret in the file RANK_SECRET_FILE. The receiver writes FILE.part, compares length and SHA-256 with
// those of the sender, and renames it then.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"rank"
)

const (
	chunk      = 1 << 20 // bytes of a message
	depth      = 8       // messages under way
	tagHead    = 1
	tagData    = 2
	tagEnd     = 3 // of the sender: digest
	tagAnswer  = 4 // of the receiver: "" or an error
	answerTime = 30 * time.Second
	showEvery  = 500 * time.Millisecond
)

// head is what the sender sends first.
type head struct {
	Name string
	Size int64
	Mode uint32
}

// tail is what the sender sends at the end.
type tail struct {
	Size   int64
	Sha256 []byte
}

func main() {
	listen := flag.String("listen", "", "receive a file: listen on `ADDRESS`, such as :7471")
	out := flag.String("out", "", "the `FILE` to receive into")
	open := flag.Bool("open", false, "with -listen: accept other hosts without a secret")
	quiet := flag.Bool("q", false, "print no progress")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: rankcp [-q] FILE HOST:PORT\n       rankcp [-q] [-open] -listen ADDRESS -out FILE\n"+
			"Copies a file from process to process. Both sides prove the secret in the file RANK_SECRET_FILE.\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	receives := *listen != ""
	if receives && (flag.NArg() != 0 || *out == "") || !receives && (flag.NArg() != 2 || *out != "" || *open) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if receives {
		err = receive(ctx, *listen, *out, *open, *quiet)
	} else {
		err = send(ctx, flag.Arg(0), flag.Arg(1), *quiet)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "rankcp: %v\n", explain(err))
		os.Exit(1)
	}
}

// explain adds the remedy to errors that have one.
func explain(err error) error {
	switch {
	case errors.Is(err, rank.ErrSecret):
		return fmt.Errorf("%w; give both sides the same RANK_SECRET_FILE", err)
	case errors.Is(err, rank.ErrUnreachable):
		return fmt.Errorf("%w; is rankcp -listen running there?", err)
	case errors.Is(err, rank.ErrPeerDead), errors.Is(err, rank.ErrClosed):
		return fmt.Errorf("%w; the other side has ended", err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	}
	return err
}

// progress prints how far a copy is, on a terminal.
type progress struct {
	quiet       bool
	size, done  int64
	start, last time.Time
}

func newProgress(quiet bool, size int64) *progress {
	info, err := os.Stderr.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &progress{quiet: quiet || !terminal, size: size, start: time.Now()}
}

func (p *progress) add(n int) {
	p.done += int64(n)
	if now := time.Now(); !p.quiet && now.Sub(p.last) > showEvery {
		p.last = now
		fmt.Fprintf(os.Stderr, "\r%s ", p.text())
	}
}

func (p *progress) text() string {
	percent := int64(100)
	if p.size > 0 {
		percent = p.done * 100 / p.size
	}
	return fmt.Sprintf("%d of %d MiB, %d %%, %.0f MiB/s", p.done>>20, p.size>>20, percent,
		float64(p.done)/(1<<20)/time.Since(p.start).Seconds())
}

func (p *progress) end() {
	if !p.quiet {
		fmt.Fprintf(os.Stderr, "\r%s\n", p.text())
	}
}

// slots are the buffers of messages under way, used in turn.
type slots struct {
	buffers  [depth]*rank.Buffer
	requests [depth]*rank.Request
}

func newSlots() (*slots, error) {
	s := &slots{}
	for i := range s.buffers {
		b, err := rank.Alloc(chunk)
		if err != nil {
			return nil, err
		}
		s.buffers[i] = b
	}
	return s, nil
}

func sendJSON(ctx context.Context, conn *rank.Conn, v any, tag int64) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return conn.Send(ctx, text, tag)
}

func recvJSON(ctx context.Context, conn *rank.Conn, v any, tag int64) error {
	text, _, err := conn.RecvNew(ctx, tag)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
