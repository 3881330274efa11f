// SPDX-License-Identifier: BSD-3-Clause

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"time"

	"rank"
)

// receive accepts one sender and receives its file.
func receive(ctx context.Context, address, out string, open, quiet bool) error {
	c, err := rank.Open(&rank.Options{Name: "rankcp"})
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := c.Listen(ctx, address, &rank.ConnOptions{Open: open, MaxConns: 1})
	if errors.Is(err, rank.ErrArg) {
		return fmt.Errorf("%s: %w; other hosts need RANK_SECRET_FILE, or -open", address, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	fmt.Fprintf(os.Stderr, "rankcp: listening on %s\n", l.Address())
	conn, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	part := out + ".part"
	h, err := receiveInto(ctx, conn, part, quiet)
	if err == nil {
		err = os.Rename(part, out)
	}
	text := ""
	if err != nil {
		os.Remove(part)
		text = err.Error()
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if failed := conn.Send(limit, []byte(text), tagAnswer); err == nil && failed != nil {
		return fmt.Errorf("%s is complete, but the sender has ended: %w", out, failed)
	}
	conn.Close()
	if err == nil {
		fmt.Fprintf(os.Stderr, "rankcp: %s: %d bytes of %q are the same\n", out, h.Size, h.Name)
	}
	return err
}

func receiveInto(ctx context.Context, conn *rank.Conn, part string, quiet bool) (h head, err error) {
	if err = recvJSON(ctx, conn, &h, tagHead); err != nil {
		return h, err
	}
	if h.Size < 0 {
		return h, fmt.Errorf("a file of %d bytes", h.Size)
	}
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, os.FileMode(h.Mode).Perm())
	if err != nil {
		return h, err
	}
	sum, err := receiveData(ctx, conn, file, h.Size, quiet)
	if failed := file.Close(); err == nil {
		err = failed
	}
	if err != nil {
		return h, err
	}
	var t tail
	if err = recvJSON(ctx, conn, &t, tagEnd); err != nil {
		return h, err
	}
	if t.Size != h.Size || !bytes.Equal(t.Sha256, sum) {
		return h, fmt.Errorf("the checksum of %q differs: the copy is damaged", h.Name)
	}
	return h, nil
}

// receiveData writes the file, and returns its digest.
func receiveData(ctx context.Context, conn *rank.Conn, file *os.File, size int64, quiet bool) ([]byte, error) {
	s, err := newSlots()
	if err != nil {
		return nil, err
	}
	messages := (size + chunk - 1) / chunk
	post := func(i int64) error {
		if i >= messages {
			return nil
		}
		r, err := conn.Irecv(s.buffers[i%depth].All(), tagData)
		s.requests[i%depth] = r
		return err
	}
	for i := int64(0); i < depth; i++ {
		if err := post(i); err != nil {
			return nil, err
		}
	}
	digest, show := sha256.New(), newProgress(quiet, size)
	defer show.end()
	for i := int64(0); i < messages; i++ {
		e, err := s.requests[i%depth].Wait(ctx)
		if err != nil {
			return nil, err
		}
		want := int64(chunk)
		if i == messages-1 {
			want = size - i*chunk
		}
		if int64(e.Bytes) != want {
			return nil, fmt.Errorf("a message of %d bytes, not %d", e.Bytes, want)
		}
		data := s.buffers[i%depth].Bytes()[:e.Bytes]
		digest.Write(data)
		if _, err := file.Write(data); err != nil {
			return nil, err
		}
		show.add(e.Bytes)
		if err := post(i + depth); err != nil {
			return nil, err
		}
	}
	return digest.Sum(nil), nil
}
