/* SPDX-License-Identifier: BSD-3-Clause */
/* paths.c: print and calibrate the protocols of large messages. */
#include "tools/rankinfo/paths.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/channel/module.h"
#include "lib/channel/tcp/tcp_wire.h"
#include "lib/mem/bounce.h"
#include "lib/mem/kind.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char *size_text(uint64_t bytes, char text[16])
{
    if (bytes < 1 << 20)
        snprintf(text, 16, "%u KiB", (unsigned)(bytes >> 10));
    else
        snprintf(text, 16, "%u MiB", (unsigned)(bytes >> 20));
    return text;
}

/* The protocol that RANK_LARGE sets for mapped memory, or else for other memory; NULL: none. */
static const struct rk_shm_proto *set_by_user(bool mapped)
{
    const struct rk_shm_proto *set = rk_shm_proto_set();

    return set && mapped == !!(set->needs & RK_NEEDS_MAPPING) ? set : NULL;
}

/* The protocol that ranks would use, and the reason. */
static const struct rk_shm_proto *info_select_proto(const struct rk_proto_table *table, int class, char *why, size_t len)
{
    const uint32_t *r = table->rate[class];
    const struct rk_shm_proto *set = set_by_user(false), *p = table->best[class];

    if (set && !(set->needs & RK_NEEDS_CMA && rk_conf.cma == RK_CONF_CMA_OFF)) {
        snprintf(why, len, "RANK_LARGE=%s", set->name);
        p = set;
    } else if (rk_conf.cma == RK_CONF_CMA_OFF) {
        p = table->ring[class];
        snprintf(why, len, "RANK_CMA=off");
    } else if (r[RK_PROTO_CMA] == 0) {
        p = table->ring[class];
        snprintf(why, len, "the kernel refuses CMA");
    } else if (p == &rk_shm_proto_cma) {
        snprintf(why, len, "one copy; no other is faster by enough");
    } else {
        snprintf(why, len, "%.1fx cma", (double)r[p->id] / r[RK_PROTO_CMA]);
        if (p != table->alone[class])
            snprintf(why, len, "%.1fx cma; for rank_isend (the sender may compute) %s", (double)r[p->id] / r[RK_PROTO_CMA],
                     table->alone[class]->name);
    }
    if ((int64_t)rk_proto_bytes(class) <= rk_conf.eager_max)
        snprintf(why, len, "only if it cannot leave at once (RANK_EAGER_MAX)");
    return p;
}

static void print_rate(FILE *out, uint32_t rate)
{
    if (rate)
        fprintf(out, " %9.1f", rate / 1e3);
    else
        fprintf(out, " %9s", "-");
}

static void print_table(FILE *out, const struct rk_proto_table *table)
{
    char why[128], size[16];

    fprintf(out, "  %-8s %-9s %-9s", "from", "takes", "if mapped");
    for (int p = 0; p < RK_PROTOS; p++)
        fprintf(out, " %9s", rk_shm_protos[p]->name);
    fprintf(out, "  because\n");
    for (int i = 0; i < RK_PROTO_CLASSES; i++) {
        const struct rk_shm_proto *p = info_select_proto(table, i, why, sizeof(why));
        const struct rk_shm_proto *mapped = set_by_user(true) ? set_by_user(true) : table->mapped[i];

        fprintf(out, "  %-8s %-9s %-9s", size_text(rk_proto_bytes(i), size), p->name, mapped->name);
        for (int k = 0; k < RK_PROTOS; k++)
            print_rate(out, table->rate[i][k]);
        fprintf(out, "  %s\n", why);
    }
}

static bool host_memory_is_pinned(const struct rk_kind *kind)
{
    struct rk_bounce_pool pool;
    struct rk_bounce *b;
    bool pinned;

    rk_bounce_pool_init(&pool);
    b = rk_bounce_take(&pool, kind, false);
    pinned = b && b->pinned_by;
    if (b)
        rk_bounce_put(&pool, b);
    rk_bounce_pool_close(&pool);
    return pinned;
}

/* Does UCX move device memory here? It reports that as text. */
static bool ucx_moves_device_memory(void)
{
    const struct rk_channel *ucx;
    const void *module;
    char path[PATH_MAX], *text = NULL;
    size_t len = 0;
    FILE *rails;
    bool moves;

    if (rk_module_find("ucx", path, sizeof(path)) || rk_module_open("ucx", &module) || !(rails = open_memstream(&text, &len)))
        return false;
    ucx = module;
    ucx->rails(rails);
    moves = fclose(rails) == 0 && strstr(text, "device memory: UCX's");
    free(text);
    return moves;
}

/* Messages from memory of a device. The driver is loaded for that. */
static void print_device_paths(FILE *out)
{
    const struct rk_kind *kind;
    char text[PATH_MAX] = "", size[16];
    const void *module;

    if (rk_conf.cuda == RK_CONF_CUDA_OFF || rk_module_find("cuda", text, sizeof(text)) || rk_module_open("cuda", &module)) {
        fprintf(out, "  cuda     not used: %s\n", rk_conf.cuda == RK_CONF_CUDA_OFF ? "RANK_CUDA=off" : "no module");
        return;
    }
    kind = module;
    if (kind->open(true, text, sizeof(text))) {
        fprintf(out, "  cuda     not used: %s\n", text);
        return;
    }
    kind->describe_paths(text, sizeof(text));
    fprintf(out, "  cuda     %s\n", text);
    fprintf(out, "paths of messages from device memory between hosts\n");
    if (ucx_moves_device_memory())
        fprintf(out, "  cuda     by UCX (RANK_CUDA_UCX); truncated messages and lists as below\n");
    fprintf(out, "  cuda     in chunks of %s through host memory%s\n", size_text(RK_TCP_CHUNK_MAX, size),
            host_memory_is_pinned(kind) ? ", which is pinned" : "");
    kind->close();
}

void info_print_paths(FILE *out)
{
    char machine[RK_PROTO_MACHINE_MAX], *file, *expected;
    struct rk_proto_table table;

    rk_proto_table_machine(machine);
    file = rk_proto_table_load(&table, true);
    expected = rk_proto_table_file(machine);
    fprintf(out, "paths of large messages on a host, GB/s\n");
    fprintf(out, "  machine  %s\n", machine);
    if (file)
        fprintf(out, "  rates    measured here: %s\n", file);
    else
        fprintf(out, "  rates    built in, of another machine perhaps; rankinfo --calibrate measures this one into %s\n",
                expected ? expected : "a file that RANK_PATHS names");
    fprintf(out, "  assist   %" PRIu32 " ns are added where both sides copy\n", table.meet);
    fprintf(out, "  \"if mapped\" is for rank_alloc memory, \"takes\" for all other\n");
    print_table(out, &table);
    fprintf(out, "paths of messages from device memory on a host\n");
    print_device_paths(out);
    free(file);
    free(expected);
}

bool info_calibrate(FILE *out)
{
    char machine[RK_PROTO_MACHINE_MAX], *file;
    struct rk_proto_table table;
    bool ok;

    rk_proto_table_machine(machine);
    file = rk_proto_table_file(machine);
    if (!file) {
        rk_error("there is no place for the table: RANK_PATHS=none, or neither XDG_CACHE_HOME nor HOME "
                 "is set; RANK_PATHS may name a file");
        return false;
    }
    ok = info_measure_paths(&table) && rk_proto_table_save(&table, machine, file) == RANK_OK;
    if (ok)
        fprintf(out, "wrote %s\n", file);
    free(file);
    return ok;
}
