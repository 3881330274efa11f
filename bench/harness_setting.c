/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness_setting.c: see harness_setting.h.
 *
 * The public interface names the channel only. Devices and protocols come from rankinfo, which prints the library's
 * own tables; rank 0 runs the one that lies beside this program, once, before anything is measured.
 */
#include "bench/harness_setting.h"

#include "bench/backend.h"
#include "bench/harness_ctl.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Print "0-3,8" for a set of n, with the members for which in(i) holds. */
static void put_ranges(FILE *out, int n, bool (*in)(const void *arg, int i), const void *arg)
{
    const char *before = "";

    for (int i = 0, last; i < n; i = last + 1) {
        last = i;
        if (!in(arg, i))
            continue;
        while (last + 1 < n && in(arg, last + 1))
            last++;
        fprintf(out, last > i ? "%s%d-%d" : "%s%d", before, i, last);
        before = ",";
    }
}

static bool cpu_in(const void *set, int cpu)
{
    return CPU_ISSET(cpu, (const cpu_set_t *)set);
}

static void fill_place(struct bench_place *place)
{
    cpu_set_t set;
    FILE *out;

    memset(place, 0, sizeof(*place));
    if (gethostname(place->host, sizeof(place->host) - 1))
        snprintf(place->host, sizeof(place->host), "unknown");
    be_device_text(place->gpus, sizeof(place->gpus));
    be_nic_text(place->nics, sizeof(place->nics));
    snprintf(place->cpus, sizeof(place->cpus), "unknown");
    if (sched_getaffinity(0, sizeof(set), &set))
        return;
    out = fmemopen(place->cpus, sizeof(place->cpus), "w");
    if (!out)
        return;
    put_ranges(out, CPU_SETSIZE, cpu_in, &set);
    fclose(out);
}

/* ------------------------------------------------------------- hosts and placement */

struct alike {
    const struct bench_place *place;
    int first;
    enum group_by { BY_HOST, BY_CPUS, BY_GPUS, BY_NICS } by;
};

static const char *place_text(const struct bench_place *place, enum group_by by)
{
    return by == BY_CPUS ? place->cpus : by == BY_GPUS ? place->gpus : by == BY_NICS ? place->nics : place->host;
}

static bool harness_setting_is_alike(const void *arg, int r)
{
    const struct alike *a = arg;
    const struct bench_place *x = &a->place[a->first], *y = &a->place[r];

    return strcmp(place_text(x, a->by), place_text(y, a->by)) == 0;
}

/* One group of ranks for each host, set of processors, or set of GPUs. */
static char *put_groups(const struct bench_place *place, int n, enum group_by by)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct alike group = {.place = place, .by = by};

    if (!out)
        return NULL;
    for (int r = 0, members; r < n; r++) {
        group.first = r;
        for (members = 0; members < r && !harness_setting_is_alike(&group, members); members++)
            ;
        if (members < r) /* a rank before has it */
            continue;
        for (int i = members = 0; i < n && members < 2; i++)
            members += harness_setting_is_alike(&group, i);
        fputs(r ? "; " : "", out);
        if (by == BY_HOST)
            fprintf(out, "%s: ", place[r].host);
        fputs(members > 1 ? "ranks " : "rank ", out);
        put_ranges(out, n, harness_setting_is_alike, &group);
        if (by != BY_HOST)
            fprintf(out, by == BY_CPUS ? ": cpus %s" : ": %s", place_text(&place[r], by));
    }
    return fclose(out) ? (free(text), NULL) : text;
}

static int count_hosts(const struct bench_place *place, int n)
{
    int hosts = 0;

    for (int r = 0, before; r < n; r++) {
        for (before = 0; before < r && strcmp(place[before].host, place[r].host) != 0; before++)
            ;
        hosts += before == r;
    }
    return hosts;
}

char *bench_setting_hosts(const struct bench_place *place, int n)
{
    return put_groups(place, n, BY_HOST);
}

