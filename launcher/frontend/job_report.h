/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_report.h: a machine-readable report of a job (--json), as one JSON object.
 *
 * The front end tells it what it learns, and it is written when all is over.
 * Every function but xr_report_open takes NULL for a report that nobody wants.
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

/* Makes the file, empty. NULL: err holds why. path and job stay. */
struct xr_report *xr_report_open(const char *path, const struct xr_job *job, char *err,
                                 size_t errlen);
void xr_report_close(struct xr_report *report);

/* A part of the start, and how long it took. */
void xr_report_phase(struct xr_report *report, const char *name, uint64_t ns);
/* Of the start on one host, which is known by its number in the job. */
void xr_report_host_phase(struct xr_report *report, uint32_t node, const char *name, uint64_t ns);
/* PLACED or USAGE of an agent; false: it makes no sense. */
bool xr_report_message(struct xr_report *report, uint32_t kind, struct xr_unpacker *u);
void xr_report_exited(struct xr_report *report, uint32_t rank, uint32_t pid, int status,
                      uint64_t lived_ns, bool unfinished);
/* Why the job ended before its time: the first that is said counts. */
void xr_report_cause(struct xr_report *report, const char *fmt, ...) RK_PRINTF(2, 3);

/* A job that a rank has spawned, once it is over. The texts are copied. */
struct xr_report_spawned {
    const char *job;    /* NULL: it has never had a name */
    const char *parent; /* the job whose rank has spawned it */
    uint32_t rank, size;
    uint64_t start_ns, end_ns; /* since 1970 */
    bool started;       /* its ranks have run */
    int code;           /* its xrun's exit code */
};
void xr_report_spawned(struct xr_report *report, const struct xr_report_spawned *spawned);

/* False: it could not be written, which has been logged. */
bool xr_report_write(struct xr_report *report, int exit_code, bool output_lost);

#endif
