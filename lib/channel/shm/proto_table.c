/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_table.c: choose protocols from rates; format and parse the table. */
#include "lib/channel/shm/proto_table.h"
#include "lib/base/fnv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

const char *const rk_path_names[RK_PATHS] = {"mapped", "cma",   "both", "ring",
                                            "streamed", "xpmem", "xboth", "mboth"};

/*
 * Measured by rankinfo --calibrate on two cores of an AMD EPYC (Zen 4) in a virtual machine, Linux 6.18; means of
 * the machine's two states, in one of which another core's cached data costs three times as much. XPMEM is missing
 * there: its rates are those of mapped memory.
 */
static const uint32_t built_in[RK_PATH_CLASSES][RK_PATHS] = {
    {14400, 1850, 1850, 1300, 1200, 14400, 0, 0},
    {16200, 3360, 3200, 2200, 5200, 16200, 0, 0},
    {21400, 4730, 4400, 2400, 6600, 21400, 0, 0},
    {20000, 5470, 7100, 1500, 7200, 20000, 0, 0},
    {23800, 7200, 9300, 1800, 10800, 23800, 0, 0},
    {24600, 8100, 11900, 2600, 12300, 24600, 0, 0},
    {24300, 8100, 11600, 2600, 13400, 24300, 0, 0},
    {24900, 7700, 9600, 2900, 14800, 24900, 0, 0},
    {17300, 7200, 9000, 3200, 15700, 17300, 0, 0},
    {16000, 6100, 9000, 3000, 16000, 16000, 0, 0},
    {12100, 4200, 7400, 3100, 14800, 12100, 0, 0},
};

/*
 * Two cores of an Intel Xeon with 2 MiB of L2 each, in a virtual machine; medians of nine runs, XPMEM by the
 * tests' stand-in. Nontemporal stores cost more there than they save.
 */
static const uint32_t built_in_intel[RK_PATH_CLASSES][RK_PATHS] = {
    {4650, 1700, 1700, 850, 1050, 2900, 2750, 4500},
    {5450, 2350, 2300, 2700, 2450, 4050, 3800, 5250},
    {5950, 3150, 3000, 3450, 2850, 5550, 4750, 6700},
    {6950, 3850, 5050, 4300, 3600, 6800, 8900, 12950},
    {8400, 4500, 6250, 6150, 4650, 8550, 11050, 17150},
    {10650, 4900, 8350, 6200, 4200, 9250, 13800, 19400},
    {10000, 5250, 9000, 7000, 4900, 9500, 16950, 19300},
    {9000, 5200, 8700, 7150, 5550, 9350, 17000, 17550},
    {7300, 4650, 8600, 7600, 5500, 8000, 16550, 14100},
    {7200, 4550, 9300, 7550, 5750, 7500, 17000, 12250},
    {7300, 4200, 9050, 7300, 5450, 7850, 15650, 10900},
};

/*
 * Cost of a rendezvous of both sides, in ns. AMD: from the time that 64 KiB take in its slow state; Intel: one
 * message each way.
 */
enum { MEET = 3000, MEET_INTEL = 550 };

static bool is_intel(void)
{
#if defined(__x86_64__)
    unsigned int most, b, c, d;

    __cpuid(0, most, b, c, d);
    return b == signature_INTEL_ebx;
#else
    return false;
#endif
}

void rk_paths_built_in(struct rk_paths *paths)
{
    bool intel = is_intel(); /* slow in a virtual machine */

    memset(paths, 0, sizeof(*paths));
    memcpy(paths->rate, intel ? built_in_intel : built_in, sizeof(built_in));
    paths->meet = intel ? MEET_INTEL : MEET;
    rk_paths_choose(paths);
}

/*
 * Time of a message of the class. Rates of cooperative protocols were measured with both sides present; otherwise
 * the rendezvous adds its cost.
 */
static uint64_t estimate_ns(const struct rk_paths *paths, int class, enum rk_path path)
{
    uint32_t rate = paths->rate[class][path];

    return rate ? rk_path_bytes(class) * 1000 / rate + (rk_path_needs_both(path) ? paths->meet : 0) : UINT32_MAX * UINT64_C(1000);
}

/* A protocol that needs both sides, or more CPU, must be a tenth faster than one that does not. */
static bool is_worth(const struct rk_paths *paths, int class, enum rk_path path, enum rk_path than)
{
    return estimate_ns(paths, class, path) * 11 < estimate_ns(paths, class, than) * 10;
}

/* In order of CPU cost, least first. */
static void choose(struct rk_paths *paths, int i, bool attached)
{
    const uint32_t *r = paths->rate[i];
    enum rk_path best = attached && r[RK_PATH_XPMEM] > r[RK_PATH_CMA] ? RK_PATH_XPMEM : RK_PATH_CMA;

    if (is_worth(paths, i, RK_PATH_BOTH, best))
        best = RK_PATH_BOTH;
    if (attached && is_worth(paths, i, RK_PATH_XBOTH, best))
        best = RK_PATH_XBOTH;
    paths->alone[attached][i] = (unsigned char)best;
    if (is_worth(paths, i, (enum rk_path)paths->ring[i], best))
        best = (enum rk_path)paths->ring[i];
    paths->best[attached][i] = (unsigned char)best;
}

