/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_test.c: check memory, devices and faults of the stand-in for libcuda.
 *
 * No GPU takes part: these are the properties that tests of device memory rely on.
 */
#include "tests/standin/standin_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { MB = 1 << 20, LARGE = 2 * MB };
#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

/* Copy to or from host memory, and wait. */
static void copy(void *to, CUdeviceptr from, size_t bytes) { OK(Memcpy((uintptr_t)to, from, bytes)); }
static void fill(CUdeviceptr to, const void *from, size_t bytes)
{
    OK(Memcpy(to, (uintptr_t)from, bytes));
    OK(CtxSynchronize());
}

static int touch(void *at)
{
    signal(SIGSEGV, SIG_DFL);
    return *(volatile char *)at;
}

static void host_access(void)
{
    CUdeviceptr dev, managed;
    char buf[8] = "abcdefg", back[8];
    int fds[2];
    struct iovec mine = {buf, 8}, its = {NULL, 8};
    void *host;

    run_start();
    OK(MemAlloc(&dev, 100));
    fill(dev, buf, 8);
    CHECK(unit_reap(unit_spawn(touch, (void *)(uintptr_t)dev)) == 128 + SIGSEGV);
    CHECK(pipe(fds) == 0 && write(fds[1], (void *)(uintptr_t)dev, 8) == -1 && errno == EFAULT);
    its.iov_base = (void *)(uintptr_t)dev;
    CHECK(process_vm_readv(getpid(), &mine, 1, &its, 1, 0) == -1);
    copy(back, dev, 8);
    CHECK(memcmp(buf, back, 8) == 0);
    OK(MemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    OK(MemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_PORTABLE));
    *(char *)(uintptr_t)managed = 'm';
    copy(host, managed, 1);
    CHECK(*(char *)host == 'm');
    OK(MemFree(dev));
    OK(MemFree(managed));
    OK(MemFreeHost(host));
    FAILS(INVALID_VALUE, MemFree(dev));
    FAILS(INVALID_VALUE, Memcpy((uintptr_t)back, dev, 8));
    run_stop();
}

static unsigned long long buffer_id(CUdeviceptr ptr)
{
    unsigned long long id;

    OK(PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr));
    return id;
}

static void attributes(void)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned type;
    int managed, device;
    void *values[] = {&type, &managed, &device};
    CUdeviceptr a, b, m, base;
    size_t size;
    unsigned long long id;
    static char mine[8192];

    run_start();
    OK(CtxSetCurrent(contexts[1]));
    OK(MemAlloc(&a, 1000));
    OK(MemAlloc(&b, 3 * MB));
    OK(PointerGetAttributes(3, names, values, a + 999));
    CHECK(type == CU_MEMORYTYPE_DEVICE && !managed && device == 1);
    OK(MemGetAddressRange(&base, &size, a + 999));
    CHECK(base == a && size == 1000 && a % 512 == 0 && b % LARGE == 0);
    FAILS(NOT_FOUND, MemGetAddressRange(&base, &size, a + 1000));
    CHECK(buffer_id(a) != buffer_id(b));
    id = buffer_id(b);
    OK(MemFree(b));
    OK(MemAlloc(&base, 3 * MB));
    CHECK(base == b && buffer_id(base) != id); /* an address is taken again, an id is not */
    OK(MemAllocManaged(&m, 10, CU_MEM_ATTACH_GLOBAL));
    OK(PointerGetAttributes(3, names, values, m));
    CHECK(type == CU_MEMORYTYPE_DEVICE && managed);
    FAILS(INVALID_VALUE, PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)mine));
    OK(PointerGetAttributes(3, names, values, (uintptr_t)mine));
    CHECK(type == 0 && !managed && device == -2);
    OK(MemHostRegister(mine, sizeof(mine), 0));
    FAILS(HOST_MEMORY_ALREADY_REGISTERED, MemHostRegister(mine + 100, 1, 0));
    OK(PointerGetAttributes(3, names, values, (uintptr_t)mine + 5));
    CHECK(type == CU_MEMORYTYPE_HOST);
    OK(MemHostUnregister(mine));
    FAILS(HOST_MEMORY_NOT_REGISTERED, MemHostUnregister(mine));
    OK(MemFree(a));
    OK(MemFree(base));
    OK(MemFree(m));
    run_stop();
}

/* ------------------------------------------------------------------------ other processes */

static int to_peer[2], to_owner[2];

#define SEND(fd, x) CHECK(write(fd, &(x), sizeof(x)) == (ssize_t)sizeof(x))
#define RECV(fd, x) CHECK(read(fd, &(x), sizeof(x)) == (ssize_t)sizeof(x))

struct shared_memory {
    CUipcMemHandle small, large;
    pid_t pid;
    int fd;
};

