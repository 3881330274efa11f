/*
 * protocol.h: define the messages of front end and agents (see tree.h).
 *
 * A frame is a header (payload length, kind, node) and a payload packed by pack.h.
 * Each kind's payload is listed in order.
 */
#ifndef XR_LAUNCHER_OVERLAY_PROTOCOL_H
#define XR_LAUNCHER_OVERLAY_PROTOCOL_H

#include <stdint.h>

enum xr_message {
    /* front end to agent */
    XR_MSG_JOB = 1,   /* the part of one host, see job.c; before the job */
    XR_MSG_SEATS,     /* what one host alone is told, see job.c; before the job */
    XR_MSG_ASK_TOPOLOGY, /* nothing */
    XR_MSG_OUTPUT_TAKEN, /* u32 bytes of output that have been passed on */
    XR_MSG_ERRAND_DONE = 44, /* u32 the agent's number of the request, then as in rpc.h */
    XR_MSG_OTHER_DIED,       /* as XR_DOWN_DIED; to all */
    XR_MSG_OTHER_NOTICE = 49, /* as XR_DOWN_NOTICE; to all */
    XR_MSG_OVER = 47,        /* u32 nodes, u32 each: ended normally while others continue; to all */
    XR_MSG_DIED = 5,  /* u32 rank, u32 by a signal: to all but its own agent, with --on-failure continue */
    XR_MSG_INPUT,     /* bytes for the ranks' stdin; no bytes: end of file */
    XR_MSG_END,       /* u32 ms between the signal and KILL (0: KILL at once), u32 signal */
    XR_MSG_SIGNAL,    /* u32 signal for every rank */
    XR_MSG_TARGETS = 48, /* u32 signal, u32 ranks, u32 each: send it to these; to all */
    XR_MSG_NOTICE = 46, /* event.h; from an agent to the front end, and from there to all */
    XR_MSG_WINDOW = 40, /* u32 rows, u32 columns of --pty's terminal */

    XR_MSG_WATCH = 32, /* u32 ms: report ranks without progress for this long; u32 1: only those that wait in librank */
    XR_MSG_LOOK,       /* u32 token: probe all ranks now */
    XR_MSG_TRACE,      /* u32 ms: stack traces of all ranks, within that time */

    /* agent to front end */
    XR_MSG_STARTED = 64, /* u32 node, u32 phases, then for each: string name, u64 ns it took */
    XR_MSG_REFUSED,      /* u32 node, u32 exit code, string reason: nothing was started */
    XR_MSG_OUTPUT,       /* u32 rank, u32 stream (1, 2), u32 XR_OUT_*, bytes */
    XR_MSG_INPUT_TAKEN,  /* u32 node, u32 further bytes of input that all its readers have received */
    XR_MSG_INPUT_CLOSED, /* u32 node: no reader is left there */
    XR_MSG_EXITED,       /* u32 rank, u32 pid, u32 wait status, u64 ns lived, u32 XR_EXIT_* */
    XR_MSG_ABORT,        /* u32 rank, u32 pid, u32 code, string text */
    XR_MSG_LOG,          /* u32 rank, u32 stream, bytes: of a rank's PMIx_Log, which may take several */
    XR_MSG_DONE,         /* u32 node: all its processes have ended and all output was sent */
    XR_MSG_READY,        /* u32 node, string name, u32 units, u64 hash of its topology, u64 id of its machine, u32 a
                            free port there, or 0 */
    XR_MSG_TOPOLOGY,     /* u32 node, string XML; empty: it could not be read */
    XR_MSG_FAILED,       /* u32 node, string reason: its agent did not connect */
    XR_MSG_LOST,         /* u32 node, string reason: its agent is lost, with all below it */
    XR_MSG_STRANGERS,    /* u32 node, u32 further unauthenticated peers at its listeners */
    XR_MSG_JOINED,       /* u32 node, u32 program: a rank of it there is a client; with several hosts or programs,
                            once */
    XR_MSG_ALONE,        /* u32 node, u32 program, u32 whether all its ranks there have ended, string the MPI library
                            it uses: none has become a client, see singleton.h */
    XR_MSG_CLIENT_LOST = 87, /* u32 rank, u32: 1 its client died without finalizing, and it lives; 0 another one has
                                connected */
    XR_MSG_BROKEN = 88,  /* u32 errno: the agent cannot write the user's standard output */
    XR_MSG_ENDING = 89,  /* u32 node: it has received END */
    XR_MSG_CONTROL = 92, /* u32 signal, u32 ranks (0: all), u32 each: a client requests this signal for them */
    XR_MSG_LOOKED = 96,  /* u32 token, string host, u32 ranks, then for each: u32 rank, u32 pid (0: ended), u64 ns of
                            cpu time, u64 ns without progress, string, u32 1 and its space if the text ends with a
                            fence whose participants are to be named (else 0), u32 1: it waits in librank and does not
                            compute, u32 peers as in STALLED */
    XR_MSG_STALLED,      /* u32 ranks, u32 each, u64 ns without progress, string: the same for all; u32 as in LOOKED,
                            then u32 peers that must act, u32 each */
    XR_MSG_MOVING,       /* the same for ranks that progress again; the string is empty, the last two are 0 */
    XR_MSG_TRACE_TEXT,   /* u32 rank or XR_NO_RANK, u32 pid, bytes: lines */
    XR_MSG_TRACED,       /* end of the traces */
    XR_MSG_DOOR = 104,   /* u32 node, strings, u32: addresses and port of its listener, for its descendants:
                            parent_lookup.h */
    XR_MSG_ERRAND = 110, /* u32 node, u32 its number of the request, u32 requesting rank or XR_ALL_RANKS, u32
                            operation, then as in rpc.h */

    /* agent to agent, by any route */
    XR_MSG_MODEX_ASK = 160, /* u32 requesting node, u32 its number of the request, u32 rank */
    XR_MSG_MODEX_ANSWER,    /* u32 number of the request, u32 found, bytes */

    /* one hop, between neighbours */
    XR_MSG_BEAT = 192,
    XR_MSG_FENCE_UP,  /* u32 space, u32 status, u32 ranks (0: all), u32 each, bytes */
    XR_MSG_FENCE_DOWN, /* the same */
    XR_MSG_FENCE_ENDED, /* u32 enum xr_gone_what: RANK or HOST, u32 number, see liveness.h; to the parent, and on to
                           its parent */
    XR_MSG_BUSY        /* the sender is silent until a long operation ends; to the parent: tree.h */
};

#define XR_NO_RANK UINT32_MAX

/* Time between TSTP and a forced stop of ranks that have not stopped. */
#define XR_STOP_MS 200

/* With --json. */
enum {
    XR_MSG_PLACED = 90, /* string host, string version of PMIx, u32 ranks, then for each: u32 rank, u32
                            pid, u32 whether it is bound, u64 ns since 1970 of its start, string cpus */
    XR_MSG_USAGE         /* before a rank's EXITED: u32 rank, u64 ns since 1970, then XR_USAGE_FIELDS u64 */
};

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
