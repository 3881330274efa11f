// SPDX-License-Identifier: BSD-3-Clause

// Command rankperf measures messages, puts and gets between two processes.
//
//	rankperf -listen :7471                          # serve one client
//	rankperf -connect HOST:7471 [lat put_bw ...]    # measure
//
// The columns are those of rankbench. Times include the calls of Go. Both sides prove the secret in the file
// RANK_SECRET_FILE.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"rank"
)

var background = context.Background()

const (
	tagOrder = 1 // what the server is to do
	tagKey   = 2
	tagData  = 3
	tagDone  = 4
	window   = 64
	maxBytes = 1 << 30
)

type options struct {
	min, max size
	time     time.Duration
	names    []string
}

// A size in bytes, as rankbench reads it: 8, 64K, 1M, 1G.
type size int

func (s *size) String() string {
	return strconv.Itoa(int(*s))
}

func (s *size) Set(text string) error {
	shift := 0
	text = strings.ToUpper(text)
	if n := len(text); n > 0 {
		shift = 10 * (1 + strings.IndexByte("KMG", text[n-1]))
		if shift > 0 {
			text = text[:n-1]
		}
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n > maxBytes>>shift {
		return fmt.Errorf("a size is up to %d bytes, such as 8, 64K or 1M", maxBytes)
	}
	*s = size(n << shift)
	return nil
}

func main() {
	listen := flag.String("listen", "", "serve one client: listen on `ADDRESS`, such as :7471")
	connect := flag.String("connect", "", "measure with the server at `HOST:PORT`")
	open := flag.Bool("open", false, "with -listen: accept other hosts without a secret")
	o := options{min: 8, max: 4 << 20}
	flag.Var(&o.min, "b", "the smallest size in `BYTES`; K, M and G are 1024 times as much each")
	flag.Var(&o.max, "e", "the largest size in `BYTES`")
	flag.DurationVar(&o.time, "time", 200*time.Millisecond, "`TIME` of a row")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: rankperf [-open] -listen ADDRESS\n"+
			"       rankperf [-b BYTES] [-e BYTES] [-time TIME] -connect HOST:PORT [%s]...\n", strings.Join(names(), "|"))
		flag.PrintDefaults()
	}
	flag.Parse()
	o.names = flag.Args()
	if (*listen == "") == (*connect == "") || *listen != "" && len(o.names) > 0 || *connect != "" && *open {
		flag.Usage()
		os.Exit(2)
	}
	for _, name := range o.names {
		if find(name) == nil {
			fmt.Fprintf(os.Stderr, "rankperf: %s is not one of %s\n", name, strings.Join(names(), ", "))
			os.Exit(2)
		}
	}
	if o.min < 1 || o.max < o.min || o.time <= 0 {
		fmt.Fprintln(os.Stderr, "rankperf: sizes are at least 1 byte, -b not above -e, and the time is positive")
		os.Exit(2)
	}
	if err := run(*listen, *connect, *open, o); err != nil {
		fmt.Fprintf(os.Stderr, "rankperf: %v\n", err)
		os.Exit(1)
	}
}

func run(listen, connect string, open bool, o options) error {
	c, err := rank.Open(&rank.Options{Name: "rankperf"})
	if err != nil {
		return err
	}
	defer c.Close()
	if connect != "" {
		conn, err := c.Connect(background, connect, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", connect, err)
		}
		return measure(conn, o)
	}
	l, err := c.Listen(background, listen, &rank.ConnOptions{Open: open})
	if errors.Is(err, rank.ErrArg) && !open {
		return fmt.Errorf("%s: %w (RANK_SECRET_FILE, or -open)", listen, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", listen, err)
	}
	fmt.Printf("# rankperf: listening on %s\n", l.Address())
	conn, err := l.Accept(background)
	if err != nil {
		return err
	}
	err = serve(c, conn)
	if errors.Is(err, rank.ErrClosed) { // the client is done
		return nil
	}
	return err
}
