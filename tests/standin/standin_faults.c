/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_faults.c: enter each call of the driver, and let chosen ones fail.
 *
 * Every exported name is generated from the table of calls, so none that the library uses can be missing.
 */
#include "tests/standin/standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RULES = 16 };

struct standin_settings standin_settings;
pthread_mutex_t standin_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t standin_cond = PTHREAD_COND_INITIALIZER;

static struct rule {
    enum standin_call call;
    unsigned long nth;
    bool onward;
    CUresult error;
} rules[RULES];
static int nrules;
static bool missing[STANDIN_CALLS];
static unsigned long counts[STANDIN_CALLS];
static bool initialized, is_child;
static CUresult init_error;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define ROW(name, need, version, result, params, args) {"cu" #name, need, version},
#define REQUIRED false
#define OPTIONAL true
static const struct {
    const char *name;
    bool optional;
    int version;
} calls[STANDIN_CALLS] = {RK_CUDA_CALLS(ROW)};

/* Calls that need neither cuInit nor a context. */
static const bool early[STANDIN_CALLS] = {
    [STANDIN_Init] = true,         [STANDIN_DriverGetVersion] = true, [STANDIN_GetProcAddress] = true,
    [STANDIN_GetErrorName] = true, [STANDIN_GetErrorString] = true,
};
/* Calls that need no current context. */
static const bool anywhere[STANDIN_CALLS] = {
    [STANDIN_DeviceGet] = true,
    [STANDIN_DeviceGetCount] = true,
    [STANDIN_DeviceGetName] = true,
    [STANDIN_DeviceGetUuid] = true,
    [STANDIN_DeviceGetAttribute] = true,
    [STANDIN_DeviceTotalMem] = true,
    [STANDIN_DeviceGetPCIBusId] = true,
    [STANDIN_DeviceCanAccessPeer] = true,
    [STANDIN_DevicePrimaryCtxRetain] = true,
    [STANDIN_DevicePrimaryCtxRelease] = true,
    [STANDIN_DevicePrimaryCtxGetState] = true,
    [STANDIN_CtxGetCurrent] = true,
    [STANDIN_CtxSetCurrent] = true,
    [STANDIN_CtxPushCurrent] = true,
    [STANDIN_CtxPopCurrent] = true,
    [STANDIN_PointerGetAttribute] = true,
    [STANDIN_PointerGetAttributes] = true,
    [STANDIN_MemCreate] = true,
    [STANDIN_MemRelease] = true,
    [STANDIN_MemAddressReserve] = true,
    [STANDIN_MemAddressFree] = true,
    [STANDIN_MemMap] = true,
    [STANDIN_MemUnmap] = true,
    [STANDIN_MemSetAccess] = true,
    [STANDIN_MemGetAllocationGranularity] = true,
    [STANDIN_MemRetainAllocationHandle] = true,
    [STANDIN_MemExportToShareableHandle] = true,
    [STANDIN_MemImportFromShareableHandle] = true,
    [STANDIN_StreamGetCtx] = true,
    [STANDIN_EventQuery] = true,
    [STANDIN_EventSynchronize] = true,
};

const char *standin_call_name(enum standin_call call) { return calls[call].name; }

/* Find a call by its name, with or without "cu". */
static int find_call(const char *name, size_t len)
{
    for (int i = 0; i < STANDIN_CALLS; i++) {
        const char *full = calls[i].name;

        if ((strlen(full) == len && strncmp(full, name, len) == 0) ||
            (strlen(full + 2) == len && strncmp(full + 2, name, len) == 0))
            return i;
    }
    return -1;
}

#define ERROR_NAME(name, value) {#name, value},
static const struct {
    const char *name;
    int value;
} errors[] = {RK_CUDA_RESULTS(ERROR_NAME)};
enum { ERRORS = sizeof(errors) / sizeof(errors[0]) };

static void bad_setting(const char *name, const char *value)
{
    fprintf(stderr, "stand-in for libcuda: %s=%s is not understood\n", name, value);
    exit(2);
}

/* Parse "NAME:N[+][:ERROR]" up to a comma. */
static void add_rule(const char *text, size_t len)
{
    char word[160], *nth, *error;
    struct rule *r = &rules[nrules];
    int call;

    snprintf(word, sizeof(word), "%.*s", (int)len, text);
    nth = strchr(word, ':');
    call = nth ? find_call(word, nth - word) : -1;
    if (call < 0 || nrules == RULES)
        bad_setting("STANDIN_FAIL", text);
    *r = (struct rule){.call = call, .nth = strtoul(nth + 1, &error, 10), .error = CUDA_ERROR_UNKNOWN};
    if (*error == '+') {
        r->onward = true;
        error++;
    }
    if (*error == ':') {
        r->error = strtoul(error + 1, NULL, 10);
        for (int i = 0; i < ERRORS; i++)
            if (strcmp(errors[i].name, error + 1) == 0)
                r->error = errors[i].value;
    }
    if (r->nth == 0 || r->error == CUDA_SUCCESS || (*error && *error != ':'))
        bad_setting("STANDIN_FAIL", text);
    nrules++;
}

static void hide_call(const char *text, size_t len)
{
    int call = find_call(text, len);

    if (len == 8 && strncmp(text, "optional", len) == 0) {
        for (int i = 0; i < STANDIN_CALLS; i++)
            missing[i] |= calls[i].optional;
        return;
    }
    if (call < 0)
        bad_setting("STANDIN_WITHOUT", text);
    missing[call] = true;
}

static void each_word(const char *list, void (*take)(const char *, size_t))
{
    while (list && *list) {
        size_t len = strcspn(list, ",");

        take(list, len);
        list += len + (list[len] == ',');
    }
}

static long long number_of(const char *name, long long otherwise)
{
    const char *text = getenv(name);
    char *end;
    long long n;

    if (!text || !*text)
        return otherwise;
    n = strtoll(text, &end, 0);
    if (*end || n < 0)
        bad_setting(name, text);
    return n;
}

static bool is_off(const char *name)
{
    const char *text = getenv(name);

    return text && strcmp(text, "off") == 0;
}

static void in_child(void) { is_child = true; }
bool standin_is_child(void) { return is_child; }

static void read_settings(void)
{
    struct standin_settings *s = &standin_settings;
    const char *ipc = getenv("STANDIN_IPC");

    s->memory = number_of("STANDIN_MEMORY", 8LL << 30);
    s->driver = number_of("STANDIN_DRIVER", 13000);
    s->queues = number_of("STANDIN_QUEUES", 0);
    s->seed = number_of("STANDIN_SEED", 0);
    s->delay = number_of("STANDIN_DELAY", 200);
    s->trace = number_of("STANDIN_TRACE", 0) != 0;
    s->peer = !is_off("STANDIN_PEER");
    s->vmm = !is_off("STANDIN_VMM");
    s->memops = !is_off("STANDIN_MEMOPS");
    s->leaks = !is_off("STANDIN_LEAKS");
    s->kernels = getenv("STANDIN_KERNELS");
    if (ipc && strcmp(ipc, "off") != 0 && strcmp(ipc, "legacy") != 0 && strcmp(ipc, "fd") != 0)
        bad_setting("STANDIN_IPC", ipc);
    s->ipc = !ipc || strcmp(ipc, "legacy") == 0;
    s->ipc_fd = !ipc || strcmp(ipc, "fd") == 0;
    each_word(getenv("STANDIN_WITHOUT"), hide_call);
    each_word(getenv("STANDIN_FAIL"), add_rule);
    pthread_atfork(NULL, NULL, in_child);
}

void standin_read_settings(void) { pthread_once(&once, read_settings); }

unsigned long standin_calls(const char *name)
{
    int call = find_call(name, strlen(name));

    return call < 0 ? -1UL : __atomic_load_n(&counts[call], __ATOMIC_RELAXED);
}

/* Return the error of the n-th call, by STANDIN_FAIL. */
static CUresult chosen_fault(enum standin_call call, unsigned long nth)
{
    for (int i = 0; i < nrules; i++)
        if (rules[i].call == call && (rules[i].nth == nth || (rules[i].onward && rules[i].nth < nth)))
            return rules[i].error;
    return CUDA_SUCCESS;
}

CUresult standin_enter(enum standin_call call)
{
    struct CUctx_st *context;
    unsigned long nth;
    CUresult error;

    standin_read_settings();
    nth = __atomic_add_fetch(&counts[call], 1, __ATOMIC_RELAXED);
    if (standin_settings.trace)
        fprintf(stderr, "stand-in: [%d.%ld] %s #%lu\n", getpid(), syscall(SYS_gettid), calls[call].name, nth);
    error = chosen_fault(call, nth);
    if (early[call])
        return error;
    if (is_child || !__atomic_load_n(&initialized, __ATOMIC_ACQUIRE))
        return CUDA_ERROR_NOT_INITIALIZED;
    context = standin_context();
    pthread_mutex_lock(&standin_lock);
    if (error && context && standin_is_corrupting(error) && !context->sticky) {
        context->sticky = error;
        pthread_cond_broadcast(&standin_cond);
    }
    if (!error && !anywhere[call])
        error = !context              ? CUDA_ERROR_INVALID_CONTEXT
                : !context->retained  ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                      : context->sticky;
    pthread_mutex_unlock(&standin_lock);
    return error;
}

CUresult standin_Init(unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_child)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&standin_lock);
    if (!initialized) {
        init_error = standin_find_devices();
        if (!init_error) {
            standin_arena_create();
            __atomic_store_n(&initialized, true, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&standin_lock);
    return init_error;
}

CUresult standin_DriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = standin_settings.driver;
    return CUDA_SUCCESS;
}

