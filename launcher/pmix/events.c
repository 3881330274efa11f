/*
 * events.c: clients register for events, and raise them.
 *
 * The library keeps the registrations and carries events between clients of
 * one server; the host would only have to pass on what comes from elsewhere or
 * goes there.
 */
#include "launcher/pmix/upcalls.h"

pmix_status_t rk_upcall_register_events(pmix_status_t *codes, size_t ncodes,
                                        const pmix_info_t info[], size_t ninfo,
                                        pmix_op_cbfunc_t done, void *done_arg)
{
    (void)codes;
    (void)ncodes;
    (void)info;
    (void)ninfo;
    (void)done;
    (void)done_arg;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t rk_upcall_deregister_events(pmix_status_t *codes, size_t ncodes,
                                          pmix_op_cbfunc_t done, void *done_arg)
{
    (void)codes;
    (void)ncodes;
    (void)done;
    (void)done_arg;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t rk_upcall_notify(pmix_status_t code, const pmix_proc_t *source,
                               pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
                               pmix_op_cbfunc_t done, void *done_arg)
{
    (void)code;
    (void)source;
    (void)range;
    (void)info;
    (void)ninfo;
    (void)done;
    (void)done_arg;
    return PMIX_OPERATION_SUCCEEDED;
}
