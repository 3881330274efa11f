/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_files.c: read files and variables that others have written for xrun.
 * Hostfiles, rankfiles, files of variables, hosts of resource managers, programs (the libraries they name), and the slot of the status
 * board that a rank writes. The first byte chooses.
 */
#include "launcher/exec/environ.h"
#include "launcher/util/pack.h"
#include "launcher/alloc/hostlist.h"
#include "launcher/compat/elf.h"
#include "launcher/map/rankfile.h"
#include "lib/base/status_page.h"
#include "lib/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A file that holds the bytes; path names it. */
static int make_file(const uint8_t *data, size_t len, char *path, size_t room)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        abort();
    snprintf(path, room, "/proc/self/fd/%d", fd);
    return fd;
}

/* Each host that was taken has a name, and is found by it. */
static void look_at(struct xr_hostlist *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (!list->host[i].name[0] || xr_hostlist_find(list, list->host[i].name) != i)
            abort();
    }
    xr_hostlist_clear(list);
}

static void hostfile(const uint8_t *data, size_t len)
{
    struct xr_hostlist list = {.n = 0};
    char path[64], err[200];
    int fd = make_file(data, len, path, sizeof(path));

    xr_hostlist_read(&list, path, err, sizeof(err));
    close(fd);
    look_at(&list);
}

/* The second byte: among hosts that were named before, or not. */
static void rankfile(const uint8_t *data, size_t len)
{
    struct xr_hostlist list = {.n = 0};
    struct xr_rankfile file;
    char path[64], err[200];
    int fd;

    if (len < 1)
        return;
    fd = make_file(data + 1, len - 1, path, sizeof(path));
    if (data[0] & 1 && xr_hostlist_parse(&list, "hosta:4,hostb", err, sizeof(err)) == RANK_OK)
        list.source = "--host";
    if (xr_rankfile_read(path, &list, NULL, &file, err, sizeof(err)) == RANK_OK) {
        for (uint32_t i = 0; i < file.n; i++) {
            if (file.pin[i].host >= list.n)
                abort();
        }
    }
    xr_rankfile_clear(&file);
    close(fd);
    look_at(&list);
}

static void variables(const uint8_t *data, size_t len)
{
    char path[64], err[200], **env = NULL;
    int fd = make_file(data, len, path, sizeof(path));

    if (xr_environ_put_file(&env, path, err, sizeof(err))) {
        for (size_t i = 0; env && env[i]; i++) {
            if (!strchr(env[i], '=') || !xr_environ_named(env[i]))
                abort();
        }
    }
    xr_strv_free(env);
    close(fd);
}

static void allocated(void)
{
    struct xr_hostlist list = {.n = 0};
    char err[200];

    xr_hostlist_allocated(&list, err, sizeof(err));
    look_at(&list);
}

/* A line of nodes and one of their slots, as Slurm gives them; or one of pairs, as LSF does. */
static void managers(const uint8_t *data, size_t len)
{
    char text[4096], path[64], *second;
    int fd;

    if (len < 1 || len >= sizeof(text))
        return;
    memcpy(text, data + 1, len - 1);
    text[len - 1] = '\0';
    second = strchr(text, '\n');
    if (second)
        *second++ = '\0';
    switch (data[0] % 3) {
    case 0:
        setenv("SLURM_JOB_NODELIST", text, 1);
        if (second)
            setenv("SLURM_TASKS_PER_NODE", second, 1);
        allocated();
        break;
    case 1:
        setenv("LSB_MCPU_HOSTS", text, 1);
        allocated();
        break;
    default:
        fd = make_file(data + 1, len - 1, path, sizeof(path));
        setenv("PBS_NODEFILE", path, 1);
        allocated();
        close(fd);
    }
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("SLURM_TASKS_PER_NODE");
    unsetenv("LSB_MCPU_HOSTS");
    unsetenv("PBS_NODEFILE");
}

static bool none(const char *name)
{
    return strlen(name) > 255;
}

static void program(const uint8_t *data, size_t len)
{
    char path[64], out[64] = "";
    int fd = make_file(data, len, path, sizeof(path));

    if (xr_elf_fd_needs(fd, none, out, sizeof(out)))
        abort();
    close(fd);
}

static void slot(const uint8_t *data, size_t len)
{
    static struct rk_board_slot s;
    struct rk_board_view view;

    memset((void *)&s, 0, sizeof(s));
    memcpy((void *)&s, data, len < sizeof(s) ? len : sizeof(s));
    if (rk_board_read(&s, &view) && view.state == RK_BOARD_WAITING &&
        (strnlen(view.what.call, RK_BOARD_CALL) == RK_BOARD_CALL || view.what.npeers > INT32_MAX))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const all[])(const uint8_t *data, size_t len) = {hostfile, rankfile, variables,
                                                                   managers, program,  slot};

    rk_log_threshold = -1;
    if (len > 0)
        all[data[0] % 6](data + 1, len - 1);
    return 0;
}
