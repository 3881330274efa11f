// SPDX-License-Identifier: BSD-3-Clause

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"rank"
)

// send sends a file, and waits until the receiver has checked it.
func send(ctx context.Context, name, address string, quiet bool) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	c, err := rank.Open(&rank.Options{Name: "rankcp"})
	if err != nil {
		return err
	}
	defer c.Close()
	conn, err := c.Connect(ctx, address, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	err = sendTo(ctx, conn, file, head{filepath.Base(name), info.Size(), uint32(info.Mode().Perm())}, quiet)
	if answer := answerOf(conn, err); answer != nil {
		return answer
	}
	return nil
}

// answerOf returns the answer of the receiver, or err if there is none.
func answerOf(conn *rank.Conn, err error) error {
	limit := answerTime
	if err != nil {
		limit = time.Second // it has sent one if it failed
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	text, _, failed := conn.RecvNew(ctx, tagAnswer)
	switch {
	case failed == nil && len(text) > 0:
		return fmt.Errorf("the receiver: %s", text)
	case err != nil:
		return err
	case failed != nil:
		return fmt.Errorf("the receiver does not confirm: %w", failed)
	}
	return nil
}

func sendTo(ctx context.Context, conn *rank.Conn, file *os.File, h head, quiet bool) error {
	s, err := newSlots()
	if err != nil {
		return err
	}
	if err := sendJSON(ctx, conn, h, tagHead); err != nil {
		return err
	}
	digest, show := sha256.New(), newProgress(quiet, h.Size)
	defer show.end()
	for at, slot := int64(0), 0; at < h.Size; slot = (slot + 1) % depth {
		if err := wait(ctx, s.requests[slot]); err != nil {
			return err
		}
		n := int64(chunk)
		if n > h.Size-at {
			n = h.Size - at
		}
		view := s.buffers[slot].Slice(0, int(n))
		if _, err := io.ReadFull(file, view.Bytes()); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return fmt.Errorf("%s has become shorter than %d bytes", file.Name(), h.Size)
			}
			return err
		}
		digest.Write(view.Bytes())
		if s.requests[slot], err = conn.Isend(view, tagData); err != nil {
			return err
		}
		at += n
		show.add(int(n))
	}
	for _, r := range s.requests {
		if err := wait(ctx, r); err != nil {
			return err
		}
	}
	return sendJSON(ctx, conn, tail{h.Size, digest.Sum(nil)}, tagEnd)
}

// wait waits for a request. No-op if there is none.
func wait(ctx context.Context, r *rank.Request) error {
	if r == nil {
		return nil
	}
	_, err := r.Wait(ctx)
	return err
}
