/* SPDX-License-Identifier: BSD-3-Clause */
/* conf_load.c: load configuration from files and the environment. */
#include "lib/base/conf.h"
#include "lib/base/compiler.h"
#include "lib/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RK_SYSCONFDIR
#define RK_SYSCONFDIR "/etc"
#endif

#define MAX_ROWS 64
#define MAX_FILE (1 << 20)

extern char **environ;

static const char *origin[MAX_ROWS]; /* NULL: default */
static char *file_names[1];

const char *rk_env(const char *name)
{
    return getenv(name);
}

bool rk_env_is_of_xrun(void)
{
    const char *job = rk_env("XRUN_JOB"), *space = rk_env("PMIX_NAMESPACE");

    return job && (!space || strcmp(job, space) == 0);
}

const char *rk_conf_origin(int i)
{
    return origin[i] ? origin[i] : "default";
}

static const struct rk_conf_row *conf_load_find(const struct rk_conf_row *rows, const char *name, size_t len)
{
    for (; rows->name; rows++) {
        if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0)
            return rows;
    }
    return NULL;
}

/* One warning a job: by xrun, which checks before it starts ranks; elsewhere by rank 0. */
static bool may_warn(void)
{
    const char *rank = rk_env("PMIX_RANK");
    return !rk_env_is_of_xrun() && (!rank || strcmp(rank, "0") == 0);
}

static void conf_load_warn_unknown(const struct rk_conf_row *rows, const char *where, const char *name)
{
    const struct rk_conf_row *near = rk_conf_nearest(rows, name);

    if (!may_warn())
        return;
    if (near)
        rk_warn("%s%s is not a variable of this library; did you mean %s?", where, name,
                near->name);
    else
        rk_warn("%s%s is not a variable of this library; rankinfo lists them", where, name);
}

static bool conf_load_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void trim(const char **s, size_t *len)
{
    while (*len && conf_load_is_blank(**s)) {
        ++*s;
        --*len;
    }
    while (*len && conf_load_is_blank((*s)[*len - 1]))
        --*len;
}

/* Parse one line, without its end: "NAME = value", a comment, or empty. */
static rank_status_t parse_line(const struct rk_conf_row *rows, void *into, const char *file,
                                int line, const char *s, size_t len)
{
    const struct rk_conf_row *row;
    const char *eq, *value;
    char text[1024], err[512];
    size_t nlen, vlen;
    rank_status_t st;

    trim(&s, &len);
    if (len == 0 || *s == '#')
        return RANK_OK;
    if (memchr(s, '\0', len)) {
        rk_error("%s:%d: the line holds a NUL byte", file, line);
        return RANK_ERR_CONFIG;
    }
    eq = memchr(s, '=', len);
    if (!eq) {
        rk_error("%s:%d: expected NAME = value", file, line);
        return RANK_ERR_CONFIG;
    }
    nlen = (size_t)(eq - s);
    value = eq + 1;
    vlen = len - nlen - 1;
    trim(&s, &nlen);
    trim(&value, &vlen);
    if (nlen >= sizeof(text) || vlen >= sizeof(text)) {
        rk_error("%s:%d: the line is too long", file, line);
        return RANK_ERR_CONFIG;
    }
    row = conf_load_find(rows, s, nlen);
    if (!row && nlen > 5 && memcmp(s, "XRUN_", 5) == 0)
        return RANK_OK; /* an option of xrun, which parses it itself */
    if (!row) {
        char where[512];
        snprintf(where, sizeof(where), "%s:%d: ", file, line);
        snprintf(text, sizeof(text), "%.*s", (int)nlen, s);
        conf_load_warn_unknown(rows, where, text);
        return RANK_OK;
    }
    memcpy(text, value, vlen);
    text[vlen] = '\0';
    st = rk_conf_parse_value(row, text, into, err, sizeof(err));
    if (st == RANK_ERR_CONFIG)
        rk_error("%s:%d: %s", file, line, err);
    if (st == RANK_OK && rows == rk_conf_rows)
        origin[row - rows] = file;
    return st;
}

rank_status_t rk_conf_parse_text(const struct rk_conf_row *rows, void *into, const char *file,
                                 const char *text, size_t len)
{
    rank_status_t first = RANK_OK;
    int line = 1;

    while (len) {
        const char *nl = memchr(text, '\n', len);
        size_t n = nl ? (size_t)(nl - text) : len;
        rank_status_t st = parse_line(rows, into, file, line++, text, n);
        if (st && !first)
            first = st;
        text += n;
        len -= n;
        if (len) {
            text++;
            len--;
        }
    }
    return first;
}

/* A missing file is an error only if the user named it; else *out is NULL. */
static rank_status_t read_file(const char *path, bool required, char **out, size_t *len)
{
    FILE *f = fopen(path, "re");
    char *text;
    size_t n;

    *out = NULL;
    if (!f) {
        if (!required)
            return RANK_OK;
        rk_error("RANK_CONF names %s: %m", path);
        return RANK_ERR_CONFIG;
    }
    text = malloc(MAX_FILE);
    if (!text) {
        fclose(f);
        return RANK_ERR_NO_MEMORY;
    }
    n = fread(text, 1, MAX_FILE, f);
    if (ferror(f) || n == MAX_FILE) {
        if (ferror(f))
            rk_error("cannot read the configuration file %s: %m", path);
        else
            rk_error("the configuration file %s is longer than %d bytes", path, MAX_FILE - 1);
        fclose(f);
        free(text);
        return RANK_ERR_CONFIG;
    }
    fclose(f);
    *out = text;
    *len = n;
    return RANK_OK;
}

