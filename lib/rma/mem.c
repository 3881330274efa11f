/* SPDX-License-Identifier: BSD-3-Clause */
/* mem.c: make the objects behind rank_mem_t, and check handles. */
#include "lib/base/retired.h"
#include "lib/rma/rma_internal.h"

#include <stdlib.h>
#include <string.h>

static struct rk_retired retired = RK_RETIRED_INIT(64);

void rk_mem_free(struct rank_mem *mem)
{
    mem->magic = 0;
    rk_retired_put(&retired, &mem->link);
}

struct rank_mem *rk_mem_new(struct rank_team *team, size_t bytes)
{
    struct rk_link *link = rk_retired_take(&retired);
    struct rank_mem *mem = link ? rk_list_entry(link, struct rank_mem, link) : malloc(sizeof(*mem));

    if (!mem)
        return NULL;
    memset(mem, 0, sizeof(*mem));
    mem->ctx = team->ctx;
    mem->team = team;
    mem->deaths_reported = mem->flush_reported = team->ndead; /* earlier deaths are not reported */
    mem->bytes = bytes;
    rk_list_init(&mem->requests);
    mem->part = calloc((size_t)team->size, sizeof(*mem->part));
    if (!mem->part) {
        rk_mem_free(mem);
        return NULL;
    }
    mem->magic = rk_device_kind ? RK_MEM_KINDS_MAGIC : RK_MEM_MAGIC;
    rk_list_append(&team->ctx->rma->mems, &mem->link);
    return mem;
}

void rk_mem_retire(struct rank_mem *mem)
{
    mem->magic = 0; /* its id stays valid for frames of peers */
}

void rk_mem_unmap_peers(struct rank_mem *mem)
{
    for (int r = 0; mem->kind && r < mem->npaths; r++) {
        if (mem->part[r] && mem->part[r] != mem->mine)
            mem->kind->free(mem->part[r]);
        if (mem->part[r] != mem->mine)
            mem->part[r] = NULL;
    }
}

bool rk_key_is(const struct rank_mem *mem, uint64_t nonce, uint64_t sum)
{
    return mem->record && mem->record->nonce == nonce && mem->record->sum == sum;
}

void rk_key_record_free(struct rank_mem *mem)
{
    if (mem->record) /* later accesses must find something else; the compiler drops plain stores before a free */
        explicit_bzero(mem->record, sizeof(*mem->record));
    free(mem->record);
    mem->record = NULL;
}

rank_status_t rk_mem_enter(struct rank_mem *mem)
{
    const struct rank_team *team = mem->team;

    mem->partner = team->size == 2 && mem->sort == RK_MEM_SYMMETRIC ? rk_team_world_rank(team, 1 - team->rank) : -1;
    if (!rk_secret_id_put(&team->ctx->rma->mem_ids, &mem->by_id, &mem->id)) {
        mem->mine = NULL;
        return RANK_ERR_NO_MEMORY;
    }
    return RANK_OK;
}

rank_status_t rk_mem_add_paths(struct rank_mem *mem)
{
    mem->paths = calloc((size_t)mem->team->size, sizeof(*mem->paths));
    if (!mem->paths)
        return RANK_ERR_NO_MEMORY;
    mem->npaths = mem->team->size;
    return RANK_OK;
}

RK_COLD rank_status_t rk_mem_is_denied(unsigned what)
{
    return rk_arg_error(RANK_ERR_ARG, "one-sided call",
                        "the memory cannot be %s: its owner has registered it without %s, or from protected pages (mprotect)",
                        what & RK_NO_WRITES ? "written" : "read", what & RK_NO_WRITES ? "RANK_ACCESS_WRITE" : "RANK_ACCESS_READ");
}

RK_COLD rank_status_t rk_mem_word_is_unaligned(int64_t offset, size_t width)
{
    return rk_arg_error(RANK_ERR_ARG, "one-sided call",
                        "the word of %zu bytes at offset %lld does not lie on a multiple of %zu: register memory for atomics and signals from such "
                        "an address on", width, (long long)offset, width);
}

/* ----------------------------------------------------------------------- checks */

RK_COLD bool rk_mem_stages(const struct rank_mem *mem, const void *buf, int64_t bytes)
{
    if (!mem || mem->magic == RK_MEM_DEVICE_MAGIC)
        return mem != NULL;
    return mem->magic == RK_MEM_KINDS_MAGIC && bytes > 0 && (uint64_t)bytes <= mem->bytes && rk_kind_of(buf, (size_t)bytes);
}

RK_COLD rank_status_t rk_mem_check_any_kind(const char *call, const struct rank_mem *mem)
{
    if (mem && mem->magic == RK_MEM_REVOKED_MAGIC)
        return rk_arg_error(RANK_ERR_HANDLE, call, "the owner of the memory has ended its registration; close the key");
    return mem && (mem->magic == RK_MEM_KINDS_MAGIC || mem->magic == RK_MEM_DEVICE_MAGIC) ? RANK_OK : rk_arg_handle(call, "memory", mem);
}

RK_COLD rank_status_t rk_mem_check_kind(const char *call, const struct rank_mem *mem, const void *buf, int64_t bytes)
{
    rank_status_t st = rk_mem_check_any_kind(call, mem);

    if (st || !rk_mem_stages(mem, buf, bytes))
        return st;
    if (mem->kind)
        return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "the memory is of the kind %s, which puts and gets access only; use host memory",
                            mem->kind->name);
    return rk_arg_error(RANK_ERR_NOT_SUPPORTED, call, "the buffer lies in memory of the kind %s; copy it to host memory",
                        rk_kind_of(buf, (size_t)bytes)->name);
}

rank_status_t rk_mem_check_sort(const char *call, const rank_mem_t *mem, enum rk_mem_sort sort)
{
    rank_status_t st;

    if (!mem)
        return rk_arg_null(call, "mem");
    if (sort == RK_MEM_OPENED && *mem && (*mem)->magic == RK_MEM_REVOKED_MAGIC)
        return RANK_OK;
    st = rk_mem_check(call, *mem);
    if (!st && (*mem)->sort != sort)
        st = rk_arg_error(RANK_ERR_HANDLE, call, "the memory is not of rank_%s", sort == RK_MEM_OPENED ? "rkey_open" : "reg");
    return st;
}