CUresult standin_GetErrorName(CUresult error, const char **text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (int i = 0; i < ERRORS; i++)
        if (errors[i].value == (int)error)
            *text = errors[i].name;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult standin_GetErrorString(CUresult error, const char **text)
{
    return standin_GetErrorName(error, text);
}

/* cuGetProcAddress has had four parameters before version 12. */
#define cuGetProcAddress cuGetProcAddress_v2
#define ENTRY(name, need, version, result, params, args)                                                          \
    STANDIN_EXPORT result cu##name params;                                                                        \
    result cu##name params                                                                                        \
    {                                                                                                             \
        CUresult refused = standin_enter(STANDIN_##name);                                                         \
                                                                                                                  \
        return refused ? refused : standin_##name args;                                                           \
    }
RK_CUDA_CALLS(ENTRY)
#undef cuGetProcAddress
STANDIN_EXPORT CUresult cuGetProcAddress(const char *symbol, void **address, int version, cuuint64_t flags);

#undef ROW
#define ROW(name, need, version, result, params, args) (void *)cu##name,
#define cuGetProcAddress cuGetProcAddress_v2
static void *const addresses[STANDIN_CALLS] = {RK_CUDA_CALLS(ROW)};
#undef cuGetProcAddress

CUresult standin_GetProcAddress(const char *symbol, void **address, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *found)
{
    CUdriverProcAddressQueryResult unused;
    int call;

    (void)flags;
    if (!symbol || !address)
        return CUDA_ERROR_INVALID_VALUE;
    found = found ? found : &unused;
    *address = NULL;
    *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (version > standin_settings.driver)
        return CUDA_ERROR_INVALID_VALUE;
    call = strncmp(symbol, "cu", 2) == 0 ? find_call(symbol, strlen(symbol)) : -1;
    if (call < 0 || missing[call])
        return CUDA_SUCCESS;
    if (calls[call].version > version && call != STANDIN_GetProcAddress)
        *found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    else {
        *found = CU_GET_PROC_ADDRESS_SUCCESS;
        *address = call == STANDIN_GetProcAddress && version < 12000 ? (void *)cuGetProcAddress : addresses[call];
    }
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **address, int version, cuuint64_t flags)
{
    CUresult error = standin_enter(STANDIN_GetProcAddress);

    if (!error)
        error = standin_GetProcAddress(symbol, address, version, flags, NULL);
    return error ? error : *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
