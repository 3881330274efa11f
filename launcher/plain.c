/* plain.c: see plain.h. */
#include "launcher/plain.h"
#include "launcher/needed.h"
#include "lib/base/compiler.h"

#include <fcntl.h>
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

/* Names of functions stand in the file with a NUL behind them, perhaps as the end of a longer one. */
static bool holds_none(const char *data, size_t len)
{
    static const char *const functions[] = {
        "execv",  "execve",      "execveat",     "execvp", "execvpe", "execl",  "execle",  "execlp",
        "fexecve", "posix_spawn", "posix_spawnp", "fork",  "clone",   "system", "wordexp", "popen",
        "dlopen", "dlmopen",     "syscall"};

    for (size_t i = 0; i < RK_ARRAY_LEN(functions); i++) {
        if (memmem(data, len, functions[i], strlen(functions[i]) + 1))
            return false;
    }
    return !memmem(data, len, "PMI_", 4) && !memmem(data, len, "MPI_Init", 8); /* of a static MPI library */
}

bool rk_plain(const char *program, char *const *env)
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
    fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    /* One that is linked statically needs nothing at all: it might hold anything. */
    if (rk_needed_find_in(fd, is_libc, name, sizeof(name)) &&
        !rk_needed_find_in(fd, is_other, name, sizeof(name)) && (data = malloc(SIZE_MAX_READ))) {
        n = pread(fd, data, SIZE_MAX_READ, 0);
        plain = n > 0 && n < SIZE_MAX_READ && holds_none(data, (size_t)n);
    }
    free(data);
    close(fd);
    return plain;
}
