/*
 * env_file.c: a file of variables, NAME=value a line. See environ.h.
 *
 * A value is what follows = up to the end of the line, as it stands: there are
 * no quotes and nothing is replaced in it. Lines that are empty or begin with #
 * are left out. A carriage return before the end of a line belongs to the end.
 */
#include "launcher/exec/environ.h"
#include "launcher/util/text_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lines {
    const char *path;
    int number, bad; /* bad: how many are */
    char *err;
    size_t errlen;
};

/* The first bad one is said, and how many there are in all. */
static void complain(struct lines *l, const char *what)
{
    if (l->bad++ == 0)
        snprintf(l->err, l->errlen, "--env-file %s:%d: %s", l->path, l->number, what);
}

static bool take_line(struct lines *l, char *line, bool nul, char ***env)
{
    if (nul) {
        complain(l, "the line holds a NUL byte");
        return true;
    }
    if (!line[strspn(line, " \t")] || line[0] == '#')
        return true;
    if (!xr_environ_named(line) || !strchr(line, '='))
        complain(l, "write NAME=value, with a name of letters, digits and _");
    else if (xr_environ_own(line))
        complain(l, "xrun itself sets that variable for each rank");
    else
        return xr_environ_put(env, line);
    return true;
}

bool xr_environ_put_file(char ***env, const char *path, char *err, size_t errlen)
{
    struct lines l = {path, 0, 0, err, errlen};
    struct xr_text_file f;
    bool memory = true;
    char *line, why[256];

    if (!xr_text_file_open(path, &f, why, sizeof(why))) {
        snprintf(err, errlen, "--env-file %s: %s", path, why);
        xr_text_file_close(&f);
        return false;
    }
    while (memory && (line = xr_text_file_line(&f))) {
        l.number = (int)f.number;
        memory = take_line(&l, line, f.nul, env);
    }
    if (!memory && l.bad++ == 0)
        snprintf(err, errlen, "out of memory");
    if (!xr_text_file_close(&f) && l.bad++ == 0)
        snprintf(err, errlen, "--env-file %s: it cannot be read to its end", path);
    if (l.bad > 1) {
        size_t n = strlen(err);
        snprintf(err + n, errlen - n, " (and %d more)", l.bad - 1);
    }
    return l.bad == 0;
}
