/* non_mpi.c: see non_mpi.h. */
#include "launcher/compat/non_mpi.h"
#include "launcher/exec/environ.h"
#include "launcher/compat/elf.h"
#include "lib/base/compiler.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE_MAX_READ (256 << 10) /* a larger one is no small tool */

static bool is_libc(const char *name)
{
    return strcmp(name, "libc.so.6") == 0;
}

static bool is_other(const char *name)
{
    return !is_libc(name);
}

/* Do the characters before end, of which there are so many, end in the name of something that could bring in more, or show what
 * is not there? */
static bool ends_in_one(const char *end, size_t before)
{
    static const struct name {
        const char *text;
        size_t len;
    } names[] = {
#define NAME(s) {s, sizeof(s) - 1}
        NAME("execv"),  NAME("execve"),  NAME("execveat"),    NAME("execvp"),       NAME("execvpe"), NAME("execl"),  NAME("execle"),
        NAME("execlp"), NAME("fexecve"), NAME("posix_spawn"), NAME("posix_spawnp"), NAME("fork"),    NAME("clone"),  NAME("system"),
        NAME("popen"),  NAME("wordexp"), NAME("dlopen"),      NAME("dlmopen"),      NAME("syscall"), NAME("environ"),
#undef NAME
    };

    for (const struct name *f = names; f < names + RK_ARRAY_LEN(names); f++) {
        if (f->text[f->len - 1] == end[-1] && f->len <= before && memcmp(end - f->len, f->text, f->len) == 0)
            return true;
    }
    return false;
}

/* Names stand in the file with a NUL behind them, perhaps as the end of a longer one. All are looked for in one
 * pass: this stands between a user and the start of each small tool. */
static bool holds_none(const char *data, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        if (data[i] == '\0' && data[i - 1] >= 'a' && ends_in_one(data + i, i))
            return false;
    }
    return !memmem(data, len, "PMI", 3) && !memmem(data, len, "MPI_Init", 8); /* of a static MPI library */
}

bool xr_plain(const char *program, char *const *env)
{
    char name[64], *data = NULL;
    bool plain = false;
    ssize_t n;
    int fd;

    /* LD_PRELOAD, LD_AUDIT */
    for (; env && *env; env++) {
        if (strncmp(*env, "LD_PRELOAD=", 11) == 0 || strncmp(*env, "LD_AUDIT=", 9) == 0)
            return false;
    }
    if (access("/etc/ld.so.preload", F_OK) == 0)
        return false;
    fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    /* One that is linked statically needs nothing at all: it might hold anything. */
    if (xr_needed_find_in(fd, is_libc, name, sizeof(name)) &&
        !xr_needed_find_in(fd, is_other, name, sizeof(name)) && (data = malloc(SIZE_MAX_READ))) {
        n = pread(fd, data, SIZE_MAX_READ, 0);
        plain = n > 0 && n < SIZE_MAX_READ && holds_none(data, (size_t)n);
    }
    free(data);
    close(fd);
    return plain;
}

/* Relative to where it will start; one that is still to be looked for on its host is not known. */
static bool app_is_plain(const struct xr_job *job, const struct xr_app *app)
{
    char **env, *path;
    bool plain;

    if (!strchr(app->program, '/') || asprintf(&path, "%s/%s", *app->program == '/' ? "" : app->wdir, app->program) < 0)
        return false;
    env = xr_environ_merge(job->env, app->env);
    plain = env && xr_plain(path, env);
    free(env);
    free(path);
    return plain;
}

bool xr_plain_job(const struct xr_job *job)
{
    for (uint32_t i = 0; i < job->napps; i++) {
        if (!app_is_plain(job, &job->apps[i]))
            return false;
    }
    return true;
}
