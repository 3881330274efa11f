/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_table.c: choose protocols from rates; format and parse the table. */
#include "lib/channel/shm/proto_table.h"
#include "lib/base/conf.h"
#include "lib/base/fnv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

const struct rk_shm_proto *const rk_shm_protos[RK_PROTOS] = {
    [RK_PROTO_MAPPED] = &rk_shm_proto_mapped,   [RK_PROTO_CMA] = &rk_shm_proto_cma,
    [RK_PROTO_CMA2] = &rk_shm_proto_cma2,       [RK_PROTO_RING] = &rk_shm_proto_ring,
    [RK_PROTO_RING_NT] = &rk_shm_proto_ring_nt, [RK_PROTO_MAPPED2] = &rk_shm_proto_mapped2,
};

_Static_assert(RK_CONF_LARGE_CMA == 1 + RK_PROTO_CMA, "the order of RANK_LARGE's values");

const struct rk_shm_proto *rk_shm_proto_set(void)
{
    return rk_conf.large == RK_CONF_LARGE_AUTO ? NULL : rk_shm_protos[rk_conf.large - 1];
}

/*
 * Measured by rankinfo --calibrate on two cores of an AMD EPYC (Zen 4) in a virtual machine, Linux 6.18; means of
 * the machine's two states, in one of which another core's cached data costs three times as much.
 */
static const uint32_t built_in[RK_PROTO_CLASSES][RK_PROTOS] = {
    {14400, 1850, 1850, 1300, 1200, 0},
    {16200, 3360, 3200, 2200, 5200, 0},
    {21400, 4730, 4400, 2400, 6600, 0},
    {20000, 5470, 7100, 1500, 7200, 0},
    {23800, 7200, 9300, 1800, 10800, 0},
    {24600, 8100, 11900, 2600, 12300, 0},
    {24300, 8100, 11600, 2600, 13400, 0},
    {24900, 7700, 9600, 2900, 14800, 0},
    {17300, 7200, 9000, 3200, 15700, 0},
    {16000, 6100, 9000, 3000, 16000, 0},
    {12100, 4200, 7400, 3100, 14800, 0},
};

/*
 * Two cores of an Intel Xeon with 2 MiB of L2 each, in a virtual machine; medians of nine runs.
 * Nontemporal stores cost more there than they save.
 */
