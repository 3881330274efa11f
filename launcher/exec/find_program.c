/* SPDX-License-Identifier: BSD-3-Clause */
/* find_program.c: see find_program.h. */
#include "launcher/exec/find_program.h"
#include "lib/base/conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Return whether the path has a part . or .. */
static bool has_dots(const char *path)
{
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if ((n == 1 || n == 2) && strncmp(p, "..", n) == 0)
            return true;
        p += n;
        p += strspn(p, "/");
    }
    return false;
}

/* Return the current directory as the shell names it: symbolic links may differ between hosts. */
static char *here_by_name(void)
{
    const char *pwd = rk_env("PWD");
    struct stat named, real;

    if (pwd && pwd[0] == '/' && !has_dots(pwd) && stat(pwd, &named) == 0 && stat(".", &real) == 0 &&
        named.st_dev == real.st_dev && named.st_ino == real.st_ino)
        return strdup(pwd);
    return realpath(".", NULL);
}

/* Make a path absolute, and remove . and .. as far as possible here. */
static char *absolute(const char *dir)
{
    char *base = dir && dir[0] == '/' ? NULL : here_by_name(), *path = NULL, *real;
    size_t len;

    if (!dir)
        return base;
    if (dir[0] == '/')
        path = strdup(dir);
    else if (!base || asprintf(&path, "%s/%s", strcmp(base, "/") == 0 ? "" : base, dir) < 0)
        path = NULL;
    free(base);
    real = path && has_dots(path) ? realpath(path, NULL) : NULL;
    if (real) {
        free(path);
        path = real;
    }
    for (len = path ? strlen(path) : 0; len > 1 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    return path;
}

/* Return 0, or errno. */
static int why_not_enter(const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return errno;
    return !S_ISDIR(st.st_mode) ? ENOTDIR : access(path, X_OK) ? errno : 0;
}

char *xr_program_wdir(const char *dir, bool here, char *err, size_t errlen)
{
    char *path = absolute(dir);
    struct stat st;
    int why = path ? why_not_enter(path) : errno;

    if (path && (why == 0 || !here))
        return path;
    if (path && why == ENOTDIR && stat(path, &st) == 0)
        snprintf(err, errlen, "the working directory %s is not a directory", path);
    else if (path && why == EACCES)
        snprintf(err, errlen, "the working directory %s cannot be entered: %s", path, strerror(why));
    else
        snprintf(err, errlen, "the working directory %s: %s%s", dir ? dir : ". (where xrun is)", strerror(why),
                 dir ? "; give one that exists to --wdir" : "");
    free(path);
    return NULL;
}

/* Return 0 if the path is executable, else errno; other errors take precedence over ENOENT. */
static int find_program_why_not(const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return errno == ENOTDIR ? ENOENT : errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (!S_ISREG(st.st_mode))
        return EACCES;
    return access(path, X_OK) ? errno : 0;
}

/* Return dir/name. dir may be empty or relative to base. */
static char *find_program_join(const char *base, const char *dir, size_t dirlen, const char *name)
{
    char *path;

    if (dirlen && dir[0] == '/') {
        if (asprintf(&path, "%.*s/%s", (int)dirlen, dir, name) < 0)
            return NULL;
    } else if (asprintf(&path, "%s/%.*s%s%s", base, (int)dirlen, dir, dirlen ? "/" : "", name) <
               0) {
        return NULL;
    }
    return path;
}

static const char *reason(int why)
{
    switch (why) {
    case EISDIR:
        return "it is a directory";
    case EACCES:
        return "it is not executable for you (chmod +x?)";
    default:
        return strerror(why);
    }
}

/* Try one path. Keeps the first that exists but is not executable. */
static char *try_path(char *path, char **bad, int *why)
{
    int w;

    if (!path)
        return NULL;
    w = find_program_why_not(path);
    if (w == 0)
        return path;
    if (w != ENOENT && !*bad) {
        *bad = path;
        *why = w;
    } else {
        free(path);
    }
    return NULL;
}

/* Return the path in the first directory of list that has name. */
static char *search(const char *list, const char *wdir, const char *name, char **bad, int *why)
{
    for (;;) {
        size_t n = strcspn(list, ":");
        char *found = try_path(find_program_join(wdir, list, n, name), bad, why);
        if (found || !list[n])
            return found;
        list += n + 1;
    }
}

char *xr_program_path(const char *name, const char *wdir)
{
    return name[0] == '/' || !strchr(name, '/') ? strdup(name) : find_program_join(wdir, "", 0, name);
}

char *xr_program_find(const char *name, const char *dirs, const char *path, const char *wdir,
                      char *err, size_t errlen, int *exit_code)
{
    char *bad = NULL, *found = NULL;
    int why = ENOENT;

    if (strchr(name, '/')) {
        found = try_path(name[0] == '/' ? strdup(name) : find_program_join(wdir, "", 0, name), &bad, &why);
    } else {
        if (dirs)
            found = search(dirs, wdir, name, &bad, &why);
        if (!found)
            found = search(path ? path : "/usr/local/bin:/usr/bin:/bin", wdir, name, &bad, &why);
        if (!found)
            found = try_path(find_program_join(wdir, "", 0, name), &bad, &why);
    }
    if (!found && bad) {
        snprintf(err, errlen, "cannot execute %s: %s", bad, reason(why));
        *exit_code = XR_EXIT_CANNOT_EXECUTE;
    } else if (!found) {
        *exit_code = XR_EXIT_NOT_FOUND;
        if (name[0] == '/')
            snprintf(err, errlen, "there is no program %s", name);
        else if (strchr(name, '/'))
            snprintf(err, errlen, "there is no program %s (seen from %s)", name, wdir);
        else
            snprintf(err, errlen, "there is no program %s in %s%sPATH, nor in %s", name,
                     dirs ? dirs : "", dirs ? ", in " : "", wdir);
    }
    free(bad);
    return found;
}
