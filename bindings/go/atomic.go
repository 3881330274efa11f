// SPDX-License-Identifier: BSD-3-Clause

package rank

// #include "go_rank.h"
import "C"

import (
	"context"
	"math"
)

// Amo is an atomic operation.
type Amo int

// The operations of Atomic. Those without Fetch return 0, and may be pending on return: Flush completes them.
const (
	Add      Amo = C.RANK_AMO_ADD
	FetchAdd Amo = C.RANK_AMO_FETCH_ADD
	Swap     Amo = C.RANK_AMO_SWAP
	And      Amo = C.RANK_AMO_AND
	FetchAnd Amo = C.RANK_AMO_FETCH_AND
	Or       Amo = C.RANK_AMO_OR
	FetchOr  Amo = C.RANK_AMO_FETCH_OR
	Xor      Amo = C.RANK_AMO_XOR
	FetchXor Amo = C.RANK_AMO_FETCH_XOR
)

// Number is a type that atomic operations work on. Floating-point numbers have Add, FetchAdd, Swap and CompareSwap.
type Number interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
}

// encode returns the datatype and the bits of a number. C has no macros of cgo for datatypes: they are casts.
func encode[T Number](v T) (C.rank_dtype_t, C.uint64_t) {
	switch x := any(v).(type) {
	case int32:
		return C.RANK_INT32, C.uint64_t(uint32(x))
	case uint32:
		return C.RANK_UINT32, C.uint64_t(x)
	case int64:
		return C.RANK_INT64, C.uint64_t(x)
	case uint64:
		return C.RANK_UINT64, C.uint64_t(x)
	case float32:
		return C.RANK_F32, C.uint64_t(math.Float32bits(x))
	case float64:
		return C.RANK_F64, C.uint64_t(math.Float64bits(x))
	}
	return 0, 0
}

func decode[T Number](bits C.uint64_t) T {
	var v T
	switch p := any(&v).(type) {
	case *int32:
		*p = int32(uint32(bits))
	case *uint32:
		*p = uint32(bits)
	case *int64:
		*p = int64(bits)
	case *uint64:
		*p = uint64(bits)
	case *float32:
		*p = math.Float32frombits(uint32(bits))
	case *float64:
		*p = math.Float64frombits(uint64(bits))
	}
	return v
}

// Atomic updates the element at offset, which is aligned to its size. Returns the value before. When ctx ends, it goes on.
func Atomic[T Number](ctx context.Context, r *Remote, amo Amo, offset int64, operand T) (T, error) {
	dtype, bits := encode(operand)
	if ctx.Done() == nil { // without a closure
		var before C.uint64_t
		status := Status(C.go_remote_atomic(r.team.handle(), toRank(r.peer), handleOf(r.mem), C.int(amo), dtype, bits, C.int64_t(offset), &before))
		return decode[T](before), r.team.failed("atomic", status)
	}
	before, err := later(ctx, "atomic", func() (C.uint64_t, Status) {
		var before C.uint64_t
		status := Status(C.go_remote_atomic(r.team.handle(), toRank(r.peer), handleOf(r.mem), C.int(amo), dtype, bits, C.int64_t(offset), &before))
		return before, r.team.judge(status)
	}, nil)
	return decode[T](before), r.team.explain(err)
}

// CompareSwap stores desired if the element has the bits of expected. Returns the value before. When ctx ends, it goes on.
func CompareSwap[T Number](ctx context.Context, r *Remote, offset int64, expected, desired T) (T, error) {
	dtype, old := encode(expected)
	_, bits := encode(desired)
	before, err := later(ctx, "compare and swap", func() (C.uint64_t, Status) {
		var before C.uint64_t
		status := Status(C.go_remote_cas(r.team.handle(), toRank(r.peer), handleOf(r.mem), dtype, old, bits, C.int64_t(offset), &before))
		return before, r.team.judge(status)
	}, nil)
	return decode[T](before), r.team.explain(err)
}
