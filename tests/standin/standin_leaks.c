/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_leaks.c: report at exit what the process has not freed.
 *
 * The exit status becomes 1 if it was 0. A process that ends otherwise, or has a corrupted context, is not judged.
 */
#include "tests/standin/standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int exit_status;

static void keep_status(int status, void *arg)
{
    (void)arg;
    exit_status = status;
}

__attribute__((constructor)) static void watch_exit(void) { on_exit(keep_status, NULL); }

__attribute__((destructor)) static void report_leaks(void)
{
    struct {
        const char *what;
        int n;
    } left[6];
    bool corrupt = false, leaked = false;

    if (standin_is_child() || !standin_settings.leaks || exit_status)
        return;
    pthread_mutex_lock(&standin_lock);
    left[0].what = "ranges of memory", left[0].n = standin_leaked_memory();
    left[1].what = "handles of physical memory", left[1].n = standin_leaked_handles();
    left[2].what = "streams", left[2].n = standin_leaked_streams();
    left[3].what = "events", left[3].n = standin_leaked_events();
    left[4].what = "modules", left[4].n = standin_leaked_modules();
    left[5].what = "retained contexts", left[5].n = standin_leaked_contexts();
    for (int i = 0; i < standin_ndevices; i++)
        corrupt |= standin_devices[i].primary.sticky != CUDA_SUCCESS;
    pthread_mutex_unlock(&standin_lock);
    for (int i = 0; i < 6 && !corrupt; i++)
        if (left[i].n) {
            fprintf(stderr, "stand-in for libcuda: %d %s left at exit\n", left[i].n, left[i].what);
            leaked = true;
        }
    if (leaked) {
        fflush(NULL);
        _exit(1);
    }
}
