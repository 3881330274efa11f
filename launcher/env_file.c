/*
 * env_file.c: a file of variables, NAME=value a line. See environ.h.
 *
 * A value is what follows = up to the end of the line, as it stands: there are
 * no quotes and nothing is replaced in it. Lines that are empty or begin with #
 * are left out.
 */
#include "launcher/environ.h"

#include <errno.h>
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

static bool take_line(struct lines *l, char *line, size_t len, char ***env)
{
    if (strlen(line) < len) {
        complain(l, "the line holds a NUL byte");
        return true;
    }
    line[strcspn(line, "\n")] = '\0';
    if (!line[strspn(line, " \t")] || line[0] == '#')
        return true;
    if (!rk_environ_named(line) || !strchr(line, '='))
        complain(l, "write NAME=value, with a name of letters, digits and _");
    else if (rk_environ_own(line))
        complain(l, "xrun itself sets that variable for each rank");
    else
        return rk_environ_put(env, line);
    return true;
}

bool rk_environ_put_file(char ***env, const char *path, char *err, size_t errlen)
{
    struct lines l = {path, 0, 0, err, errlen};
    FILE *f = fopen(path, "re");
    bool memory = true;
    char *line = NULL;
    size_t room = 0;
    ssize_t len;

    if (!f) {
        snprintf(err, errlen, "--env-file %s: %s", path, strerror(errno));
        return false;
    }
    while (memory && (len = getline(&line, &room, f)) >= 0) {
        l.number++;
        memory = take_line(&l, line, (size_t)len, env);
    }
    if (ferror(f) && l.bad++ == 0)
        snprintf(err, errlen, "--env-file %s: %s", path, strerror(errno));
    else if (!memory && l.bad++ == 0)
        snprintf(err, errlen, "out of memory");
    free(line);
    fclose(f);
    if (l.bad > 1) {
        size_t n = strlen(err);
        snprintf(err + n, errlen - n, " (and %d more)", l.bad - 1);
    }
    return l.bad == 0;
}
