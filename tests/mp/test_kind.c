/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_kind.c: the module librank-test.so: memory that only its copy accesses.
 *
 * Each block is a memfd that is mapped twice: the addresses that users get are PROT_NONE, copy uses the others. So
 * an access that does not go through copy is a SIGSEGV, or EFAULT from the kernel.
 */
#include "lib/channel/services.h"
#include "lib/mem/kind.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS_MAX = 256 };

static struct {
    char *front, *back;
    size_t bytes;
} blocks[BLOCKS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

extern const struct rk_kind test_kind;
const void *rank_module(const struct rk_services *services);

/* Block that holds the address, or -1. */
static int block_of(const void *ptr)
{
    int found = -1;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < BLOCKS_MAX && found < 0; i++) {
        if (blocks[i].front && (uintptr_t)ptr - (uintptr_t)blocks[i].front < blocks[i].bytes)
            found = i;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static bool test_query(const void *ptr, size_t bytes)
{
    (void)bytes;
    return block_of(ptr) >= 0;
}

static rank_status_t test_alloc(size_t bytes, void **out)
{
    int fd = memfd_create("rank-test-kind", MFD_CLOEXEC), i = 0;
    char *front, *back;

    bytes = rk_round_up(bytes ? bytes : 1, 4096);
    if (fd < 0 || ftruncate(fd, (off_t)bytes))
        abort();
    front = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
    back = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (front == MAP_FAILED || back == MAP_FAILED)
        abort();
    pthread_mutex_lock(&lock);
    while (blocks[i].front)
        i++; /* a test has few */
    blocks[i].back = back;
    blocks[i].bytes = bytes;
    blocks[i].front = front;
    pthread_mutex_unlock(&lock);
    *out = front;
    return RANK_OK;
}

static void test_free(void *ptr)
{
    int i = block_of(ptr);

    munmap(blocks[i].front, blocks[i].bytes);
    munmap(blocks[i].back, blocks[i].bytes);
    pthread_mutex_lock(&lock);
    blocks[i].front = NULL;
    pthread_mutex_unlock(&lock);
}

/* Where the CPU reaches it. */
static char *accessible(const void *ptr, const struct rk_kind *kind, size_t bytes)
{
    size_t at;
    int i;

    if (!kind)
        return (char *)(uintptr_t)ptr;
    i = block_of(ptr);
    if (kind != &test_kind || i < 0)
        abort();
    at = (size_t)((const char *)ptr - blocks[i].front);
    if (bytes > blocks[i].bytes - at)
        abort();
    return blocks[i].back + at;
}

static rank_status_t test_copy(void *to, const struct rk_kind *to_kind, const void *from, const struct rk_kind *from_kind, size_t bytes)
{
    memmove(accessible(to, to_kind, bytes), accessible(from, from_kind, bytes), bytes);
    return RANK_OK;
}

__attribute__((visibility("default"))) const struct rk_kind test_kind = {
    .name = "test",
    .id = RANK_MEM_CUDA, /* the only one of the interface that is not host memory */
    .query = test_query,
    .alloc = test_alloc,
    .free = test_free,
    .copy = test_copy,
};

__attribute__((visibility("default"))) const void *rank_module(const struct rk_services *services)
{
    return rk_services_match(services) ? &test_kind : NULL;
}
