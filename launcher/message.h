/*
 * message.h: what front end and agents say to each other.
 *
 * A frame is a header (payload length, kind) and a payload packed by codec.h.
 * Each kind's payload is listed in order.
 */
#ifndef RK_LAUNCHER_MESSAGE_H
#define RK_LAUNCHER_MESSAGE_H

enum rk_message {
    /* front end to agent */
    RK_MSG_JOB = 1,   /* a job, see job.c */
    RK_MSG_INPUT,     /* bytes for the ranks' stdin; no bytes: end of file */
    RK_MSG_END,       /* u32 ms between TERM and KILL; 0: KILL at once */
    RK_MSG_SIGNAL,    /* u32 signal for every rank */
    RK_MSG_WINDOW = 40, /* u32 rows, u32 columns of --pty's terminal */

    /* agent to front end */
    RK_MSG_STARTED = 64, /* u32 phases, then for each: string name, u64 ns it took */
    RK_MSG_REFUSED,      /* u32 exit code, string: nothing runs, and why */
    RK_MSG_OUTPUT,       /* u32 rank, u32 stream (1, 2), u32 RK_OUT_*, bytes */
    RK_MSG_INPUT_TAKEN,  /* u32 bytes of input more that all who read have been given */
    RK_MSG_INPUT_CLOSED, /* nobody reads any more */
    RK_MSG_EXITED,       /* u32 rank, u32 pid, u32 wait status, u64 ns lived, u32 RK_EXIT_* */
    RK_MSG_ABORT,        /* u32 rank, u32 pid, u32 code, string text */
    RK_MSG_LOG,          /* u32 rank, u32 stream, bytes: a rank's PMIx_Log */
    RK_MSG_DONE          /* all processes are gone and all output was sent */
};

/* With --json. */
enum {
    RK_MSG_PLACED = 90, /* string host, string version of PMIx, u32 ranks, then for each: u32 rank, u32
                            pid, u32 whether it is bound, u64 ns since 1970 of its start, string cpus */
    RK_MSG_USAGE         /* before a rank's EXITED: u32 rank, u64 ns since 1970, then RK_USAGE_FIELDS u64 */
};

enum {
    RK_USAGE_USER_NS,
    RK_USAGE_SYSTEM_NS,
    RK_USAGE_MAX_RSS_KIB,
    RK_USAGE_MINOR_FAULTS,
    RK_USAGE_MAJOR_FAULTS,
    RK_USAGE_BLOCKS_IN,
    RK_USAGE_BLOCKS_OUT,
    RK_USAGE_VOLUNTARY, /* context switches */
    RK_USAGE_INVOLUNTARY,
    RK_USAGE_FIELDS
};

/* Flags of OUTPUT: the bytes do not end a line. */
enum { RK_OUT_PARTIAL = 1 };

/* Flags of EXITED. */
enum { RK_EXIT_UNFINISHED = 1 /* a PMIx client that did not finalize */ };

#define RK_MESSAGE_MAX (64u << 20)
/* Input that may be under way to the ranks and not yet taken by the slowest. */
#define RK_INPUT_WINDOW (64u << 10)

#endif
