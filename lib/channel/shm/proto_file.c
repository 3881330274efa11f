/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proto_file.c: load and save the table of proto_table.h.
 *
 * The file is the one in RANK_PATHS, or one in the user's cache. The cache name contains a hash of what the table
 * is valid for, so machines that share a home directory use different files.
 */
#include "lib/base/conf.h"
#include "lib/base/fnv.h"
#include "lib/base/log.h"
#include "lib/channel/shm/proto_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* CPU model as the processor reports it. */
static void processor(char *name, size_t len)
{
#if defined(__x86_64__)
    unsigned int r[12];

    /* Without a check for support, which all of these have: in a virtual machine each CPUID takes 12 us. */
    for (unsigned int i = 0; i < 3; i++)
        __cpuid(0x80000002 + i, r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]);
    snprintf(name, len, "%.*s", (int)sizeof(r), (const char *)r);
#else
    /* The first kilobyte covers the first core, with its model in a few lines. */
    int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, name, len - 1) : 0;

    name[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
#endif
}

void rk_proto_table_machine(char machine[RK_PROTO_MACHINE_MAX])
{
    struct utsname u;
    char cpu[128];

    processor(cpu, sizeof(cpu));
    if (uname(&u))
        memset(&u, 0, sizeof(u));
    snprintf(machine, RK_PROTO_MACHINE_MAX, "%s, %.64s %.64s, librank %s", cpu, u.sysname, u.release,
             rank_version());
    for (char *c = machine; *c; c++) { /* keep it one line of plain text */
        if (*c < ' ' || *c > '~')
            *c = ' ';
    }
}

char *rk_proto_table_file(const char *machine)
{
    const char *cache = rk_env("XDG_CACHE_HOME"), *home = rk_env("HOME");
    uint32_t h;
    char *file = NULL;

    if (strcmp(rk_conf.paths, "none") == 0)
        return NULL;
    if (*rk_conf.paths)
        return strdup(rk_conf.paths);
    h = rk_fnv32(RK_FNV32_START, machine, strlen(machine));
    if (cache && *cache == '/') {
        if (asprintf(&file, "%s/librank/paths-%08x", cache, h) < 0)
            return NULL;
    } else if (home && *home == '/') {
        if (asprintf(&file, "%s/.cache/librank/paths-%08x", home, h) < 0)
            return NULL;
    }
    return file;
}

/* NULL, or the reason why the file is unusable. A missing file is no error. */
static const char *read_table(const char *file, const char *machine, struct rk_proto_table *table)
{
    char text[RK_PROTO_TEXT_MAX];
    const char *why = NULL;
    struct stat st;
    size_t len = 0;
    ssize_t n;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return errno == ENOENT && !*rk_conf.paths ? NULL : strerror(errno);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        why = "not a plain file";
    else if (st.st_uid != geteuid() && st.st_uid != 0)
        why = "it belongs to another user";
    while (!why && len < sizeof(text)) {
        n = read(fd, text + len, sizeof(text) - len);
        if (n < 0)
            why = strerror(errno);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    close(fd);
    if (why)
        return why;
    switch (rk_proto_table_parse(text, len, machine, table)) {
    case RK_PROTO_TABLE_OK:
        return NULL;
    case RK_PROTO_TABLE_FOREIGN:
        return "it is of another machine, kernel or version";
    case RK_PROTO_TABLE_OLD:
        return "it is of another version of librank";
    default:
        return "it is damaged";
    }
}

char *rk_proto_table_load(struct rk_proto_table *table, bool say)
{
    char machine[RK_PROTO_MACHINE_MAX], *file;
    const char *why;

    rk_proto_table_built_in(table);
    if (strcmp(rk_conf.paths, "none") == 0)
        return NULL;
    rk_proto_table_machine(machine);
    file = rk_proto_table_file(machine);
    if (!file)
        return NULL;
    why = read_table(file, machine, table);
    if (why && say)
        rk_warn("the table of paths in %s is not used: %s; rankinfo --calibrate measures a new one",
                file, why);
    if (table->measured)
        return file;
    free(file);
    return NULL;
}

/* ------------------------------------------------------------------------- writing */

/* Create the directories above the file. */
static bool make_folders(char *file)
{
    for (char *c = strchr(file + 1, '/'); c; c = strchr(c + 1, '/')) {
        *c = '\0';
        if (mkdir(file, 0777) && errno != EEXIST) {
            int e = errno;
            *c = '/';
            errno = e;
            return false;
        }
        *c = '/';
    }
    return true;
}

static bool write_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
    }
    return true;
}

rank_status_t rk_proto_table_save(const struct rk_proto_table *table, const char *machine, const char *file)
{
    char text[RK_PROTO_TEXT_MAX], *name = strdup(file), *temporary = NULL;
    size_t len = rk_proto_table_format(table, machine, text);
    bool ok = false;
    int fd = -1, e;

    if (name && asprintf(&temporary, "%s.XXXXXX", file) < 0)
        temporary = NULL;
    if (!temporary)
        errno = ENOMEM;
    else if (make_folders(name) && (fd = mkostemp(temporary, O_CLOEXEC)) >= 0) {
        ok = write_all(fd, text, len) && fchmod(fd, 0644) == 0;
        ok = close(fd) == 0 && ok && rename(temporary, file) == 0;
        e = errno;
        if (!ok)
            unlink(temporary);
        errno = e;
    }
    if (!ok)
        rk_error("cannot write the table of paths to %s: %m; RANK_PATHS may name another file", file);
    free(temporary);
    free(name);
    return ok ? RANK_OK : RANK_ERR_SYSTEM;
}
