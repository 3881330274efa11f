// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
import "C"

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"
)

// Element is a type that messages and collectives carry. Its memory has no pointers.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint | ~float32 | ~float64 | ~complex64 | ~complex128
}

// Op combines elements in a reduction.
type Op uint64

// The operations of rank(3). Avg is of floating-point and complex numbers, the bitwise ones of integers.
const (
	Sum        Op = 0x11000000
	Prod       Op = 0x11000100
	Min        Op = 0x11000200
	Max        Op = 0x11000300
	Avg        Op = 0x11000400
	LogicalAnd Op = 0x11000500
	LogicalOr  Op = 0x11000600
	LogicalXor Op = 0x11000700
	BitAnd     Op = 0x11000800
	BitOr      Op = 0x11000900
	BitXor     Op = 0x11000a00
)

// Bytes returns the memory of data, without a copy.
func Bytes[T Element](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(data)*int(unsafe.Sizeof(data[0])))
}

// dtypeOf returns the datatype of elements.
func dtypeOf[T Element]() C.rank_dtype_t {
	switch kind := reflect.TypeOf((*T)(nil)).Elem().Kind(); kind {
	case reflect.Int8:
		return C.RANK_INT8
	case reflect.Int16:
		return C.RANK_INT16
	case reflect.Int32:
		return C.RANK_INT32
	case reflect.Uint8:
		return C.RANK_UINT8
	case reflect.Uint16:
		return C.RANK_UINT16
	case reflect.Uint32:
		return C.RANK_UINT32
	case reflect.Float32:
		return C.RANK_F32
	case reflect.Float64:
		return C.RANK_F64
	case reflect.Complex64:
		return C.RANK_F32_COMPLEX
	case reflect.Complex128:
		return C.RANK_F64_COMPLEX
	case reflect.Int, reflect.Int64:
		if kind == reflect.Int && unsafe.Sizeof(int(0)) == 4 {
			return C.RANK_INT32
		}
		return C.RANK_INT64
	default:
		if kind == reflect.Uint && unsafe.Sizeof(uint(0)) == 4 {
			return C.RANK_UINT32
		}
		return C.RANK_UINT64
	}
}

// overlap reports whether two slices share memory.
func overlap[T Element](a, b []T) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	size := unsafe.Sizeof(a[0])
	from, to := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return from < to+uintptr(len(b))*size && to < from+uintptr(len(a))*size
}

// collective runs one on n elements for each block. in nil is in place; so is out of a scatter.
func collective[T Element](ctx context.Context, t *Team, call string, kind C.int, out, in []T, n int, op Op, root int) error {
	if overlap(out, in) {
		return wrong(call, ErrArg, "out and in share memory; give nil for one of them to use the other in place")
	}
	dtype := dtypeOf[T]()
	var none [1]T
	var err error
	run := func() (struct{}, Status) {
		var status C.rank_status_t
		to, from := out, in
		if len(to) == 0 {
			to = none[:]
		}
		if len(from) == 0 {
			from = none[:]
		}
		switch { // a conversion in the call, for cgo to check these elements only
		case in == nil:
			status = C.go_collective(t.handle(), kind, nil, unsafe.Pointer(&to[0]), C.int64_t(n), dtype, C.rank_op_t(op), toRank(root))
		case out == nil:
			status = C.go_collective(t.handle(), kind, unsafe.Pointer(&from[0]), nil, C.int64_t(n), dtype, C.rank_op_t(op), toRank(root))
		default:
			status = C.go_collective(t.handle(), kind, unsafe.Pointer(&from[0]), unsafe.Pointer(&to[0]), C.int64_t(n), dtype, C.rank_op_t(op),
				toRank(root))
		}
		return struct{}{}, Status(status)
	}
	_, err = inOrder(ctx, t, call, run, nil)
	return err
}

// sized checks the length of a slice that is used.
func sized[T Element](call, name string, data []T, want int) error {
	if len(data) != want {
		return wrong(call, ErrCount, fmt.Sprintf("%s has %d elements; it needs %d", name, len(data), want))
	}
	return nil
}

// sizes checks the lengths of out and in, which may be nil.
func sizes[T Element](call string, out []T, wantOut int, in []T, wantIn int) error {
	if err := sized(call, "out", out, wantOut); err != nil {
		return err
	}
	if in == nil {
		return nil
	}
	return sized(call, "in", in, wantIn)
}

// Barrier waits until all ranks have called it. When ctx ends, it goes on: a later collective of the team follows it.
func (t *Team) Barrier(ctx context.Context) error {
	_, err := inOrder(ctx, t, "barrier", func() (struct{}, Status) {
		return struct{}{}, Status(C.go_collective(t.handle(), C.GO_BARRIER, nil, nil, 0, 0, 0, 0))
	}, nil)
	return err
}

// Bcast copies data of root to all ranks. Collective. All collectives hold a thread. When ctx ends, they go on: their slices
// must not be used, and a later collective of the team follows.
func Bcast[T Element](ctx context.Context, t *Team, data []T, root int) error {
	return collective(ctx, t, "bcast", C.GO_BCAST, data, nil, len(data), 0, root)
}

