/* SPDX-License-Identifier: BSD-3-Clause */
/* exit_status.c: see exit_status.h. */
#include "launcher/job/exit_status.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

bool xr_exit_status_failed(int status, bool unfinished)
{
    return unfinished || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int xr_exit_status_code(int status, bool unfinished)
{
    if (WIFSIGNALED(status))
        return 128 + WTERMSIG(status);
    if (WIFEXITED(status) && WEXITSTATUS(status))
        return WEXITSTATUS(status);
    return unfinished ? 1 : 0;
}

int xr_exit_status_abort_code(int code)
{
    if (code == 0 || (code & 0xff))
        return code & 0xff;
    return 1; /* 256 and the like must not look like success */
}

void xr_exit_status_how(int status, bool unfinished, char *out, size_t len)
{
    const char *more = unfinished ? ", without finalizing (rank_finalize, MPI_Finalize, PMIx_Finalize)" : "";

    if (WIFSIGNALED(status))
        snprintf(out, len, "was killed by signal %d (%s%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
    else
        snprintf(out, len, "exited with code %d%s", WEXITSTATUS(status), more);
}

void xr_exit_status_time(uint64_t ns, char *out, size_t len)
{
    double s = (double)ns * 1e-9;

    if (s < 10)
        snprintf(out, len, "%.3f s", s);
    else if (s < 3600)
        snprintf(out, len, "%.1f s", s);
    else
        snprintf(out, len, "%d h %02d min", (int)(s / 3600), (int)(s / 60) % 60);
}