char *bench_setting_placement(const struct bench_place *place, int n)
{
    return put_groups(place, n, BY_CPUS);
}

/* "" if no rank has any. */
static char *put_devices(const struct bench_place *place, int n, enum group_by by)
{
    for (int r = 0; r < n; r++) {
        if (place_text(&place[r], by)[0])
            return put_groups(place, n, by);
    }
    return strdup("");
}

char *bench_setting_gpus(const struct bench_place *place, int n)
{
    return put_devices(place, n, BY_GPUS);
}

char *bench_setting_nics(const struct bench_place *place, int n)
{
    return put_devices(place, n, BY_NICS);
}

/* -------------------------------------------------------------- transport and device */

/* The channels from rank 0 to the others, or to itself if it is alone. */
static void name_channels(char *out, size_t len)
{
    enum { CHANNELS = 4 };
    static const char *const order[CHANNELS] = {"self", "shm", "ucx", "tcp"};
    bool used[CHANNELS] = {false};

    for (int r = be_size() > 1; r < be_size(); r++) {
        for (int i = 0; i < CHANNELS; i++)
            used[i] = used[i] || strcmp(be_channel(r), order[i]) == 0;
    }
    out[0] = '\0';
    for (int i = 0; i < CHANNELS; i++) {
        if (used[i])
            snprintf(out + strlen(out), len - strlen(out), "%s%s", out[0] ? "+" : "", order[i]);
    }
}

/* All that rankinfo prints; caller frees. NULL: there is no rankinfo, or no memory. */
static char *run_rankinfo(const char *options)
{
    char self[PATH_MAX], tool[PATH_MAX + 16] = "", command[PATH_MAX + 128], buf[4096], *text = NULL, *slash;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    size_t len = 0, got;
    FILE *in, *out;

    if (n <= 0 || memchr(self, '\'', (size_t)n))
        return NULL;
    self[n] = '\0';
    for (int up = 0; up < 2 && (slash = strrchr(self, '/')); up++) {
        *slash = '\0';
        snprintf(tool, sizeof(tool), "%s/rankinfo", self);
        if (access(tool, X_OK) == 0)
            break;
        slash = strrchr(self, '/');
        if (!slash || strcmp(slash, "/.libs") != 0) /* in a build folder libtool's programs lie one level below */
            return NULL;
    }
    snprintf(command, sizeof(command), "'%s' %s </dev/null 2>/dev/null", tool, options);
    in = popen(command, "re");
    if (!in)
        return NULL;
    out = open_memstream(&text, &len);
    while (out && (got = fread(buf, 1, sizeof(buf), in)) > 0)
        fwrite(buf, 1, got, out);
    pclose(in);
    if (out)
        fclose(out);
    return text;
}

static int64_t harness_setting_size_of(const char *text, const char *unit)
{
    int64_t n = strtoll(text, NULL, 10);

    return *unit == 'K' ? n << 10 : *unit == 'M' ? n << 20 : *unit == 'G' ? n << 30 : n;
}

static void put_size(FILE *out, int64_t bytes)
{
    if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
        fprintf(out, "%lldM", (long long)(bytes >> 20));
    else if (bytes >= 1 << 10 && bytes % (1 << 10) == 0)
        fprintf(out, "%lldK", (long long)(bytes >> 10));
    else
        fprintf(out, "%lld", (long long)bytes);
}