// Reduce combines in of all ranks to out of root, element by element. Others' out is not used. At root in may be nil: out
// then has the input.
func Reduce[T Element](ctx context.Context, t *Team, out, in []T, op Op, root int) error {
	const call = "reduce"
	if t.rank != root {
		if in == nil {
			in = []T{}
		}
		return collective(ctx, t, call, C.GO_REDUCE, []T{}, in, len(in), op, root)
	}
	if err := sizes(call, out, len(out), in, len(out)); err != nil {
		return err
	}
	return collective(ctx, t, call, C.GO_REDUCE, out, in, len(out), op, root)
}

// Allreduce combines in of all ranks to out of all ranks, element by element. in may be nil on all ranks: out then has the
// input.
func Allreduce[T Element](ctx context.Context, t *Team, out, in []T, op Op) error {
	const call = "allreduce"
	if err := sizes(call, out, len(out), in, len(out)); err != nil {
		return err
	}
	return collective(ctx, t, call, C.GO_ALLREDUCE, out, in, len(out), op, 0)
}

// Scan combines in of the ranks up to this one, in their order. in may be nil as in Allreduce.
func Scan[T Element](ctx context.Context, t *Team, out, in []T, op Op) error {
	const call = "scan"
	if err := sizes(call, out, len(out), in, len(out)); err != nil {
		return err
	}
	return collective(ctx, t, call, C.GO_SCAN, out, in, len(out), op, 0)
}

// Exscan combines in of the ranks before this one. out of rank 0 is left as it is.
func Exscan[T Element](ctx context.Context, t *Team, out, in []T, op Op) error {
	const call = "exscan"
	if err := sizes(call, out, len(out), in, len(out)); err != nil {
		return err
	}
	return collective(ctx, t, call, C.GO_EXSCAN, out, in, len(out), op, 0)
}

// ReduceScatter combines in of all ranks. Rank i gets block i of len(out) elements.
func ReduceScatter[T Element](ctx context.Context, t *Team, out, in []T, op Op) error {
	const call = "reduce_scatter"
	if err := sized(call, "in", in, t.size*len(out)); err != nil {
		return err
	}
	return collective(ctx, t, call, C.GO_REDUCE_SCATTER, out, someOf(in), len(out), op, 0)
}

// Gather collects in of all ranks in out of root, in their order. Others' out is not used. At root in may be nil: its block
// of out then has the input.
func Gather[T Element](ctx context.Context, t *Team, out, in []T, root int) error {
	const call = "gather"
	if t.rank != root {
		return collective(ctx, t, call, C.GO_GATHER, []T{}, someOf(in), len(in), 0, root)
	}
	if len(out)%t.size != 0 {
		return wrong(call, ErrCount, fmt.Sprintf("out has %d elements; it needs a multiple of %d, the ranks", len(out), t.size))
	}
	if err := sizes(call, out, len(out), in, len(out)/t.size); err != nil {
		return err
	}
	return collective(ctx, t, call, C.GO_GATHER, out, in, len(out)/t.size, 0, root)
}

// Allgather collects in of all ranks in out, in their order. in may be nil on all ranks: their block of out then has the
// input.
func Allgather[T Element](ctx context.Context, t *Team, out, in []T) error {
	const call = "allgather"
	if len(out)%t.size != 0 {
		return wrong(call, ErrCount, fmt.Sprintf("out has %d elements; it needs a multiple of %d, the ranks", len(out), t.size))
	}
	if err := sizes(call, out, len(out), in, len(out)/t.size); err != nil {
		return err
	}
	return collective(ctx, t, call, C.GO_ALLGATHER, out, in, len(out)/t.size, 0, 0)
}

// Scatter gives block i of in at root to out of rank i. Others' in is not used. At root out may be nil: its block stays in
// in.
func Scatter[T Element](ctx context.Context, t *Team, out, in []T, root int) error {
	const call = "scatter"
	if t.rank != root {
		return collective(ctx, t, call, C.GO_SCATTER, someOf(out), []T{}, len(out), 0, root)
	}
	n := len(out)
	if out == nil {
		n = len(in) / t.size
	}
	if err := sized(call, "in", in, t.size*n); err != nil {
		return err
	}
	return collective(ctx, t, call, C.GO_SCATTER, out, someOf(in), n, 0, root)
}

// Alltoall sends block i of in to rank i, and block i of out comes from rank i. in may be nil on all ranks: out then has
// the input.
func Alltoall[T Element](ctx context.Context, t *Team, out, in []T) error {
	const call = "alltoall"
	if len(out)%t.size != 0 {
		return wrong(call, ErrCount, fmt.Sprintf("out has %d elements; it needs a multiple of %d, the ranks", len(out), t.size))
	}
	if err := sizes(call, out, len(out), in, len(out)); err != nil {
		return err
	}
	return collective(ctx, t, call, C.GO_ALLTOALL, out, in, len(out)/t.size, 0, 0)
}

// someOf returns data, or an empty slice that is not nil.
func someOf[T Element](data []T) []T {
	if data == nil {
		return []T{}
	}
	return data
}