static const uint32_t built_in_intel[RK_PROTO_CLASSES][RK_PROTOS] = {
    {4650, 1700, 1700, 850, 1050, 4500},
    {5450, 2350, 2300, 2700, 2450, 5250},
    {5950, 3150, 3000, 3450, 2850, 6700},
    {6950, 3850, 5050, 4300, 3600, 12950},
    {8400, 4500, 6250, 6150, 4650, 17150},
    {10650, 4900, 8350, 6200, 4200, 19400},
    {10000, 5250, 9000, 7000, 4900, 19300},
    {9000, 5200, 8700, 7150, 5550, 17550},
    {7300, 4650, 8600, 7600, 5500, 14100},
    {7200, 4550, 9300, 7550, 5750, 12250},
    {7300, 4200, 9050, 7300, 5450, 10900},
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

void rk_proto_table_built_in(struct rk_proto_table *table)
{
    bool intel = is_intel(); /* slow in a virtual machine */

    memset(table, 0, sizeof(*table));
    memcpy(table->rate, intel ? built_in_intel : built_in, sizeof(built_in));
    table->meet = intel ? MEET_INTEL : MEET;
    rk_proto_table_choose(table);
}

/*
 * Time of a message of the class. Rates of cooperative protocols were measured with both sides present; otherwise
 * the rendezvous adds its cost.
 */
static uint64_t estimate_ns(const struct rk_proto_table *t, int class, const struct rk_shm_proto *p)
{
    uint32_t rate = t->rate[class][p->id];

    return rate ? rk_proto_bytes(class) * 1000 / rate + (p->needs & RK_NEEDS_SENDER ? t->meet : 0)
                : UINT32_MAX * UINT64_C(1000);
}

/* The better of two. One that needs both sides, or more CPU, must be a tenth faster than one that does not. */
static const struct rk_shm_proto *better_proto(const struct rk_proto_table *t, int class, const struct rk_shm_proto *p,
                                               const struct rk_shm_proto *dearer)
{
    return estimate_ns(t, class, dearer) * 11 < estimate_ns(t, class, p) * 10 ? dearer : p;
}

void rk_proto_table_choose(struct rk_proto_table *t)
{
    for (int i = 0; i < RK_PROTO_CLASSES; i++) {
        const uint32_t *r = t->rate[i];

        t->ring[i] = r[RK_PROTO_RING_NT] > r[RK_PROTO_RING] + r[RK_PROTO_RING] / 10 ? &rk_shm_proto_ring_nt
                                                                                    : &rk_shm_proto_ring;
        t->mapped[i] = better_proto(t, i, &rk_shm_proto_mapped, &rk_shm_proto_mapped2);
        /* In order of CPU cost, least first. */
        t->alone[i] = better_proto(t, i, &rk_shm_proto_cma, &rk_shm_proto_cma2);
        t->best[i] = better_proto(t, i, t->alone[i], t->ring[i]);
    }
}

uint32_t rk_proto_table_nt_from(const struct rk_proto_table *table)
{
    int i = RK_PROTO_CLASSES;

    while (i > 0 && table->ring[i - 1] == &rk_shm_proto_ring_nt)
        i--;
    return i < RK_PROTO_CLASSES ? (uint32_t)rk_proto_bytes(i) : UINT32_MAX;
}

/* ------------------------------------------------------------------------ its text */

#define HEAD "librank paths "
enum { FORM = 4, RATE_MAX = 100000000 };

static uint64_t sum_of(const char *text, size_t len)
{
    return rk_fnv64(RK_FNV64_START, text, len);
}

size_t rk_proto_table_seal(char *text, size_t len)
{
    return len + (size_t)snprintf(text + len, 24, "sum %016" PRIx64 "\n", sum_of(text, len));
}

size_t rk_proto_table_format(const struct rk_proto_table *table, const char *machine, char *text)
{
    size_t n = (size_t)snprintf(text, RK_PROTO_TEXT_MAX, HEAD "%d\n%.*s\nmeet %" PRIu32 "\n", FORM, RK_PROTO_MACHINE_MAX, machine,
                                table->meet < RATE_MAX ? table->meet : RATE_MAX);

    for (int i = 0; i < RK_PROTO_CLASSES; i++) {
        n += (size_t)snprintf(text + n, RK_PROTO_TEXT_MAX - n, "%" PRIu64, rk_proto_bytes(i));
        for (int p = 0; p < RK_PROTOS; p++)
            n += (size_t)snprintf(text + n, RK_PROTO_TEXT_MAX - n, " %" PRIu32,
                                  table->rate[i][p] < RATE_MAX ? table->rate[i][p] : RATE_MAX);
        n += (size_t)snprintf(text + n, RK_PROTO_TEXT_MAX - n, "\n");
    }
    return rk_proto_table_seal(text, n);
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

static bool proto_table_row(struct reader *r, int i, uint32_t rate[RK_PROTOS])
{
    uint32_t bytes;

    if (!proto_table_number(r, ' ', &bytes) || bytes != rk_proto_bytes(i))
        return false;
    for (int p = 0; p < RK_PROTOS; p++) {
        if (!proto_table_number(r, p == RK_PROTOS - 1 ? '\n' : ' ', &rate[p]) || rate[p] > RATE_MAX)
            return false;
        if (rate[p] == 0 && (p == RK_PROTO_MAPPED || p == RK_PROTO_RING || p == RK_PROTO_RING_NT))
            return false; /* these need no permission */
    }
    return true;
}

enum rk_proto_table_parsed rk_proto_table_parse(const char *text, size_t len, const char *machine,
                                    struct rk_proto_table *table)
{
    struct reader r = {text, text + len};
    struct rk_proto_table got = {.measured = true};
    const char *line;
    char sum[32];
    uint32_t form;

    if (len >= RK_PROTO_TEXT_MAX || !word(&r, HEAD) || !proto_table_number(&r, '\n', &form))
        return RK_PROTO_TABLE_DAMAGED;
    if (form != FORM)
        return RK_PROTO_TABLE_OLD;
    line = r.at;
    r.at = memchr(line, '\n', (size_t)(r.end - line));
    if (!r.at)
        return RK_PROTO_TABLE_DAMAGED;
    if ((size_t)(r.at - line) != strlen(machine) || memcmp(line, machine, strlen(machine)) != 0)
        return RK_PROTO_TABLE_FOREIGN;
    r.at++;
    if (!word(&r, "meet ") || !proto_table_number(&r, '\n', &got.meet) || got.meet > RATE_MAX)
        return RK_PROTO_TABLE_DAMAGED;
    for (int i = 0; i < RK_PROTO_CLASSES; i++) {
        if (!proto_table_row(&r, i, got.rate[i]))
            return RK_PROTO_TABLE_DAMAGED;
    }
    snprintf(sum, sizeof(sum), "sum %016" PRIx64 "\n", sum_of(text, (size_t)(r.at - text)));
    if (!word(&r, sum) || r.at != r.end)
        return RK_PROTO_TABLE_DAMAGED;
    rk_proto_table_choose(&got);
    *table = got;
    return RK_PROTO_TABLE_OK;
}
