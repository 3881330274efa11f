/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timing.h: define the times of the library that depend on each other.
 *
 * Each is derived from those it must exceed, or a _Static_assert states the order. A time that depends on no other
 * stands in the file that uses it. All are in nanoseconds unless the name says otherwise.
 */
#ifndef RK_BASE_TIMING_H
#define RK_BASE_TIMING_H

#define RK_US_NS 1000
#define RK_MS_NS (1000 * RK_US_NS)
#define RK_S_NS 1000000000ull

/* ------------------------------------------------------------------ deaths on this host */

/* A death is detected within this time, at any rate of calls. */
#define RK_DETECT_NS RK_S_NS
/* Interval of the checks of a rank that waits or polls; idle hooks of channels run with them. */
#define RK_CHECK_NS (RK_DETECT_NS / 8)
/* Calls, or passes with an event, that may go by between two checks, unless each takes RARE or longer. */
#define RK_CALLS_PER_CHECK 16
#define RK_RARE_NS (10 * RK_MS_NS)
_Static_assert(RK_CALLS_PER_CHECK * 1ull * RK_RARE_NS < RK_DETECT_NS, "frequent calls check in time");

/* ------------------------------------------------------------------------------- waits */

/* Sleep of a wait: without a doorbell for what it waits for, and with one. Then it checks all again. */
#define RK_SLEEP_SHORT_NS RK_MS_NS
#define RK_SLEEP_NS (100 * RK_MS_NS)
_Static_assert(RK_SLEEP_NS < RK_CHECK_NS, "a sleeping rank checks for deaths in time");
/* Spin of a wait at a time, and in all without a yield. */
#define RK_SPIN_NS (10 * RK_US_NS)
#define RK_STAY_NS (500 * RK_US_NS)
_Static_assert(RK_SPIN_NS < RK_STAY_NS && RK_STAY_NS < RK_SLEEP_SHORT_NS, "a wait spins, yields, then sleeps");
/* A wait of this length is reported to the status board, and then again at this interval. */
#define RK_DESCRIBE_NS RK_SLEEP_NS
#define RK_DESCRIBE_VALID_NS (5 * RK_DESCRIBE_NS)

/* A wait without traffic fetches announced messages of this age early: a send, another call. With traffic from others later. */
#define RK_STALL_SEND_NS RK_MS_NS
#define RK_STALL_OTHER_NS (10 * RK_MS_NS)
#define RK_STALL_LONG_NS (100 * RK_MS_NS)
#define RK_STALL_LONGER_NS (1000 * RK_MS_NS)

/* -------------------------------------------------------- requests that a death leaves open */

/*
 * Time left for an answer of the server once a member has died. It need not answer then: libpmix 4.2.2 leaves a
 * fence open, 4.1.2 waits for the blob of a rank that never committed. Before the first fence is over a death ends
 * the start of all ranks anyway; later it may be unrelated to the request.
 */
#define RK_GRACE_MS 300
#define RK_GRACE_MET_MS 5000
/* Time left for the other ranks' part of a collective that has failed here. */
#define RK_COLL_GRACE_NS (RK_GRACE_MS * RK_MS_NS)
_Static_assert(RK_COLL_GRACE_NS < RK_DETECT_NS, "survivors return within a second");

/* ------------------------------------------------------------------------- mismatched calls */

/* A collective call is late after this time; then it is compared with those of others, again at an interval. */
#define RK_CALL_LATE_NS (20 * RK_MS_NS)
#define RK_CALL_COMPARE_NS (10 * RK_MS_NS)
/* Time that the others have to publish their call. */
#define RK_CALL_PUBLISH_NS (200 * RK_MS_NS)
_Static_assert(RK_CALL_PUBLISH_NS > RK_SLEEP_NS, "a rank that sleeps in a wait publishes in time");

/* ------------------------------------------------------------- other hosts, and connections */

/* A wait of this length connects to the ranks it waits for. */
#define RK_WATCH_NS (2 * RK_S_NS)
/* All addresses of a rank together have this time to answer. */
#define RK_CONTACT_NS (10 * RK_S_NS)
/* A rank that is contacted ends the handshake of a client after this time. */
#define RK_HANDSHAKE_NS (15 * RK_S_NS)
_Static_assert(RK_WATCH_NS + RK_CONTACT_NS < RK_HANDSHAKE_NS, "a firewall that drops is reported within 15 s");
/* A host whose kernel does not acknowledge for this time is down. */
#define RK_SILENCE_NS (7 * RK_S_NS)
/* Delay of the report of a death on another host: its cause may arrive from the launcher meanwhile. */
#define RK_REPORT_NS RK_S_NS

/* Answers of peers to the end of a connection, in rank_team_free and rank_finalize. */
#define RK_CLOSE_NS RK_S_NS
/* The end of a dead peer's socket follows its last frames within this time. */
#define RK_DRAIN_NS (20 * RK_MS_NS)

/* UCX: disconnecting; by force; how long the worker stays for a peer that still connects. */
#define RK_UCX_CLOSE_NS (500 * RK_MS_NS)
#define RK_UCX_FORCE_NS (200 * RK_MS_NS)
#define RK_UCX_SETTLE_NS (5 * RK_S_NS)
/* UCX: an error of a link waits for the launcher's word in the last barrier, that of a connection for its socket's. */
#define RK_UCX_PEACE_NS (3 * RK_S_NS)
#define RK_UCX_LIFELINE_NS (RK_S_NS / 10)
_Static_assert(RK_UCX_SETTLE_NS > RK_UCX_CLOSE_NS, "the worker outlives the disconnect");
_Static_assert(RK_UCX_LIFELINE_NS > RK_DRAIN_NS, "the socket's end arrives before");

#endif
