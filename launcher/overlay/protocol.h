/*
 * protocol.h: what front end and agents say to each other, along the tree (tree.h).
 *
 * A frame is a header (payload length, kind, node) and a payload packed by pack.h.
 * Each kind's payload is listed in order.
 */
#ifndef XR_LAUNCHER_OVERLAY_PROTOCOL_H
#define XR_LAUNCHER_OVERLAY_PROTOCOL_H

#include <stdint.h>

enum xr_message {
    /* front end to agent */
    XR_MSG_JOB = 1,   /* a job, see job.c; to all */
    XR_MSG_SEATS,     /* what one host alone is told, see job.c; before the job */
    XR_MSG_ASK_TOPOLOGY, /* nothing */
    XR_MSG_OUTPUT_TAKEN, /* u32 bytes of output that have been passed on */
    XR_MSG_ERRAND_DONE = 44, /* u32 its number for the errand, then as rpc.h says */
    XR_MSG_OTHER_DIED,       /* as XR_DOWN_DIED: to all */
    XR_MSG_OTHER_NOTICE = 49, /* as XR_DOWN_NOTICE: to all */
    XR_MSG_OVER = 47,        /* u32 nodes, u32 each: they have ended well, while others go on; to all */
    XR_MSG_DIED = 5,  /* u32 rank, u32 by a signal: to all but its own agent, with --on-failure continue */
    XR_MSG_INPUT,     /* bytes for the ranks' stdin; no bytes: end of file */
    XR_MSG_END,       /* u32 ms between the signal and KILL (0: KILL at once), u32 signal */
    XR_MSG_SIGNAL,    /* u32 signal for every rank */
    XR_MSG_TARGETS = 48, /* u32 signal, u32 ranks, u32 each: for them; to all */
    XR_MSG_NOTICE = 46, /* event.h; from an agent to the front end, and from there to all */
    XR_MSG_WINDOW = 40, /* u32 rows, u32 columns of --pty's terminal */

    XR_MSG_WATCH = 32, /* u32 ms: report ranks that make no progress for so long; u32 1: only those that wait in librank */
    XR_MSG_LOOK,       /* u32 token: look at all ranks now */
    XR_MSG_TRACE,      /* u32 ms: stack traces of all ranks, within that time */

    /* agent to front end */
    XR_MSG_STARTED = 64, /* u32 node, u32 phases, then for each: string name, u64 ns it took */
    XR_MSG_REFUSED,      /* u32 node, u32 exit code, string: nothing runs, and why */
    XR_MSG_OUTPUT,       /* u32 rank, u32 stream (1, 2), u32 XR_OUT_*, bytes */
    XR_MSG_INPUT_TAKEN,  /* u32 node, u32 bytes of input more that all of it who read have been given */
    XR_MSG_INPUT_CLOSED, /* u32 node: nobody reads there any more */
    XR_MSG_EXITED,       /* u32 rank, u32 pid, u32 wait status, u64 ns lived, u32 XR_EXIT_* */
    XR_MSG_ABORT,        /* u32 rank, u32 pid, u32 code, string text */
    XR_MSG_LOG,          /* u32 rank, u32 stream, bytes: of a rank's PMIx_Log, which may take several */
    XR_MSG_DONE,         /* u32 node: all its processes are gone and all output was sent */
    XR_MSG_READY,        /* u32 node, string name, u32 units, u64 what its topology looks like, u64 which machine it is, u32 a
                            port that nobody uses there, or 0 */
    XR_MSG_TOPOLOGY,     /* u32 node, string XML; empty: it could not be looked at */
    XR_MSG_FAILED,       /* u32 node, string: its agent did not come */
    XR_MSG_LOST,         /* u32 node, string: its agent is gone, with all below it */
    XR_MSG_STRANGERS,    /* u32 node, u32 more who came to its doors and were none of ours */
    XR_MSG_JOINED,       /* u32 node, u32 program: a rank of it there is a client; with several hosts or programs, once */
    XR_MSG_ALONE,        /* u32 node, u32 program, u32 whether all its ranks there have ended, string what of MPI it uses: none
                            has become one, see singleton.h */
    XR_MSG_CLIENT_LOST = 87, /* u32 rank, u32: 1 its client is gone without finalizing, and it lives; 0 another has come */
    XR_MSG_BROKEN = 88,  /* u32 errno: standard output, which the agent writes itself, cannot be written */
    XR_MSG_ENDING = 89,  /* u32 node: it has heard that it is to end */
    XR_MSG_CONTROL = 92, /* u32 signal, u32 ranks (0: all), u32 each: a client wants it sent to them */
    XR_MSG_LOOKED = 96,  /* u32 token, string host, u32 ranks, then for each: u32 rank, u32 pid (0:
                             it has ended), u64 ns of cpu time, u64 ns without progress, string,
                             u32: the text ends with a fence, whose others are to be named: 1 and
                             its space, or 0; u32 1: it waits in librank and does not compute; u32
                             peers as in STALLED */
    XR_MSG_STALLED,      /* u32 ranks, u32 each, u64 ns without progress, string: all like this; u32 as in LOOKED, then u32
                            peers that must act, u32 each */
    XR_MSG_MOVING,       /* the same of ranks that go on; the string is empty, the last two are 0 */
    XR_MSG_TRACE_TEXT,   /* u32 rank or XR_NO_RANK, u32 pid, bytes: lines */
    XR_MSG_TRACED,       /* that was the last of them */
    XR_MSG_DOOR = 104,   /* u32 node, strings, u32: addresses and port of its door, for those below it: parent_lookup.h */
    XR_MSG_ERRAND = 110, /* u32 node, u32 its number for it, u32 the rank that asks or XR_ALL_RANKS, u32 what, then as
                            rpc.h says */

    /* agent to agent, whichever way that goes */
    XR_MSG_MODEX_ASK = 160, /* u32 node that asks, u32 its number for it, u32 rank */
    XR_MSG_MODEX_ANSWER,    /* u32 that number, u32 found, bytes */

    /* one step, between neighbours */
    XR_MSG_BEAT = 192,
    XR_MSG_FENCE_UP,  /* u32 space, u32 status, u32 ranks (0: all), u32 each, bytes */
    XR_MSG_FENCE_DOWN, /* the same */
    XR_MSG_FENCE_ENDED, /* u32 enum xr_gone_what: RANK or HOST, u32 number: as liveness.h says; to the parent, and on to its parent */
    XR_MSG_BUSY        /* nothing more comes until what takes long there is done; to the parent: tree.h */
};

#define XR_NO_RANK UINT32_MAX

/* After TSTP, until those who have not stopped by themselves are stopped. */
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
/* Input that may be under way to the ranks and not yet taken by the slowest. */
#define XR_INPUT_WINDOW (64u << 10)

#endif
