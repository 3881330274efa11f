/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probes.c: ask a driver what only hardware shows, one record a question.
 *
 *   probes [NAME]
 *   probes --hold   until a signal or 10 minutes, keep a device open: to open it first takes seconds
 *
 * Each probe is a process of its own, with a limit of 20 s, as a failing call may spoil a context. A probe of two
 * processes forks before CUDA is initialized. The library relies on the answers: text names what depends on them.
 */
#include "tests/gpu/gpu_record.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#define PR_SET_PTRACER_ANY ((unsigned long)-1)
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

enum { LIMIT_S = 20, HOLD_S = 600, TURNS = 200, CALLS = 20000, WORD = 0x5eed };

/* What two processes of a probe share. */
static struct shared {
    _Atomic int turn;
    int pid, fd;
    size_t bytes;
    CUipcMemHandle ipc;
} *shared;

static void turn_await(int turn)
{
    while (atomic_load(&shared->turn) < turn)
        sched_yield();
}

static uint64_t word_at(CUdeviceptr at)
{
    uint64_t word = 0;

    GPU_MUST(Memcpy, (CUdeviceptr)(uintptr_t)&word, at, sizeof(word));
    return word;
}

static void word_set(CUdeviceptr at, uint64_t word)
{
    GPU_MUST(Memcpy, at, (CUdeviceptr)(uintptr_t)&word, sizeof(word));
    GPU_MUST(CtxSynchronize);
}

