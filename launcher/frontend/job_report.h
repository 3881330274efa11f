/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_report.h: write the report of a job (--json), one JSON object.
 *
 * The front end adds facts as they arrive, and writes the report at the end. All functions but xr_report_open accept
 * NULL: without --json there is no report.
 */
#ifndef XR_LAUNCHER_FRONTEND_JOB_REPORT_H
#define XR_LAUNCHER_FRONTEND_JOB_REPORT_H

#include "launcher/util/pack.h"
#include "launcher/job/job.h"
#include "lib/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xr_report;

/* Create the file, empty. path and job are borrowed. Returns NULL with the reason in err. */
struct xr_report *xr_report_open(const char *path, const struct xr_job *job, char *err,
                                 size_t errlen);
void xr_report_close(struct xr_report *report);

/* Add a phase of the start, and its duration. */
void xr_report_phase(struct xr_report *report, const char *name, uint64_t ns);
/* The same for one host; node is its index in the job. */
void xr_report_host_phase(struct xr_report *report, uint32_t node, const char *name, uint64_t ns);
/* Handle XR_MSG_PLACED or XR_MSG_USAGE. Returns false if it is malformed. */
bool xr_report_message(struct xr_report *report, uint32_t kind, struct xr_unpacker *u);
void xr_report_exited(struct xr_report *report, uint32_t rank, uint32_t pid, int status,
                      uint64_t lived_ns, bool unfinished);
/* Set the cause of a failed job. Only the first call counts. */
void xr_report_cause(struct xr_report *report, const char *fmt, ...) RK_PRINTF(2, 3);

/* A spawned job that has ended. The texts are copied. */
struct xr_report_spawned {
    const char *job;    /* NULL: it ended before it had a name */
    const char *parent; /* the job that spawned it, and its rank */
    uint32_t rank, size;
    uint64_t start_ns, end_ns; /* since 1970 */
    bool started;       /* its ranks ran */
    int code;           /* exit code of its xrun */
};
void xr_report_spawned(struct xr_report *report, const struct xr_report_spawned *spawned);

/* Write the file. Returns false after an error message. */
bool xr_report_write(struct xr_report *report, int exit_code, bool output_lost);

#endif