char *bench_setting_shm(const char *rankinfo, int mapped)
{
    const char *at = strstr(rankinfo, "RANK_EAGER_MAX = ");
    int64_t eager = 0, bytes;
    char *text = NULL, number[16], unit[8], path[2][16], last[16] = "";
    size_t len = 0;
    FILE *out;

    if (at) {
        at += strlen("RANK_EAGER_MAX = ");
        eager = harness_setting_size_of(at, at + strspn(at, "0123456789"));
    }
    out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    for (at = rankinfo; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        if (sscanf(at, "  %15[0-9] %7[KMG]iB %15[a-z0-9_] %15[a-z0-9_] ", number, unit, path[0], path[1]) != 4)
            continue;
        bytes = harness_setting_size_of(number, unit);
        if (bytes * 2 <= eager || strcmp(path[mapped != 0], last) == 0)
            continue;
        if (!last[0] && eager) {
            fputs("eager up to ", out);
            put_size(out, eager);
        }
        fprintf(out, "%s%s %s ", last[0] || eager ? ", " : "", path[mapped != 0], bytes > eager ? "from" : "above");
        put_size(out, bytes > eager ? bytes : eager);
        snprintf(last, sizeof(last), "%s", path[mapped != 0]);
    }
    return fclose(out) || !last[0] ? (free(text), NULL) : text;
}

/* rankinfo's line of devices, of which UCX takes those that reach the peer. */
static void put_rails(FILE *out, const char *rankinfo)
{
    const char *at = strstr(rankinfo, "rails  ");

    at = at ? at + strlen("rails  ") : "unknown device";
    fprintf(out, "ucx: %.*s", (int)strcspn(at, "\n"), at);
}

void bench_setting_far(const char *rankinfo, char *out, size_t room)
{
    static const char head[] = "paths of messages from device memory on a host\n  cuda ";
    const char *at = strstr(rankinfo, head);

    out[0] = '\0';
    if (!at)
        return;
    at += sizeof(head) - 1;
    at += strspn(at, " ");
    if (strncmp(at, "not used", strlen("not used")) != 0)
        snprintf(out, room, "%.*s", (int)strcspn(at, "\n"), at);
}

static char *describe_device(const char *channel, int mapped, int far)
{
    bool shm = strstr(channel, "shm") != NULL, ucx = strstr(channel, "ucx") != NULL;
    char *text = NULL, *found = NULL, *protocols = NULL, way[256];
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    if (shm || ucx)
        found = run_rankinfo(!ucx ? "--conf --paths" : shm ? "--conf --paths --channels --load" : "--channels --load");
    if (found && shm && (protocols = bench_setting_shm(found, mapped)))
        fprintf(out, "shm: %s", protocols);
    if (found && shm && far) {
        bench_setting_far(found, way, sizeof(way));
        if (way[0])
            fprintf(out, "%scuda: %s", protocols ? "; " : "", way);
    }
    if (found && ucx) {
        fputs(protocols ? "; " : "", out);
        put_rails(out, found);
    }
    free(protocols);
    free(found);
    return fclose(out) ? (free(text), NULL) : text;
}

int bench_setting_collect(struct bench_setting *s, int mapped, int far)
{
    struct bench_place mine, *all;
    time_t now = time(NULL);
    struct tm tm;

    memset(s, 0, sizeof(*s));
    strftime(s->date, sizeof(s->date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    fill_place(&mine);
    all = be_rank() == 0 ? calloc((size_t)be_size(), sizeof(*all)) : NULL;
    if (be_rank() == 0 && !all)
        return -1;
    bench_ctl_gather(&mine, sizeof(mine), all);
    if (be_rank())
        return 0;
    s->hosts = bench_setting_hosts(all, be_size());
    s->nhosts = count_hosts(all, be_size());
    s->placement = bench_setting_placement(all, be_size());
    s->gpus = bench_setting_gpus(all, be_size());
    s->nics = bench_setting_nics(all, be_size());
    free(all);
    name_channels(s->channel, sizeof(s->channel));
    s->device = describe_device(s->channel, mapped, far);
    return s->hosts && s->placement && s->gpus && s->nics && s->device ? 0 : -1;
}

void bench_setting_free(struct bench_setting *s)
{
    free(s->hosts);
    free(s->placement);
    free(s->gpus);
    free(s->nics);
    free(s->device);
    memset(s, 0, sizeof(*s));
}
