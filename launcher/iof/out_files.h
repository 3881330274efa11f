/*
 * out_files.h: ranks' output in files: DIR/rank.07.out and DIR/rank.07.err.
 *
 * Written by the front end. When one cannot be written (a full disk), the job
 * goes on without what should be in it, and xrun says so once.
 */
#ifndef XR_LAUNCHER_IOF_OUT_FILES_H
#define XR_LAUNCHER_IOF_OUT_FILES_H

#include "launcher/iof/out_stream.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xr_output_dir;

/* Make dir and, of n ranks, all files, empty: before anything is started. False: err holds why. */
bool xr_output_dir_make(const char *dir, uint32_t n, char *err, size_t errlen);

/* Open them to be written. on_lost is called once, when a first one cannot be. */
rank_status_t xr_output_dir_open(struct event_base *base, const char *dir, uint32_t n,
                                 const struct xr_label *label,
                                 void (*on_lost)(void *arg, const char *file, int error), void *arg,
                                 struct xr_output_dir **out);
void xr_output_dir_close(struct xr_output_dir *od);

/* Output of a rank, as xr_stream_put has it. */
void xr_output_dir_put(struct xr_output_dir *od, uint32_t rank, int stream, const char *data,
                       size_t len, bool partial);

#endif
