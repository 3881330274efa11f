/*
 * job_control.c: a client asks for something to be done with processes, or after their end.
 *
 * Files that are to be removed after a client's end (Open MPI names its
 * segments in /dev/shm so) the library keeps and removes by itself, but only
 * for a host that has this upcall. What comes here is the rest.
 */
#include "launcher/pmix/upcalls.h"

pmix_status_t rk_upcall_job_control(const pmix_proc_t *client, const pmix_proc_t targets[],
                                    size_t ntargets, const pmix_info_t directives[], size_t ndirs,
                                    pmix_info_cbfunc_t done, void *done_arg)
{
    (void)client;
    (void)targets;
    (void)ntargets;
    (void)directives;
    (void)ndirs;
    (void)done;
    (void)done_arg;
    return PMIX_ERR_NOT_SUPPORTED;
}