/* Memory of the VMM calls, which a descriptor can share; its handle goes to *handle if that is not NULL. */
static CUdeviceptr vmm_new(CUdevice device, size_t *bytes, CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr at;

    GPU_MUST(MemGetAllocationGranularity, bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    GPU_MUST(MemCreate, &memory, *bytes, &prop, 0);
    GPU_MUST(MemAddressReserve, &at, *bytes, 0, 0, 0);
    GPU_MUST(MemMap, at, *bytes, 0, memory, 0);
    GPU_MUST(MemSetAccess, at, *bytes, &access, 1);
    if (handle)
        *handle = memory;
    else
        GPU_MUST(MemRelease, memory);
    return at;
}

static void vmm_free(CUdeviceptr at, size_t bytes)
{
    GPU_MUST(MemUnmap, at, bytes);
    GPU_MUST(MemAddressFree, at, bytes);
}

static void probe_device(void)
{
    CUdevice device = gpu_open(0);
    char name[128] = "", line[256];
    int major = 0, minor = 0, n = 0;
    size_t bytes = 0;

    GPU_MUST(DeviceGetCount, &n);
    GPU_MUST(DeviceGetName, name, sizeof(name), device);
    GPU_MUST(DeviceTotalMem, &bytes, device);
    GPU_MUST(DeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    GPU_MUST(DeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    snprintf(line, sizeof(line), "%s, sm_%d%d, %zu MiB, driver %d.%d", name, major, minor, bytes >> 20, rk_cuda.version / 1000,
             rk_cuda.version % 1000 / 10);
    record_value("device", true, n, "devices", line);
}

/* The other process of probe_descriptor: it takes the descriptor and reads the memory. */
static void descriptor_read(void)
{
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;
    int fd, pidfd;
    CUdeviceptr at;

    turn_await(1);
    pidfd = (int)syscall(SYS_pidfd_open, shared->pid, 0);
    fd = (int)syscall(SYS_pidfd_getfd, pidfd, shared->fd, 0);
    if (fd < 0) {
        char line[128];

        snprintf(line, sizeof(line), "pidfd_getfd: %m");
        record_text(gpu_probe, "fail", line);
        _exit(1);
    }
    access.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, gpu_open(0)};
    GPU_MUST(MemImportFromShareableHandle, &memory, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(fd);
    GPU_MUST(MemAddressReserve, &at, shared->bytes, 0, 0, 0);
    GPU_MUST(MemMap, at, shared->bytes, 0, memory, 0);
    GPU_MUST(MemSetAccess, at, shared->bytes, &access, 1);
    record_text(gpu_probe, word_at(at) == WORD ? "pass" : "fail", "messages from VMM memory: one copy");
    GPU_MUST(MemRelease, memory);
    vmm_free(at, shared->bytes);
}

static void ipc_read(void)
{
    CUdeviceptr at;

    turn_await(1);
    gpu_open(0);
    GPU_MUST(IpcOpenMemHandle, &at, shared->ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    record_text(gpu_probe, word_at(at) == WORD ? "pass" : "fail", "messages from cudaMalloc memory: one copy");
    GPU_MUST(IpcCloseMemHandle, at);
}

/* Run other in a second process and own in this one, which ends first only if it fails. */
static void probe_pair(void (*own)(void), void (*other)(void))
{
    pid_t pid;
    int status;

    shared->pid = getpid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* the other process takes a descriptor */
    pid = fork();
    if (pid < 0) {
        record_text(gpu_probe, "fail", "fork fails");
        _exit(1);
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        other();
        gpu_close();
        exit(0);
    }
    own();
    if (waitpid(pid, &status, 0) != pid)
        _exit(1);
    if (WIFSIGNALED(status))
        record_text(gpu_probe, "fail", "the other process crashes");
}

static CUdeviceptr lent; /* freed after the other process has read it */
static size_t lent_bytes;

static void descriptor_lend(void)
{
    CUmemGenericAllocationHandle memory;

    lent = vmm_new(gpu_open(0), &lent_bytes, &memory);
    word_set(lent, WORD);
    shared->bytes = lent_bytes;
    GPU_MUST(MemExportToShareableHandle, &shared->fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    GPU_MUST(MemRelease, memory);
    atomic_store(&shared->turn, 1);
}

static void probe_descriptor(void)
{
    probe_pair(descriptor_lend, descriptor_read);
    vmm_free(lent, lent_bytes);
}

static void ipc_lend(void)
{
    gpu_open(0);
    GPU_MUST(MemAlloc, &lent, 4096);
    word_set(lent, WORD);
    GPU_MUST(IpcGetMemHandle, &shared->ipc, lent);
    atomic_store(&shared->turn, 1);
}

static void probe_ipc(void)
{
    probe_pair(ipc_lend, ipc_read);
    GPU_MUST(MemFree, lent);
}

/* Is VMM memory refused as an IPC handle, so that the library asks for a descriptor? */
static void probe_ipc_vmm(void)
{
    CUipcMemHandle handle;
    CUdeviceptr at;
    size_t bytes;
    CUresult r;

    at = vmm_new(gpu_open(0), &bytes, NULL);
    r = rk_cuda.IpcGetMemHandle(&handle, at);
    record_text(gpu_probe, r != CUDA_SUCCESS ? "pass" : "fail", "no IPC handle of VMM memory: a descriptor is used");
    vmm_free(at, bytes);
}

/* Can a handle be had of memory that is mapped and has been released? */
static void probe_retain(void)
{
    CUmemGenericAllocationHandle memory = 0;
    CUdeviceptr at;
    size_t bytes;
    int fd = -1;
    bool done;

    at = vmm_new(gpu_open(0), &bytes, NULL);
    done = RK_CUDA_HAS(MemRetainAllocationHandle) &&
           rk_cuda.MemRetainAllocationHandle(&memory, (void *)(uintptr_t)at) == CUDA_SUCCESS &&
           rk_cuda.MemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS;
    record_text(gpu_probe, done ? "pass" : "fail", "a pointer gives a descriptor: growing segments of a caching allocator");
    if (memory)
        rk_cuda.MemRelease(memory);
    if (fd >= 0)
        close(fd);
    vmm_free(at, bytes);
}

static void probe_sync_memops(void)
{
    CUdevice device = gpu_open(0);
    CUdeviceptr plain, vmm;
    CUresult of_plain, of_vmm;
    unsigned on = 1;
    size_t bytes;
    char line[128];

    GPU_MUST(MemAlloc, &plain, 4096);
    vmm = vmm_new(device, &bytes, NULL);
    of_plain = rk_cuda.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, plain);
    of_vmm = rk_cuda.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, vmm);
    snprintf(line, sizeof(line), "cuMemAlloc: %s; VMM: %s; synchronous copies are complete when they return",
             of_plain == CUDA_SUCCESS ? "yes" : "no", of_vmm == CUDA_SUCCESS ? "yes" : "no");
    record_text(gpu_probe, of_plain == CUDA_SUCCESS ? "pass" : "fail", line);
    GPU_MUST(MemFree, plain);
    vmm_free(vmm, bytes);
}

static void probe_priorities(void)
{
    int least = 0, greatest = 0;

    gpu_open(0);
    GPU_MUST(CtxGetStreamPriorityRange, &least, &greatest);
    record_value(gpu_probe, least > greatest, least - greatest + 1, "priorities", "streams of the library share no queue with others");
}

static void probe_dmabuf(void)
{
    CUdevice device = gpu_open(0);
    int has = 0, fd = -1;
    CUdeviceptr at;
    size_t bytes = 2 << 20;

    GPU_MUST(DeviceGetAttribute, &has, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device);
    GPU_MUST(MemAlloc, &at, bytes);
    if (!has || !RK_CUDA_HAS(MemGetHandleForAddressRange))
        record_text(gpu_probe, "skip", "the device has none; NICs then need nvidia-peermem");
    else
        record_text(gpu_probe,
                    rk_cuda.MemGetHandleForAddressRange(&fd, at, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) == CUDA_SUCCESS ? "pass" : "fail",
                    "NICs can reach device memory");
    if (fd >= 0)
        close(fd);
    GPU_MUST(MemFree, at);
}

/* A stream waits for a word of the host, then writes another. */
static void probe_memory_operations(void)
{
    CUdevice device = gpu_open(0);
    volatile uint64_t *words;
    double until;
    bool early, done;
    CUdeviceptr at;
    CUstream stream;
    void *memory;
    int has = 0;

    GPU_MUST(DeviceGetAttribute, &has, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device);
    if (!has || !RK_CUDA_HAS(StreamWaitValue64) || !RK_CUDA_HAS(StreamWriteValue64)) {
        record_text(gpu_probe, "fail", "none of 64 bits: rank_queue_create is refused");
        return;
    }
    GPU_MUST(MemHostAlloc, &memory, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    memset(memory, 0, 4096);
    words = memory;
    GPU_MUST(MemHostGetDevicePointer, &at, memory, 0);
    GPU_MUST(StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
    GPU_MUST(StreamWaitValue64, stream, at, 1, CU_STREAM_WAIT_VALUE_GEQ);
    GPU_MUST(StreamWriteValue64, stream, at + 64, WORD, CU_STREAM_WRITE_VALUE_DEFAULT);
    usleep(20000);
    early = words[8] != 0;
    words[0] = 1;
    until = gpu_seconds() + 5;
    do {
        done = words[8] == WORD;
    } while (!done && gpu_seconds() < until);
    record_text(gpu_probe, done && !early ? "pass" : "fail", early ? "the stream does not wait" : "rank_start_on");
    GPU_MUST(StreamSynchronize, stream);
    GPU_MUST(StreamDestroy, stream);
    GPU_MUST(MemFreeHost, memory);
}

static double attributes_ns(CUdeviceptr at)
{
    unsigned type = 0, managed = 0;
    uint64_t id = 0;
    CUcontext context = NULL;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                   CU_POINTER_ATTRIBUTE_CONTEXT};
    void *values[] = {&type, &managed, &id, &context};
    double start = gpu_seconds();

    for (int i = 0; i < CALLS; i++)
        rk_cuda.PointerGetAttributes(4, names, values, at);
    return (gpu_seconds() - start) / CALLS * 1e9;
}

static void probe_attributes(void)
{
    CUdeviceptr device;
    void *host, *pinned;

    gpu_open(0);
    host = malloc(4096);
    GPU_MUST(MemAlloc, &device, 4096);
    GPU_MUST(MemHostAlloc, &pinned, 4096, CU_MEMHOSTALLOC_PORTABLE);
    record_value("cuPointerGetAttributes, host memory", true, attributes_ns((CUdeviceptr)(uintptr_t)host), "ns",
                 "each call with a host pointer where CUDA is used");
    record_value("cuPointerGetAttributes, pinned memory", true, attributes_ns((CUdeviceptr)(uintptr_t)pinned), "ns", "");
    record_value("cuPointerGetAttributes, device memory", true, attributes_ns(device), "ns", "");
    GPU_MUST(MemFreeHost, pinned);
    GPU_MUST(MemFree, device);
    free(host);
}

/* One copy of 8 bytes on the device, complete. */
struct small_copy {
    CUdeviceptr at;
    CUstream stream;
};

static void small_copy_open(struct small_copy *c)
{
    gpu_open(0);
    GPU_MUST(MemAlloc, &c->at, 4096);
    GPU_MUST(StreamCreateWithPriority, &c->stream, CU_STREAM_NON_BLOCKING, 0);
}

static void small_copy_run(struct small_copy *c)
{
    GPU_MUST(MemcpyDtoDAsync, c->at, c->at + 1024, 8, c->stream);
    GPU_MUST(StreamSynchronize, c->stream);
}

static void small_copy_close(struct small_copy *c)
{
    GPU_MUST(StreamDestroy, c->stream);
    GPU_MUST(MemFree, c->at);
}

static void handoff_other(void)
{
    struct small_copy c;

    small_copy_open(&c);
    small_copy_run(&c);
    for (int i = 0; i < TURNS; i++) {
        turn_await(2 * i + 1);
        small_copy_run(&c);
        atomic_store(&shared->turn, 2 * i + 2);
    }
    small_copy_close(&c);
}

static void handoff_own(void)
{
    struct small_copy c;
    double start, alone, together;

    small_copy_open(&c);
    small_copy_run(&c);
    start = gpu_seconds();
    for (int i = 0; i < TURNS; i++)
        small_copy_run(&c);
    alone = (gpu_seconds() - start) / TURNS;
    atomic_store(&shared->turn, 1);
    turn_await(2); /* the other process has started */
    start = gpu_seconds();
    for (int i = 1; i < TURNS; i++) {
        small_copy_run(&c);
        atomic_store(&shared->turn, 2 * i + 1);
        turn_await(2 * i + 2);
    }
    together = (gpu_seconds() - start) / (2 * (TURNS - 1));
    record_value("8 B copy on the device, one process", true, alone * 1e6, "us", "");
    record_value("8 B copy on the device, two processes in turn", true, together * 1e6, "us", "");
    record_value("hand-off of contexts", true, (together - alone) * 1e6, "us", "added to each copy when two processes share a GPU without MPS");
    small_copy_close(&c);
}

static void probe_handoff(void)
{
    probe_pair(handoff_own, handoff_other);
}

static void probe_peers(void)
{
    CUdevice a, b;
    int n = 0, can, pairs = 0, access = 0;

    gpu_open(0);
    GPU_MUST(DeviceGetCount, &n);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            GPU_MUST(DeviceGet, &a, i);
            GPU_MUST(DeviceGet, &b, k);
            if (i == k)
                continue;
            pairs++;
            GPU_MUST(DeviceCanAccessPeer, &can, a, b);
            access += can != 0;
        }
    }
    if (pairs)
        record_value(gpu_probe, true, access, "pairs", access == pairs ? "all devices reach each other" : "the others are staged");
    else
        record_text(gpu_probe, "skip", "one device");
}

static const struct probe {
    const char *name;
    void (*run)(void);
} probes[] = {
    {"device", probe_device},
    {"descriptor of VMM memory in another process", probe_descriptor},
    {"IPC handle in another process", probe_ipc},
    {"IPC handle of VMM memory is refused", probe_ipc_vmm},
    {"descriptor of a pointer", probe_retain},
    {"SYNC_MEMOPS", probe_sync_memops},
    {"stream priorities", probe_priorities},
    {"64-bit memory operations of streams", probe_memory_operations},
    {"dmabuf", probe_dmabuf},
    {"access between devices", probe_peers},
    {"cuPointerGetAttributes", probe_attributes},
    {"hand-off of contexts", probe_handoff},
};

/* Run a probe in a process of its own; returns its exit code, 1 if it dies. */
static int probe_run(const struct probe *p)
{
    int status = 0;
    pid_t pid;

    memset(shared, 0, sizeof(*shared));
    gpu_probe = p->name;
    pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        alarm(LIMIT_S);
        p->run();
        gpu_close();
        exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    kill(-pid, SIGKILL); /* its other process */
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    record_text(p->name, "fail", WTERMSIG(status) == SIGALRM ? "no answer within 20 s" : strsignal(WTERMSIG(status)));
    return 1;
}

int main(int argc, char **argv)
{
    int rc = 0;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    if (argc > 1 && strcmp(argv[1], "--hold") == 0) {
        gpu_open(0);
        sleep(HOLD_S);
        return 0;
    }
    for (size_t i = 0; i < RK_ARRAY_LEN(probes); i++) {
        if (argc > 1 && strcmp(argv[1], probes[i].name) != 0)
            continue;
        switch (probe_run(&probes[i])) {
        case 0:
            break;
        case GPU_SKIPPED: /* no driver: the others need not ask */
            return GPU_SKIPPED;
        default:
            rc = 1;
        }
    }
    return rc;
}