static rank_status_t load_file(const char *path, bool required)
{
    char *text;
    size_t n = 0;
    rank_status_t st = read_file(path, required, &text, &n);

    if (!st && text)
        st = rk_conf_parse_text(rk_conf_rows, &rk_conf, path, text, n);
    free(text);
    return st;
}

/* The user's file: RANK_CONF, and then *named is set, or the one in HOME. NULL and *named: out of memory. */
static char *user_file(bool *named)
{
    const char *name = rk_env("RANK_CONF"), *home = rk_env("HOME");
    char *path = NULL;

    *named = name && *name;
    if (*named)
        return strdup(name);
    if (home && asprintf(&path, "%s/.rank.conf", home) < 0)
        path = NULL;
    return path;
}

#define SYSTEM_FILE RK_SYSCONFDIR "/rank.conf"

static rank_status_t load_files(void)
{
    bool named;
    rank_status_t st;

    file_names[0] = user_file(&named);
    if (named)
        return file_names[0] ? load_file(file_names[0], true) : RANK_ERR_NO_MEMORY;
    st = load_file(SYSTEM_FILE, false);
    if (st || !file_names[0])
        return st;
    return load_file(file_names[0], false);
}

/* -------------------------------------------------- lines of other programs */

/* Handle a line "NAME = value" with the prefix. Other errors are left to rk_conf_load. */
static void parse_other_line(const char *file, int line, const char *s, size_t len, const char *prefix,
                             rk_conf_line_fn *take, void *arg)
{
    char where[512], name[128], text[1024];
    const char *eq, *value;
    size_t nlen, vlen;

    trim(&s, &len);
    eq = memchr(s, '=', len);
    if (!eq || len < strlen(prefix) || memcmp(s, prefix, strlen(prefix)) != 0 ||
        memchr(s, '\0', len))
        return;
    nlen = (size_t)(eq - s);
    value = eq + 1;
    vlen = len - nlen - 1;
    trim(&s, &nlen);
    trim(&value, &vlen);
    if (nlen >= sizeof(name) || vlen >= sizeof(text))
        return;
    snprintf(where, sizeof(where), "%s:%d", file, line);
    snprintf(name, sizeof(name), "%.*s", (int)nlen, s);
    snprintf(text, sizeof(text), "%.*s", (int)vlen, value);
    take(arg, where, name, text);
}

static void others_of(const char *file, const char *prefix, rk_conf_line_fn *take, void *arg)
{
    char *text = NULL;
    size_t left = 0;
    struct stat st;
    int line = 1;

    /* A pipe can be read only once, by rk_conf_load. */
    if (!file || stat(file, &st) || !S_ISREG(st.st_mode) || access(file, R_OK) ||
        read_file(file, false, &text, &left) || !text)
        return;
    for (const char *s = text; left; line++) {
        const char *nl = memchr(s, '\n', left);
        size_t n = nl ? (size_t)(nl - s) : left;
        parse_other_line(file, line, s, n, prefix, take, arg);
        n += nl != NULL;
        s += n;
        left -= n;
    }
    free(text);
}

void rk_conf_others(const char *prefix, rk_conf_line_fn *take, void *arg)
{
    bool named;
    char *user = user_file(&named);

    if (!named)
        others_of(SYSTEM_FILE, prefix, take, arg);
    others_of(user, prefix, take, arg);
    free(user);
}

static rank_status_t load_environment(void)
{
    rank_status_t first = RANK_OK;

    for (char **e = environ; e && *e; e++) { /* NULL after clearenv */
        const struct rk_conf_row *row;
        const char *eq = strchr(*e, '=');
        char name[128], err[512];
        rank_status_t st;

        if (strncmp(*e, "RANK_", 5) != 0 || !eq)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(eq - *e), *e);
        if (strcmp(name, "RANK_CONF") == 0)
            continue;
        row = conf_load_find(rk_conf_rows, name, strlen(name));
        if (!row) {
            conf_load_warn_unknown(rk_conf_rows, "", name);
            continue;
        }
        st = rk_conf_parse_value(row, eq + 1, &rk_conf, err, sizeof(err));
        if (st == RANK_ERR_CONFIG)
            rk_error("%s", err);
        else if (!st)
            origin[row - rk_conf_rows] = "environment";
        if (st && !first)
            first = st;
    }
    return first;
}

rank_status_t rk_conf_load(void)
{
    rank_status_t st, st2;

    rk_conf_unload();
    st = rk_conf_set_defaults(rk_conf_rows, &rk_conf);
    if (!st)
        st = load_files();
    st2 = load_environment();
    rk_log_threshold = rk_conf.log;
    return st ? st : st2;
}

void rk_conf_unload(void)
{
    for (const struct rk_conf_row *row = rk_conf_rows; row->name; row++) {
        if (row->type == RK_CONF_STRING || row->type == RK_CONF_PICKS) {
            char **at = (char **)(void *)((char *)&rk_conf + row->offset);
            free(*at);
            *at = NULL;
        }
        origin[row - rk_conf_rows] = NULL;
    }
    for (size_t i = 0; i < RK_ARRAY_LEN(file_names); i++) {
        free(file_names[i]);
        file_names[i] = NULL;
    }
}