static CUdeviceptr vmm_create(size_t bytes, CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr at;

    OK(MemAddressReserve(&at, bytes, 0, 0, 0));
    for (size_t i = 0; i < bytes / LARGE; i++) {
        OK(MemCreate(&handle[i], LARGE, &prop, 0));
        OK(MemMap(at + i * LARGE, LARGE, 0, handle[i], 0));
    }
    FAILS(INVALID_VALUE, Memcpy(at, at + 64, 8)); /* no access yet */
    OK(MemSetAccess(at, bytes, &access, 1));
    return at;
}

static void vmm_destroy(CUdeviceptr at, size_t bytes)
{
    FAILS(INVALID_VALUE, MemAddressFree(at, bytes));
    OK(MemUnmap(at, bytes));
    OK(MemAddressFree(at, bytes));
}

static void owner(void)
{
    struct shared_memory s = {.pid = getpid()};
    CUmemGenericAllocationHandle handle[2], again;
    CUdeviceptr small, other, large, vmm, own;
    char *data = malloc(2 * LARGE), done;
    int legacy;

    run_start();
    memset(data, 's', 2 * LARGE);
    OK(MemAlloc(&small, 256));
    OK(MemAlloc(&other, 300));
    OK(MemAlloc(&large, LARGE));
    fill(other, data, 300);
    fill(large, data, LARGE);
    OK(IpcGetMemHandle(&s.small, other + 7));
    OK(IpcGetMemHandle(&s.large, large));
    FAILS(INVALID_CONTEXT, IpcOpenMemHandle(&own, s.large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    vmm = vmm_create(2 * LARGE, handle);
    fill(vmm, data, 2 * LARGE); /* across two handles */
    OK(PointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, vmm));
    CHECK(!legacy);
    FAILS(INVALID_VALUE, IpcGetMemHandle(&s.small, vmm));
    FAILS(INVALID_VALUE, MemRetainAllocationHandle(&again, (void *)(uintptr_t)large));
    OK(MemRetainAllocationHandle(&again, (void *)(uintptr_t)(vmm + LARGE + 5)));
    CHECK(again == handle[1]);
    OK(MemExportToShareableHandle(&s.fd, again, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(MemRelease(again));
    SEND(to_peer[1], s);
    RECV(to_owner[0], done); /* mapped and written */
    copy(data, other, 300);
    CHECK(data[0] == 's' && data[299] == 'p');
    copy(data, vmm + LARGE, LARGE);
    CHECK(data[LARGE - 1] == 'v');
    OK(MemFree(large));
    OK(MemFree(other));
    OK(MemFree(small));
    vmm_destroy(vmm, 2 * LARGE);
    OK(MemRelease(handle[0]));
    OK(MemRelease(handle[1]));
    close(s.fd);
    SEND(to_peer[1], done);
    RECV(to_owner[0], done);
    free(data);
    run_stop();
}

static void peer(void)
{
    struct shared_memory s;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr small, large, again, at;
    char c = 'p', path[64];
    int pidfd, fd;

    run_start();
    RECV(to_peer[0], s);
    OK(IpcOpenMemHandle(&small, s.small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(IpcOpenMemHandle(&large, s.large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(IpcOpenMemHandle(&again, s.large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(again == large);
    OK(IpcCloseMemHandle(again));
    fill(small + 299, &c, 1);
    FAILS(INVALID_VALUE, Memcpy(small + 299, (uintptr_t)&c, 2)); /* the neighbour is not mapped */

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", s.pid, s.fd);
    fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    FAILS(INVALID_VALUE, MemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, FD));
    close(fd);
    pidfd = (int)syscall(SYS_pidfd_open, s.pid, 0);
    fd = (int)syscall(SYS_pidfd_getfd, pidfd, s.fd, 0);
    CHECK(fd >= 0);
    OK(MemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, FD));
    close(fd);
    close(pidfd);
    OK(MemAddressReserve(&at, LARGE, 0, 0, 0));
    OK(MemMap(at, LARGE, 0, handle, 0));
    OK(MemRelease(handle));
    OK(MemSetAccess(at, LARGE, &access, 1));
    copy(&c, at, 1);
    CHECK(c == 's');
    c = 'v';
    fill(at + LARGE - 1, &c, 1);
    SEND(to_owner[1], c);
    RECV(to_peer[0], c); /* the owner has freed all */
    copy(&c, large + LARGE - 1, 1);
    CHECK(c == 's');
    copy(&c, at + LARGE - 1, 1);
    CHECK(c == 'v');
    OK(IpcCloseMemHandle(large));
    FAILS(INVALID_VALUE, IpcCloseMemHandle(large));
    FAILS(MAP_FAILED, IpcOpenMemHandle(&large, s.large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(IpcCloseMemHandle(small));
    vmm_destroy(at, LARGE);
    SEND(to_owner[1], c);
    run_stop();
}

/* ------------------------------------------------------------------------ faults and settings */

static void faults_chosen(void)
{
    CUdeviceptr a, b;
    CUstream stream;
    const char *name;

    run_start();
    OK(MemAlloc(&a, 8));
    FAILS(OUT_OF_MEMORY, MemAlloc(&b, 8));
    OK(MemAlloc(&b, 8));
    OK(MemFree(a));
    OK(MemFree(b));
    OK(GetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
    CHECK(strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    CHECK(cu.calls("MemAlloc") == 3);
    OK(StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
    FAILS(ECC_UNCORRECTABLE, StreamQuery(stream));
    FAILS(ECC_UNCORRECTABLE, StreamSynchronize(stream)); /* sticky */
    FAILS(ECC_UNCORRECTABLE, MemAlloc(&a, 8));
}

static void faults_init(void)
{
    run_load();
    FAILS(NO_DEVICE, Init(0));
    exit(0);
}

static int fork_child(void *arg)
{
    int n;

    (void)arg;
    return (int)cu.DeviceGetCount(&n);
}

static void contexts_wrong(void)
{
    CUcontext context = NULL;
    CUdeviceptr ptr;
    CUevent event;
    CUstream stream;

    run_load();
    FAILS(NOT_INITIALIZED, CtxGetCurrent(&context));
    OK(Init(0));
    OK(CtxGetCurrent(&context));
    CHECK(!context);
    FAILS(INVALID_CONTEXT, MemAlloc(&ptr, 8));
    FAILS(INVALID_CONTEXT, CtxPopCurrent(&context));
    FAILS(INVALID_DEVICE, DevicePrimaryCtxRetain(&context, 2));
    OK(DevicePrimaryCtxRetain(&contexts[0], 0));
    OK(DevicePrimaryCtxRetain(&contexts[1], 1));
    OK(CtxPushCurrent(contexts[0]));
    OK(EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(CtxPushCurrent(contexts[1]));
    OK(StreamCreateWithPriority(&stream, 0, -5));
    FAILS(INVALID_HANDLE, EventRecord(event, stream));
    OK(StreamWaitEvent(stream, event, 0));
    FAILS(PEER_ACCESS_UNSUPPORTED, CtxEnablePeerAccess(contexts[0], 0));
    OK(CtxPushCurrent(contexts[0]));
    OK(StreamGetCtx(stream, &context));
    CHECK(context == contexts[1]);
    OK(CtxPopCurrent(NULL));
    OK(StreamDestroy(stream));
    OK(CtxPopCurrent(&context));
    CHECK(context == contexts[1]);
    OK(EventDestroy(event));
    CHECK(unit_reap(unit_spawn(fork_child, NULL)) == CUDA_ERROR_NOT_INITIALIZED);
    OK(DevicePrimaryCtxRelease(1));
    OK(DevicePrimaryCtxRelease(0));
    FAILS(CONTEXT_IS_DESTROYED, MemAlloc(&ptr, 8));
}

static void driver_old(void)
{
    int version;

    run_load();
    CHECK(cu.MemAlloc && cu.DeviceGetUuid && !cu.StreamWaitValue64 && !cu.MemGetHandleForAddressRange && !cu.IpcOpenMemHandle);
    OK(DriverGetVersion(&version));
    CHECK(version == 11040);
}

static void memory_out(void)
{
    CUdeviceptr a, b;
    size_t available, total;

    run_start();
    OK(MemAlloc(&a, 3 * LARGE));
    FAILS(OUT_OF_MEMORY, MemAlloc(&b, LARGE));
    OK(MemGetInfo(&available, &total));
    CHECK(available == LARGE / 2 && total == 7 * MB);
    OK(MemFree(a));
    OK(MemAlloc(&a, 3 * LARGE));
    OK(MemFree(a));
    run_stop();
}

/* STANDIN_IPC and STANDIN_VMM decide which exports there are. */
static void exports_refused(void)
{
    bool legacy = strcmp(getenv("STANDIN_IPC"), "legacy") == 0, vmm = !getenv("STANDIN_VMM");
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    CUipcMemHandle ipc;
    CUdeviceptr ptr;
    int can;

    run_start();
    OK(MemAlloc(&ptr, 8));
    OK(PointerGetAttribute(&can, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, ptr));
    CHECK(can == legacy);
    CHECK(cu.IpcGetMemHandle(&ipc, ptr) == (legacy ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED));
    OK(DeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    CHECK(can == vmm && (cu.MemCreate(&handle, LARGE, &prop, 0) == CUDA_SUCCESS) == vmm);
    if (vmm)
        OK(MemRelease(handle));
    OK(DeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
    prop.requestedHandleTypes = FD;
    CHECK(!can);
    FAILS(NOT_SUPPORTED, MemCreate(&handle, LARGE, &prop, 0));
    OK(MemFree(ptr));
    run_stop();
}

/* Print the PCI bus of each device that is visible. */
static void devices_seen(void)
{
    int n;

    run_load();
    if (cu.Init(0) == CUDA_ERROR_NO_DEVICE)
        _exit(100);
    OK(DeviceGetCount(&n));
    for (int i = 0; i < n; i++) {
        int bus;

        OK(DeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
        fprintf(stderr, "%x ", (unsigned)bus);
    }
}

static void leaks_left(void)
{
    CUdeviceptr ptr;
    CUevent event;

    run_start();
    OK(MemAlloc(&ptr, 8));
    OK(EventCreate(&event, 0));
    run_stop();
}

/* Run a scene, and compare its end and what it writes to stderr. */
static void run_text(void (*scene)(void), int status, const char *text, const char *const *settings)
{
    struct unit_stderr e;
    int got;

    unit_stderr_begin(&e);
    got = unit_reap(run_fork(scene, settings));
    unit_stderr_end(&e);
    assert_string_equal(e.text, text);
    assert_int_equal(got, status);
}
#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void standin_host_access_faults(void **state)
{
    (void)state;
    RUN(host_access, NULL);
}

static void standin_attributes(void **state)
{
    (void)state;
    RUN(attributes, "STANDIN_GPUS=2", NULL);
}

static void standin_other_process_maps(void **state)
{
    pid_t first;

    (void)state;
    assert_int_equal(pipe(to_peer) | pipe(to_owner), 0);
    first = run_fork(owner, NULL);
    RUN(peer, NULL);
    assert_int_equal(unit_reap(first), 0);
}

static void standin_faults_by_variable(void **state)
{
    (void)state;
    RUN(faults_chosen, "STANDIN_FAIL=MemAlloc:2:2,cuStreamQuery:1:CUDA_ERROR_ECC_UNCORRECTABLE", NULL);
    RUN(faults_init, "STANDIN_FAIL=Init:1+:CUDA_ERROR_NO_DEVICE", NULL);
    RUN(contexts_wrong, "STANDIN_GPUS=2", "STANDIN_PEER=off", NULL);
    RUN(driver_old, "STANDIN_DRIVER=11040", "STANDIN_WITHOUT=IpcOpenMemHandle", NULL);
    RUN(memory_out, "STANDIN_MEMORY=7340032", NULL);
    RUN(exports_refused, "STANDIN_IPC=off", NULL);
    RUN(exports_refused, "STANDIN_IPC=legacy", "STANDIN_VMM=off", NULL);
}

static void standin_devices_by_variable(void **state)
{
    (void)state;
    run_text(devices_seen, 0, "10 20 30 ", SETTINGS("STANDIN_GPUS=3"));
    run_text(devices_seen, 100, "", SETTINGS("STANDIN_GPUS=0"));
    run_text(devices_seen, 0, "30 10 ", SETTINGS("STANDIN_GPUS=3", "CUDA_VISIBLE_DEVICES=2,0,7,1"));
    run_text(devices_seen, 100, "", SETTINGS("STANDIN_GPUS=3", "CUDA_VISIBLE_DEVICES=1,1"));
    run_text(devices_seen, 0, "20 ",
             SETTINGS("STANDIN_GPUS=3", "CUDA_VISIBLE_DEVICES=GPU-7374616e-6469-6e00-0000-000000002000"));
    run_text(devices_seen, 0, "65 17 ", SETTINGS("STANDIN_GPUS=2", "STANDIN_PCI=0000:65:00.0,0000:17:00.0"));
    run_text(devices_seen, 0, "17 65 ",
             SETTINGS("STANDIN_GPUS=2", "STANDIN_PCI=0000:65:00.0,0000:17:00.0", "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
}

static void standin_leaks_fail(void **state)
{
    (void)state;
    run_text(leaks_left, 1,
             "stand-in for libcuda: 1 ranges of memory left at exit\nstand-in for libcuda: 1 events left at exit\n",
             SETTINGS("STANDIN_GPUS=1"));
    run_text(leaks_left, 0, "", SETTINGS("STANDIN_LEAKS=off"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standin_host_access_faults), cmocka_unit_test(standin_attributes),
        cmocka_unit_test(standin_other_process_maps), cmocka_unit_test(standin_faults_by_variable),
        cmocka_unit_test(standin_devices_by_variable), cmocka_unit_test(standin_leaks_fail),
    };

    return cmocka_run_group_tests_name("stand-in for libcuda, no GPU", tests, NULL, NULL);
}
