/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_rate.c: measure allreduce of NCCL, where libnccl.so.2 is.
 *
 *   xrun -n 2 -x NCCL_MULTI_RANK_GPU_ENABLE=1 nccl_rate.mp SIZE...
 *
 * NCCL is loaded at run time, and no header of it is needed. Rank 0 prints a record a type and size (gpu_record.h): the
 * median of the slowest rank's times. Several ranks of a GPU need NCCL 2.30.
 */
#include "tests/gpu/gpu_record.h"

#include "bench/harness_stats.h"
#include "tests/mp/mp.h"
#include "tests/standin/device_memory.h"

#include <dlfcn.h>

enum { ITERATIONS = 20, WARMUP = 5, SHARED_SINCE = 23000 };

/* As nccl.h declares them. */
typedef struct {
    char internal[128];
} nccl_id;
enum { NCCL_SUM = 0, NCCL_FLOAT32 = 7, NCCL_BFLOAT16 = 9 };

static struct {
    int (*GetVersion)(int *version);
    int (*GetUniqueId)(nccl_id *id);
    int (*CommInitRank)(void **comm, int ranks, nccl_id id, int rank);
    int (*AllReduce)(const void *from, void *to, size_t count, int type, int op, void *comm, CUstream stream);
    int (*CommDestroy)(void *comm);
    const char *(*GetErrorString)(int result);
} nccl;

/* NULL, or why it cannot be used. */
static const char *nccl_load(int ranks)
{
    static char why[256];
    void *lib = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int version = 0, devices = 0;

    if (!lib)
        lib = dlopen("/usr/local/cuda/lib/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return "no libnccl.so.2";
#define NCCL_FIND(name)                                                                                           \
    do {                                                                                                          \
        void *address_ = dlsym(lib, "nccl" #name);                                                                \
        memcpy(&nccl.name, &address_, sizeof(address_));                                                          \
        if (!address_)                                                                                            \
            return "libnccl.so.2 has no nccl" #name;                                                              \
    } while (0)
    NCCL_FIND(GetVersion);
    NCCL_FIND(GetUniqueId);
    NCCL_FIND(CommInitRank);
    NCCL_FIND(AllReduce);
    NCCL_FIND(CommDestroy);
    NCCL_FIND(GetErrorString);
    nccl.GetVersion(&version);
    GPU_MUST(DeviceGetCount, &devices);
    if (devices >= ranks || version >= SHARED_SINCE)
        return NULL;
    snprintf(why, sizeof(why), "NCCL %d.%d cannot share a GPU between ranks; 2.30 can", version / 10000, version / 100 % 100);
    return why;
}

static void measure_size(const struct mp *mp, void *comm, CUstream stream, const char *type_name, int type, size_t element, size_t bytes)
{
    double sample[ITERATIONS];
    char name[128];
    CUdeviceptr in, out;

    GPU_MUST(MemAlloc, &in, bytes);
    GPU_MUST(MemAlloc, &out, bytes);
    GPU_MUST(MemsetD8Async, in, 0, bytes, stream);
    for (int i = -WARMUP; i < ITERATIONS; i++) {
        double seconds, start;
        int r;

        mp_barrier(mp->world);
        start = gpu_seconds();
        r = nccl.AllReduce((const void *)(uintptr_t)in, (void *)(uintptr_t)out, bytes / element, type, NCCL_SUM, comm, stream);
        if (r)
            mp_fail(__FILE__, __LINE__, "ncclAllReduce: %s", nccl.GetErrorString(r));
        GPU_MUST(StreamSynchronize, stream);
        seconds = gpu_seconds() - start;
        MP_OK(rank_allreduce(RANK_IN_PLACE, &seconds, 1, RANK_F64, RANK_MAX, mp->world));
        if (i >= 0)
            sample[i] = seconds;
    }
    snprintf(name, sizeof(name), "NCCL, allreduce, %s, %zu B", type_name, bytes);
    if (mp->rank == 0)
        record_value(name, true, bench_stats_of(sample, ITERATIONS).median * 1e6, "us", "");
    GPU_MUST(MemFree, in);
    GPU_MUST(MemFree, out);
}

int main(int argc, char **argv)
{
    const char *why;
    CUstream stream;
    struct mp mp;
    nccl_id id;
    void *comm;
    int r;

    mp_start(&mp, &argc, argv);
    gpu_probe = "NCCL";
    device_memory(mp.rank);
    why = device_memory_counts() ? "the stand-in has no kernels of NCCL" : nccl_load(mp.size);
    if (!why) {
        if (mp.rank == 0 && (r = nccl.GetUniqueId(&id)) != 0)
            mp_fail(__FILE__, __LINE__, "ncclGetUniqueId: %s", nccl.GetErrorString(r));
        MP_OK(rank_bcast(&id, sizeof(id), RANK_BYTE, 0, mp.world));
        if ((r = nccl.CommInitRank(&comm, mp.size, id, mp.rank)) != 0)
            mp_fail(__FILE__, __LINE__, "ncclCommInitRank: %s", nccl.GetErrorString(r));
        GPU_MUST(StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
        for (int i = 1; i < argc; i++) {
            measure_size(&mp, comm, stream, "f32", NCCL_FLOAT32, 4, strtoull(argv[i], NULL, 10));
            measure_size(&mp, comm, stream, "bf16", NCCL_BFLOAT16, 2, strtoull(argv[i], NULL, 10));
        }
        GPU_MUST(StreamDestroy, stream);
        nccl.CommDestroy(comm);
    } else if (mp.rank == 0) {
        record_text(gpu_probe, "skip", why);
    }
    device_memory_end();
    mp_end_survivor(&mp); /* NCCL keeps descriptors */
    return 0;
}
