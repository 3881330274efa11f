/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out_files.h: write ranks' output to DIR/rank.07.out and DIR/rank.07.err.
 *
 * The front end writes them. If a file cannot be written (a full disk), the job
 * continues without it, and xrun reports that once.
 */
#ifndef XR_LAUNCHER_IOF_OUT_FILES_H
#define XR_LAUNCHER_IOF_OUT_FILES_H

#include "launcher/iof/out_stream.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xr_out_files;

/* Make dir and, for n ranks, all files, empty, before any process is started. Returns false with a text in err. */
bool xr_out_files_make(const char *dir, uint32_t n, char *err, size_t errlen);

/* Open the files for writing. on_lost is called once, for the first that cannot be written. */
rank_status_t xr_out_files_open(struct event_base *base, const char *dir, uint32_t n,
                                 const struct xr_label *label,
                                 void (*on_lost)(void *arg, const char *file, int error), void *arg,
                                 struct xr_out_files **out);
void xr_out_files_close(struct xr_out_files *od);

/* Write output of a rank; arguments as in xr_stream_put. */
void xr_out_files_put(struct xr_out_files *od, uint32_t rank, int stream, const char *data,
                       size_t len, bool partial);

#endif
