// SPDX-License-Identifier: BSD-3-Clause

package rank

// #cgo pkg-config: rank
// #cgo CFLAGS: -std=gnu11 -Wall -Wextra
// #include "go_rank.h"
import "C"

import (
	"context"
	"errors"
	"os"
	"strings"
)

// Status is a status of rank(3). Each one but success is an error, for errors.Is:
//
//	if errors.Is(err, rank.ErrPeerDead) ...
type Status int32

// The statuses of rank(3) that are errors.
const (
	ErrArg          Status = C.RANK_ERR_ARG
	ErrState        Status = C.RANK_ERR_STATE
	ErrNoMemory     Status = C.RANK_ERR_NO_MEMORY
	ErrTruncated    Status = C.RANK_ERR_TRUNCATED
	ErrPeerDead     Status = C.RANK_ERR_PEER_DEAD
	ErrUnreachable  Status = C.RANK_ERR_UNREACHABLE
	ErrNotSupported Status = C.RANK_ERR_NOT_SUPPORTED
	ErrConfig       Status = C.RANK_ERR_CONFIG
	ErrBoot         Status = C.RANK_ERR_BOOT
	ErrChannel      Status = C.RANK_ERR_CHANNEL
	ErrHandle       Status = C.RANK_ERR_HANDLE
	ErrRank         Status = C.RANK_ERR_RANK
	ErrTag          Status = C.RANK_ERR_TAG
	ErrCount        Status = C.RANK_ERR_COUNT
	ErrDtype        Status = C.RANK_ERR_DTYPE
	ErrOp           Status = C.RANK_ERR_OP
	ErrBounds       Status = C.RANK_ERR_BOUNDS
	ErrSystem       Status = C.RANK_ERR_SYSTEM
	ErrInternal     Status = C.RANK_ERR_INTERNAL
	ErrTimedOut     Status = C.RANK_ERR_TIMED_OUT
	ErrSpawn        Status = C.RANK_ERR_SPAWN
	ErrCanceled     Status = C.RANK_ERR_CANCELED
	ErrAgain        Status = C.RANK_ERR_AGAIN
	ErrCollective   Status = C.RANK_ERR_COLLECTIVE
	ErrDevice       Status = C.RANK_ERR_DEVICE
	ErrClosed       Status = C.RANK_ERR_CLOSED
	ErrRefused      Status = C.RANK_ERR_REFUSED
	ErrSecret       Status = C.RANK_ERR_SECRET
)

const success Status = C.RANK_OK

// Error returns the text of the status.
func (s Status) Error() string {
	return C.GoString(C.rank_status_string(C.rank_status_t(s)))
}

// Timeout reports whether the status is ErrTimedOut.
func (s Status) Timeout() bool {
	return s == ErrTimedOut
}

// Is makes ErrTimedOut an os.ErrDeadlineExceeded, and ErrClosed an os.ErrClosed.
func (s Status) Is(target error) bool {
	return s == ErrTimedOut && target == os.ErrDeadlineExceeded || s == ErrClosed && target == os.ErrClosed
}

// Error is the error of a call. errors.Is finds its Status, and the error of the context.Context that ended the call.
type Error struct {
	Call   string // the call, such as "send"
	Status Status
	Detail string // what was wrong, or ""
	Cause  error  // the error of the context.Context, or nil
}

// Error returns the call and what was wrong.
func (e *Error) Error() string {
	if e.Detail != "" {
		return "rank: " + e.Call + ": " + e.Detail
	}
	return "rank: " + e.Call + ": " + e.Status.Error()
}

// Unwrap returns the Status.
func (e *Error) Unwrap() error {
	return e.Status
}

// Is compares with the error of the context.Context, too.
func (e *Error) Is(target error) bool {
	return e.Cause != nil && errors.Is(e.Cause, target)
}

// Timeout reports whether the call was out of time.
func (e *Error) Timeout() bool {
	return e.Status == ErrTimedOut
}

// reason returns why the last call of this thread failed, or "" if that is not known.
func (s Status) reason() string {
	if s == success {
		return ""
	}
	return s.detail(C.GoString(C.rank_status_reason(C.rank_status_t(s))))
}

// detail returns a reason of the library without its call in C, or "" if it is the text of the status only.
func (s Status) detail(reason string) string {
	if reason == "" || reason == s.Error() {
		return ""
	}
	if strings.HasPrefix(reason, "rank_") {
		_, reason, _ = strings.Cut(reason, ": ")
	}
	return reason
}

// fail makes the error of a call, or nil.
func fail(call string, status Status) error {
	return failWith(call, status, "")
}

// failWith is fail with a detail.
func failWith(call string, status Status, detail string) error {
	if status == success {
		return nil
	}
	return &Error{Call: call, Status: status, Detail: detail}
}

// wrong makes the error of an argument.
func wrong(call string, status Status, detail string) error {
	return &Error{Call: call, Status: status, Detail: detail}
}

// ended makes the error of a call that its context.Context has ended.
func ended(call string, ctx context.Context) error {
	status := ErrCanceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		status = ErrTimedOut
	}
	return &Error{Call: call, Status: status, Cause: ctx.Err()}
}