void rk_paths_choose(struct rk_paths *paths)
{
    for (int i = 0; i < RK_PATH_CLASSES; i++) {
        const uint32_t *r = paths->rate[i];

        paths->ring[i] = r[RK_PATH_STREAMED] > r[RK_PATH_RING] + r[RK_PATH_RING] / 10
                             ? RK_PATH_STREAMED
                             : RK_PATH_RING;
        paths->mapped[i] = is_worth(paths, i, RK_PATH_MBOTH, RK_PATH_MAPPED) ? RK_PATH_MBOTH : RK_PATH_MAPPED;
        choose(paths, i, false);
        choose(paths, i, true);
    }
}

uint32_t rk_paths_streamed_from(const struct rk_paths *paths)
{
    int i = RK_PATH_CLASSES;

    while (i > 0 && paths->ring[i - 1] == RK_PATH_STREAMED)
        i--;
    return i < RK_PATH_CLASSES ? (uint32_t)rk_path_bytes(i) : UINT32_MAX;
}

/* ------------------------------------------------------------------------ its text */

#define HEAD "librank paths "
enum { FORM = 3, RATE_MAX = 100000000 };

static uint64_t sum_of(const char *text, size_t len)
{
    return rk_fnv64(RK_FNV64_START, text, len);
}

size_t rk_paths_seal(char *text, size_t len)
{
    return len + (size_t)snprintf(text + len, 24, "sum %016" PRIx64 "\n", sum_of(text, len));
}

size_t rk_paths_format(const struct rk_paths *paths, const char *machine, char *text)
{
    size_t n = (size_t)snprintf(text, RK_PATH_TEXT_MAX, HEAD "%d\n%.*s\nmeet %" PRIu32 "\n", FORM, RK_PATH_MACHINE_MAX, machine,
                                paths->meet < RATE_MAX ? paths->meet : RATE_MAX);

    for (int i = 0; i < RK_PATH_CLASSES; i++) {
        n += (size_t)snprintf(text + n, RK_PATH_TEXT_MAX - n, "%" PRIu64, rk_path_bytes(i));
        for (int p = 0; p < RK_PATHS; p++)
            n += (size_t)snprintf(text + n, RK_PATH_TEXT_MAX - n, " %" PRIu32,
                                  paths->rate[i][p] < RATE_MAX ? paths->rate[i][p] : RATE_MAX);
        n += (size_t)snprintf(text + n, RK_PATH_TEXT_MAX - n, "\n");
    }
    return rk_paths_seal(text, n);
}

struct reader {
    const char *at, *end;
};

static bool word(struct reader *r, const char *w)
{
    size_t n = strlen(w);

    if ((size_t)(r->end - r->at) < n || memcmp(r->at, w, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* Parse a decimal number of at most 9 digits and its terminator. */
static bool proto_table_number(struct reader *r, char ends, uint32_t *v)
{
    int digits = 0;

    for (*v = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9' && digits < 9; r->at++, digits++)
        *v = *v * 10 + (uint32_t)(*r->at - '0');
    return digits > 0 && r->at < r->end && *r->at++ == ends;
}

static bool proto_table_row(struct reader *r, int i, uint32_t rate[RK_PATHS])
{
    uint32_t bytes;

    if (!proto_table_number(r, ' ', &bytes) || bytes != rk_path_bytes(i))
        return false;
    for (int p = 0; p < RK_PATHS; p++) {
        if (!proto_table_number(r, p == RK_PATHS - 1 ? '\n' : ' ', &rate[p]) || rate[p] > RATE_MAX)
            return false;
        if (rate[p] == 0 && (p == RK_PATH_MAPPED || p == RK_PATH_RING || p == RK_PATH_STREAMED))
            return false; /* these need no permission */
    }
    return true;
}

enum rk_paths_parsed rk_paths_parse(const char *text, size_t len, const char *machine,
                                    struct rk_paths *paths)
{
    struct reader r = {text, text + len};
    struct rk_paths got = {.measured = true};
    const char *line;
    char sum[32];
    uint32_t form;

    if (len >= RK_PATH_TEXT_MAX || !word(&r, HEAD) || !proto_table_number(&r, '\n', &form))
        return RK_PATHS_DAMAGED;
    if (form != FORM)
        return RK_PATHS_OLD;
    line = r.at;
    r.at = memchr(line, '\n', (size_t)(r.end - line));
    if (!r.at)
        return RK_PATHS_DAMAGED;
    if ((size_t)(r.at - line) != strlen(machine) || memcmp(line, machine, strlen(machine)) != 0)
        return RK_PATHS_FOREIGN;
    r.at++;
    if (!word(&r, "meet ") || !proto_table_number(&r, '\n', &got.meet) || got.meet > RATE_MAX)
        return RK_PATHS_DAMAGED;
    for (int i = 0; i < RK_PATH_CLASSES; i++) {
        if (!proto_table_row(&r, i, got.rate[i]))
            return RK_PATHS_DAMAGED;
    }
    snprintf(sum, sizeof(sum), "sum %016" PRIx64 "\n", sum_of(text, (size_t)(r.at - text)));
    if (!word(&r, sum) || r.at != r.end)
        return RK_PATHS_DAMAGED;
    rk_paths_choose(&got);
    *paths = got;
    return RK_PATHS_OK;
}
