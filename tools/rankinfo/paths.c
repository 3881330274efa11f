/* SPDX-License-Identifier: BSD-3-Clause */
/* paths.c: print and calibrate the protocols of large messages. */
#include "tools/rankinfo/paths.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/node/xpmem.h"

#include <inttypes.h>
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

static const char *forced(void)
{
    static const char *const names[] = {"", "cma", "both", "ring", "streamed", "xpmem", "xboth", "mapped", "mboth"};

    return names[rk_conf.large];
}

static bool asks_mapped(void)
{
    return rk_conf.large >= RK_CONF_LARGE_MAPPED;
}

/* The protocol that ranks would use, and the reason. */
static enum rk_path path_of(const struct rk_paths *paths, int class, bool attached, char *why, size_t len)
{
    const uint32_t *r = paths->rate[class];
    enum rk_path path = paths->best[attached][class];

    bool asks_kernel = rk_conf.large == RK_CONF_LARGE_CMA || rk_conf.large == RK_CONF_LARGE_BOTH;
    bool asks_module = rk_conf.large == RK_CONF_LARGE_XPMEM || rk_conf.large == RK_CONF_LARGE_XBOTH;

    if (rk_conf.large != RK_CONF_LARGE_AUTO && !asks_mapped() && !(asks_kernel && rk_conf.cma == RK_CONF_CMA_OFF) &&
        !(asks_module && !attached)) {
        snprintf(why, len, "RANK_LARGE=%s", forced());
        for (int p = 0; p < RK_PATHS; p++) {
            if (strcmp(rk_path_names[p], forced()) == 0)
                path = (enum rk_path)p;
        }
    } else if (rk_path_attaches(path)) {
        snprintf(why, len, "%s", path == RK_PATH_XPMEM ? "one copy, without the kernel" : "one copy, by both sides");
    } else if (rk_conf.cma == RK_CONF_CMA_OFF) {
        path = paths->ring[class];
        snprintf(why, len, "RANK_CMA=off");
    } else if (r[RK_PATH_CMA] == 0) {
        path = paths->ring[class];
        snprintf(why, len, "the kernel refuses CMA");
    } else if (path == RK_PATH_CMA) {
        snprintf(why, len, "one copy; no other is faster by enough");
    } else {
        snprintf(why, len, "%.1fx cma", (double)r[path] / r[RK_PATH_CMA]);
        if (path != paths->alone[attached][class])
            snprintf(why, len, "%.1fx cma; for rank_isend (the sender may compute) %s",
                     (double)r[path] / r[RK_PATH_CMA], rk_path_names[paths->alone[attached][class]]);
    }
    if ((int64_t)rk_path_bytes(class) <= rk_conf.eager_max)
        snprintf(why, len, "only if it cannot leave at once (RANK_EAGER_MAX)");
    return path;
}

static void print_rate(FILE *out, uint32_t rate)
{
    if (rate)
        fprintf(out, " %9.1f", rate / 1e3);
    else
        fprintf(out, " %9s", "-");
}

static void print_table(FILE *out, const struct rk_paths *paths, bool attached)
{
    char why[128], size[16];

    fprintf(out, "  %-8s %-9s %-9s", "from", "takes", "if mapped");
    for (int p = 0; p < RK_PATHS; p++)
        fprintf(out, " %9s", rk_path_names[p]);
    fprintf(out, "  because\n");
    for (int i = 0; i < RK_PATH_CLASSES; i++) {
        enum rk_path path = path_of(paths, i, attached, why, sizeof(why));

        fprintf(out, "  %-8s %-9s %-9s", size_text(rk_path_bytes(i), size), rk_path_names[path],
                asks_mapped() ? forced() : rk_path_names[paths->mapped[i]]);
        for (int p = 0; p < RK_PATHS; p++)
            print_rate(out, attached || !rk_path_attaches((enum rk_path)p) ? paths->rate[i][p] : 0);
        fprintf(out, "  %s\n", why);
    }
}

void info_print_paths(FILE *out)
{
    char machine[RK_PATH_MACHINE_MAX], *file, *expected;
    const char *why = NULL;
    bool attached = rk_xpmem_works(&why);
    struct rk_paths paths;

    rk_paths_machine(machine);
    file = rk_paths_load(&paths, true);
    expected = rk_paths_file(machine);
    fprintf(out, "paths of large messages on a host, GB/s\n");
    fprintf(out, "  machine  %s\n", machine);
    if (file)
        fprintf(out, "  rates    measured here: %s\n", file);
    else
        fprintf(out, "  rates    built in, of another machine perhaps; rankinfo --calibrate measures this one into %s\n",
                expected ? expected : "a file that RANK_PATHS names");
    fprintf(out, "  xpmem    %s%s\n", attached ? "memory of other ranks is attached" : "not used: ", attached ? "" : why);
    fprintf(out, "  assist   %" PRIu32 " ns are added where both sides copy\n", paths.meet);
    fprintf(out, "  \"if mapped\" is for rank_alloc memory, \"takes\" for all other\n");
    print_table(out, &paths, attached);
    free(file);
    free(expected);
}

bool info_calibrate(FILE *out)
{
    char machine[RK_PATH_MACHINE_MAX], *file;
    struct rk_paths paths;
    bool ok;

    rk_paths_machine(machine);
    file = rk_paths_file(machine);
    if (!file) {
        rk_error("there is no place for the table: RANK_PATHS=none, or neither XDG_CACHE_HOME nor HOME "
                 "is set; RANK_PATHS may name a file");
        return false;
    }
    ok = info_measure_paths(&paths) && rk_paths_save(&paths, machine, file) == RANK_OK;
    if (ok)
        fprintf(out, "wrote %s\n", file);
    free(file);
    return ok;
}
