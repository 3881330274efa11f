/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protocol.h: define the messages of front end and agents (see tree.h).
 *
 * A frame is a header (payload length, kind, node) and a payload packed by pack.h.
 * Each row lists the payload in order.
 */
#ifndef XR_LAUNCHER_OVERLAY_PROTOCOL_H
#define XR_LAUNCHER_OVERLAY_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * All messages: name, number, direction, payload in packing order, and the files that handle it. The source of the
 * enum, the names in logs and tests/lint/messages.sh. Numbers change only together with XR_PROTOCOL.
 */
#define XR_MESSAGES(X) \
    /* front end to agents */ \
    X(JOB, 1, DOWN, "a job, see job.c; to all", "agent/agent_inbox.c") \
    X(LOCAL_RANKS, 2, DOWN, "the part of one host, see job.c; before the job", "agent/agent_inbox.c") \
    X(GET_TOPOLOGY, 3, DOWN, "nothing", "agent/agent_inbox.c") \
    X(OUTPUT_TAKEN, 4, DOWN, "u32 bytes of output that have been passed on", "agent/agent_inbox.c") \
    X(RPC_DONE, 5, DOWN, "u32 the agent's number of the request, then as in rpc.h", "agent/agent_inbox.c") \
    X(OTHER_DIED, 6, DOWN, "as XR_DOWN_DIED; to all", "agent/agent_inbox.c") \
    X(OTHER_EVENT, 7, DOWN, "as XR_DOWN_EVENT; to all", "agent/agent_inbox.c") \
    X(OVER, 8, DOWN, "u32 nodes, u32 each: ended normally while others continue; to all", "agent/agent_inbox.c") \
    X(DIED, 9, DOWN, "u32 rank, u32 by a signal; to all but its own agent, with --on-failure continue", \
      "agent/agent_inbox.c") \
    X(INPUT, 10, DOWN, "bytes for the ranks' stdin; no bytes: end of file", "agent/agent_inbox.c") \
    X(END, 11, DOWN, "u32 ms between the signal and KILL (0: KILL at once), u32 signal", "agent/agent_inbox.c") \
    X(SIGNAL, 12, DOWN, "u32 signal for every rank", "agent/agent_inbox.c") \
    X(TARGETS, 13, DOWN, "u32 signal, u32 ranks, u32 each: send it to these; to all", "agent/agent_inbox.c") \
    X(EVENT, 14, DOWN, "event.h; from an agent to the front end, and from there to all", \
      "agent/agent_inbox.c frontend/agent_messages.c") \
    X(WINDOW, 15, DOWN, "u32 rows, u32 columns of --pty's terminal", "agent/agent_inbox.c") \
    X(WATCH, 16, DOWN, \
      "u32 ms: report ranks without progress for this long; u32 1: only those that wait in librank", \
      "agent/progress_watch.c") \
    X(PROBE, 17, DOWN, "u32 token: probe all ranks now", "agent/progress_watch.c") \
    X(TRACE, 18, DOWN, "u32 ms: stack traces of all ranks, within that time", "agent/progress_watch.c") \
    X(GET_MACHINE, 19, DOWN, "nothing", "agent/agent_inbox.c") \
    /* agents to the front end */ \
    X(STARTED, 64, UP, "u32 node, u32 phases, then for each: string name, u64 ns it took", \
      "frontend/agent_messages.c") \
    X(REFUSED, 65, UP, "u32 node, u32 exit code, string reason: nothing was started", "frontend/agent_messages.c") \
    X(OUTPUT, 66, UP, "u32 rank, u32 stream (1, 2), u32 XR_OUT_*, bytes", "frontend/agent_messages.c") \
    X(INPUT_TAKEN, 67, UP, "u32 node, u32 further bytes of input that all its readers have received", \
      "frontend/agent_messages.c") \
    X(INPUT_CLOSED, 68, UP, "u32 node: no reader is left there", "frontend/agent_messages.c") \
    X(EXITED, 69, UP, "u32 rank, u32 pid, u32 wait status, u64 ns lived, u32 XR_EXIT_*", \
      "frontend/agent_messages.c") \
    X(ABORT, 70, UP, "u32 rank, u32 pid, u32 code, string text", "frontend/agent_messages.c") \
    X(LOG, 71, UP, "u32 rank, u32 stream, bytes: of a rank's PMIx_Log, which may take several", \
      "frontend/agent_messages.c") \
    X(DONE, 72, UP, "u32 node: all its processes have ended and all output was sent", "frontend/agent_messages.c") \
    X(READY, 73, UP, \
      "u32 node, string name, u32 units, u64 hash of its topology, u64 id of its machine, u32 a free port " \
      "there, or 0", \
      "frontend/agent_messages.c frontend/wait_hosts.c") \
    X(TOPOLOGY, 74, UP, "u32 node, string XML; empty: it could not be read", "frontend/agent_messages.c") \
    X(FAILED, 75, UP, "u32 node, string reason: its agent did not connect", "frontend/agent_messages.c") \
    X(LOST, 76, UP, "u32 node, string reason: its agent is lost, with all below it", \
      "agent/agent_inbox.c frontend/agent_messages.c") \
    X(UNAUTHENTICATED, 77, UP, "u32 node, u32 further unauthenticated peers at its listeners", \
      "frontend/agent_messages.c") \
    X(JOINED, 78, UP, "u32 node, u32 program: a rank of it there is a client; with several hosts or programs, once", \
      "frontend/agent_messages.c") \
    X(ALONE, 79, UP, \
      "u32 node, u32 program, u32 whether all its ranks there have ended, string the MPI library it uses: none " \
      "has become a client, see singleton.h", \
      "frontend/agent_messages.c") \
    X(CLIENT_LOST, 80, UP, \
      "u32 rank, u32: 1 its client died without finalizing, and it lives; 0 another one has connected", \
      "frontend/agent_messages.c") \
    X(BROKEN, 81, UP, "u32 errno: the agent cannot write the user's standard output", "frontend/agent_messages.c") \
    X(ENDING, 82, UP, "u32 node: it has received END", "frontend/agent_messages.c") \
    X(CONTROL, 83, UP, "u32 signal, u32 ranks (0: all), u32 each: a client requests this signal for them", \
      "frontend/agent_messages.c") \
    X(PROBED, 84, UP, \
      "u32 token, string host, u32 ranks, then for each: u32 rank, u32 pid (0: ended), u64 ns of cpu time, u64 " \
      "ns without progress, string, u32 1 and its space if the text ends with a fence whose participants are to" \
      " be named (else 0), u32 1: it waits in librank and does not compute, u32 peers as in STALLED", \
      "monitor/heartbeat.c") \
    X(STALLED, 85, UP, \
      "u32 ranks, u32 each, u64 ns without progress, string: the same for all; u32 as in PROBED, then u32 peers" \
      " that must act, u32 each", \
      "monitor/heartbeat.c") \
    X(MOVING, 86, UP, "the same for ranks that progress again; the string is empty, the last two are 0", \
      "monitor/heartbeat.c") \
    X(TRACE_TEXT, 87, UP, "u32 rank or XR_NO_RANK, u32 pid, bytes: lines", "monitor/heartbeat.c") \
    X(TRACED, 88, UP, "end of the traces", "monitor/heartbeat.c") \
    X(LISTENER, 89, UP, \
      "u32 node, strings, u32: addresses and port of its listener, for its descendants: parent_lookup.h", \
      "frontend/agent_messages.c") \
    X(RPC, 90, UP, \
      "u32 node, u32 its number of the request, u32 requesting rank or XR_ALL_RANKS, u32 operation, then as in " \
      "rpc.h", \
      "frontend/agent_messages.c") \
    X(PLACED, 91, UP, \
      "with --json: string host, string version of PMIx, u32 ranks, then for each: u32 rank, u32 pid, u32 " \
      "whether it is bound, u64 ns since 1970 of its start, string cpus", \
      "frontend/agent_messages.c frontend/job_report.c") \
    X(USAGE, 92, UP, "with --json, before a rank's EXITED: u32 rank, u64 ns since 1970, XR_USAGE_FIELDS u64", \
      "frontend/agent_messages.c") \
    X(MACHINE, 93, UP, \
      "u32 node, string reason why its devices are not known; empty: followed by them, see machine_pack.h", \
      "frontend/agent_messages.c frontend/wait_hosts.c") \
    X(UNSUPERVISED, 94, UP, "u32 node: its supervisor has died, so that it ends its ranks", "frontend/agent_messages.c") \
    /* agent to agent, along the tree */ \
    X(DMODEX_REQUEST, 160, ROUTED, "u32 requesting node, u32 its number of the request, u32 rank", \
      "agent/agent_inbox.c overlay/dmodex.c") \
    X(DMODEX_REPLY, 161, ROUTED, "u32 number of the request, u32 found, bytes", \
      "agent/agent_inbox.c frontend/agent_messages.c frontend/job_link.c") \
    /* between neighbours of the tree */ \
    X(BEAT, 192, STEP, "nothing", "overlay/tree.c") \
    X(FENCE_UP, 193, STEP, "u32 space, u32 status, u32 ranks (0: all), u32 each, bytes", \
      "agent/agent_inbox.c frontend/agent_messages.c overlay/fence.c") \
    X(FENCE_DOWN, 194, STEP, "the same", "overlay/fence.c") \
    X(FENCE_ENDED, 195, STEP, \
      "u32 enum xr_liveness_what: RANK or HOST, u32 number, see liveness.h; to the parent, and on to its parent", \
      "agent/agent_inbox.c frontend/agent_messages.c overlay/fence.c") \
    X(BUSY, 196, STEP, "the sender is silent until a long operation ends; to the parent: tree.h", "overlay/tree.c")

