// SPDX-License-Identifier: BSD-3-Clause

package main

import (
	"encoding/binary"
	"fmt"

	"rank"
)

// What the client orders.
const (
	orderNone   = iota // nothing
	orderMemory        // allocate, and send the key
	orderEcho          // send back as many messages
	orderSink          // receive as many messages, and answer after each window
)

// server takes part in the measurements of a client.
type server struct {
	conn  *rank.Conn
	owner *rank.Context
	data  *rank.Buffer
}

// serve carries out orders until the client closes the connection.
func serve(c *rank.Context, conn *rank.Conn) error {
	s := &server{conn: conn, owner: c}
	var order [24]byte
	for {
		if _, err := conn.Recv(background, order[:], tagOrder); err != nil {
			return err
		}
		kind, size, count := binary.LittleEndian.Uint64(order[:]), binary.LittleEndian.Uint64(order[8:]), binary.LittleEndian.Uint64(order[16:])
		if size > maxBytes || kind != orderMemory && (s.data == nil || int(size) > s.data.Len()) {
			return fmt.Errorf("the client orders %d bytes", size)
		}
		var err error
		switch kind {
		case orderMemory:
			err = s.memory(int(size))
		case orderEcho:
			err = s.echo(int(size), int(count))
		case orderSink:
			err = s.sink(int(size), int(count))
		default:
			err = fmt.Errorf("the client orders number %d, which does not exist", kind)
		}
		if err != nil {
			return err
		}
	}
}

func (s *server) memory(size int) error {
	var err error
	if s.data, err = rank.Alloc(size); err != nil {
		return err
	}
	m, err := s.owner.Register(s.data, rank.ReadWrite)
	if err != nil {
		return err
	}
	key, err := m.Key()
	if err != nil {
		return err
	}
	return s.conn.Send(background, key, tagKey)
}

func (s *server) echo(size, count int) error {
	data := s.data.Bytes()[:size]
	for i := 0; i < count; i++ {
		if _, err := s.conn.Recv(background, data, tagData); err != nil {
			return err
		}
		if err := s.conn.Send(background, data, tagData); err != nil {
			return err
		}
	}
	return nil
}

// sink receives windows as the client sends them. All go to the same memory, one after the other.
func (s *server) sink(size, count int) error {
	each := windowOf(size)
	if count < each {
		each = count
	}
	data := s.data.Bytes()[:size]
	for i := 1; i <= count; i++ {
		if _, err := s.conn.Recv(background, data, tagData); err != nil {
			return err
		}
		if i%each == 0 {
			if err := s.conn.Send(background, nil, tagDone); err != nil {
				return err
			}
		}
	}
	return nil
}
