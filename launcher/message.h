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
    RK_MSG_INPUT,     /* bytes for rank 0's stdin; no bytes: end of file */
    RK_MSG_END,       /* u32 ms between TERM and KILL; 0: KILL at once */
    RK_MSG_SIGNAL,    /* u32 signal for every rank */

    /* agent to front end */
    RK_MSG_STARTED = 64, /* u32 phases, then for each: string name, u64 ns it took */
    RK_MSG_REFUSED,      /* u32 exit code, string: nothing runs, and why */
    RK_MSG_OUTPUT,       /* u32 rank, u32 stream (1, 2), u32 RK_OUT_*, bytes */
    RK_MSG_INPUT_TAKEN,  /* u32 bytes of input that rank 0 has been given */
    RK_MSG_INPUT_CLOSED, /* rank 0 reads no more */
    RK_MSG_EXITED,       /* u32 rank, u32 pid, u32 wait status, u64 ns lived, u32 RK_EXIT_* */
    RK_MSG_ABORT,        /* u32 rank, u32 pid, u32 code, string text */
    RK_MSG_LOG,          /* u32 rank, u32 stream, bytes: a rank's PMIx_Log */
    RK_MSG_WARNING,      /* string: a line for the user */
    RK_MSG_DONE          /* all processes are gone and all output was sent */
};

/* Flags of OUTPUT: the bytes do not end a line. */
enum { RK_OUT_PARTIAL = 1 };

/* Flags of EXITED. */
enum { RK_EXIT_UNFINISHED = 1 /* a PMIx client that did not finalize */ };

#define RK_MESSAGE_MAX (64u << 20)
/* Input that may be under way to rank 0 and not yet taken. */
#define RK_INPUT_WINDOW (64u << 10)

#endif
