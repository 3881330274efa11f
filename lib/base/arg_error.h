/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arg_error.h: report the errors that calls of rank.h return.
 *
 * One place makes each line: it is printed as RANK_ERRORS selects, and rank_status_reason returns it in any case, so that
 * both are equal. Errors of the program, which are rejected arguments and truncated receives, print one line for each
 * function and kind of error, at most 8 a process. A line that belongs to no call is logged by rk_error (log.h) instead.
 * Not on the path of a call that succeeds.
 */
#ifndef RK_BASE_ARG_ERROR_H
#define RK_BASE_ARG_ERROR_H

#include "lib/base/compiler.h"
#include "lib/rank.h"

#include <stdbool.h>

/*
 * State of the process between rank_init and rank_finalize. FORKED: a forked child of a rank. Only init.c changes
 * it.
 */
enum rk_life { RK_LIFE_OUT, RK_LIFE_JOINING, RK_LIFE_IN, RK_LIFE_LEFT, RK_LIFE_FORKED };
extern _Atomic int rk_life;
/* Open contexts of rank_ctx_open: handles may be theirs. */
extern _Atomic int rk_contexts;
/* This process was forked while it had contexts. */
extern _Atomic bool rk_forked;

/* Ends the job for RANK_ERRORS=abort; NULL: print only. */
extern void (*rk_arg_abort)(int code, const char *text);

/* This process makes calls of rank.h: RANK_ERRORS applies from now on. Without it all lines are printed, as of xrun. */
void rk_errors_apply(void);
/* RANK_ERRORS=auto is quiet from now on: a language's binding raises what rank_status_reason returns. */
void rk_errors_quiet(void);
/* Print lines of this thread in any case: it is the library's, and returns to no caller. */
void rk_errors_background(void);

/* A call fails: print the line unless RANK_ERRORS=quiet, and keep it for rank_status_reason. Returns st. */
RK_COLD rank_status_t rk_fail(rank_status_t st, const char *fmt, ...) RK_PRINTF(2, 3);
/* The same where another rank prints the line. */
RK_COLD rank_status_t rk_fail_silent(rank_status_t st, const char *fmt, ...) RK_PRINTF(2, 3);
/*
 * A blocking call, a wait or a test returns the error st. With RANK_ERRORS=abort it ends the job, unless the program has to
 * expect the error: RANK_ERR_TIMED_OUT, RANK_ERR_AGAIN, RANK_ERR_CANCELED, RANK_ERR_PEER_DEAD, RANK_ERR_CLOSED. Returns st.
 * call may be NULL.
 */
RK_COLD rank_status_t rk_call_returns(const char *call, rank_status_t st);
RK_INLINE rank_status_t rk_call_end(const char *call, rank_status_t st)
{
    return rk_likely(st == RANK_OK) ? st : rk_call_returns(call, st);
}

/*
 * An error of the program: print "CALL: text". call "": the text alone. call NULL: no-op; the caller checks again and
 * reports then.
 */
RK_COLD void rk_arg_report(rank_status_t st, const char *call, const char *fmt, ...) RK_PRINTF(3, 4);
RK_COLD void rk_arg_report_null(const char *call, const char *name);
RK_COLD void rk_arg_report_life(const char *call);
RK_COLD bool rk_arg_report_handle(const char *call, const char *what, const void *handle);

/* These return constants, so that the compiler can derive that the check has failed. */

/* The text is a format and its arguments; evaluates to st. */
#define rk_arg_error(st, call, ...) (rk_arg_report((st), (call), __VA_ARGS__), (st))

/* The same for a cause that is no argument: rk_fail with "CALL: ". */
RK_COLD void rk_call_report(rank_status_t st, const char *call, const char *fmt, ...) RK_PRINTF(3, 4);
#define rk_call_error(st, call, ...) (rk_call_report((st), (call), __VA_ARGS__), (st))

/* "NAME is NULL". */
RK_INLINE rank_status_t rk_arg_null(const char *call, const char *name)
{
    rk_arg_report_null(call, name);
    return RANK_ERR_ARG;
}

/* The library is not initialized. */
RK_INLINE rank_status_t rk_arg_not_in(const char *call)
{
    rk_arg_report_life(call);
    return RANK_ERR_STATE;
}

/* Invalid handle: RANK_ERR_STATE if the library is not initialized, else RANK_ERR_HANDLE. */
RK_INLINE rank_status_t rk_arg_handle(const char *call, const char *what, const void *handle)
{
    return rk_arg_report_handle(call, what, handle) ? RANK_ERR_HANDLE : RANK_ERR_STATE;
}

/* Internal status of a check: the peer is RANK_PROC_NULL, and the call completes without doing anything. */
#define RK_PEER_NULL ((rank_status_t)1)

/* The status of a call, from the status of its check. */
RK_INLINE rank_status_t rk_peer_null_ok(rank_status_t checked)
{
    return checked == RK_PEER_NULL ? RANK_OK : checked;
}

/* A blocking call from a callback. */
RK_INLINE rank_status_t rk_arg_in_callback(const char *call)
{
    return rk_arg_error(RANK_ERR_STATE, call, "a callback must not wait");
}

#endif