enum xr_message {
#define X(name, number, direction, payload, handlers) XR_MSG_##name = number,
    XR_MESSAGES(X)
#undef X
};

/* Return the name of a message, as "JOB"; "unknown" if there is no such kind. */
const char *xr_message_name(uint32_t kind);
/* Return whether an agent sends it to another one. All else that is for an agent comes from the front end. */
bool xr_message_is_routed(uint32_t kind);

#define XR_NO_RANK UINT32_MAX

/* Fields of USAGE. */
enum {
    XR_USAGE_USER_NS,
    XR_USAGE_SYSTEM_NS,
    XR_USAGE_MAX_RSS_KIB,
    XR_USAGE_MINOR_FAULTS,
    XR_USAGE_MAJOR_FAULTS,
    XR_USAGE_BLOCKS_IN,
    XR_USAGE_BLOCKS_OUT,
    XR_USAGE_VOLUNTARY, /* context switches */
    XR_USAGE_INVOLUNTARY,
    XR_USAGE_FIELDS
};

/* Flags of OUTPUT: the bytes do not end a line. */
enum { XR_OUT_PARTIAL = 1 };

/* Flags of EXITED. */
enum { XR_EXIT_UNFINISHED = 1 /* a PMIx client that did not finalize */ };

#define XR_MESSAGE_MAX (64u << 20)
/* Credit for input: bytes sent to the ranks that the slowest reader has not taken. */
#define XR_INPUT_WINDOW (64u << 10)

#endif
