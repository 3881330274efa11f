/* SPDX-License-Identifier: BSD-3-Clause */
/* conf_load.c: load configuration from files and the environment. */
#include "lib/base/conf.h"
#include "lib/base/compiler.h"
#include "lib/base/arg_error.h"
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
static char *user_conf; /* name of the user's file */

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

/* One line of a text, without its end. */
struct conf_line {
    const char *file, *name, *value; /* name and value: without blanks around them */
    size_t name_len, value_len;
    int number;
};

enum conf_line_form { LINE_EMPTY, LINE_PAIR, LINE_NUL, LINE_BAD };

/* Split "NAME = value". */
static enum conf_line_form split_line(const char *s, size_t len, struct conf_line *out)
{
    const char *eq;

    trim(&s, &len);
    if (len == 0 || *s == '#')
        return LINE_EMPTY;
    if (memchr(s, '\0', len))
        return LINE_NUL;
    eq = memchr(s, '=', len);
    if (!eq)
        return LINE_BAD;
    out->name = s;
    out->name_len = (size_t)(eq - s);
    out->value = eq + 1;
    out->value_len = len - out->name_len - 1;
    trim(&out->name, &out->name_len);
    trim(&out->value, &out->value_len);
    return LINE_PAIR;
}

/* Get the next line of a text, of which *len bytes are left at *text. */
static enum conf_line_form next_line(const char **text, size_t *len, struct conf_line *out)
{
    const char *s = *text, *nl = memchr(s, '\n', *len);
    size_t n = nl ? (size_t)(nl - s) : *len;

    out->number++;
    *text += n + (nl != NULL);
    *len -= n + (nl != NULL);
    return split_line(s, n, out);
}

static rank_status_t parse_line(const struct rk_conf_row *rows, void *into, enum conf_line_form form, const struct conf_line *l)
{
    const struct rk_conf_row *row;
    char text[1024], err[512];
    rank_status_t st;

    if (form == LINE_EMPTY)
        return RANK_OK;
    if (form != LINE_PAIR || l->name_len >= sizeof(text) || l->value_len >= sizeof(text)) {
        return rk_fail(RANK_ERR_CONFIG, "%s:%d: %s", l->file, l->number,
                       form == LINE_NUL   ? "the line holds a NUL byte"
                       : form == LINE_BAD ? "expected NAME = value"
                                          : "the line is too long");
    }
    row = conf_load_find(rows, l->name, l->name_len);
    if (!row && l->name_len > 5 && memcmp(l->name, "XRUN_", 5) == 0)
        return RANK_OK; /* an option of xrun, which parses it itself */
    if (!row) {
        char where[512];
        snprintf(where, sizeof(where), "%s:%d: ", l->file, l->number);
        snprintf(text, sizeof(text), "%.*s", (int)l->name_len, l->name);
        conf_load_warn_unknown(rows, where, text);
        return RANK_OK;
    }
    memcpy(text, l->value, l->value_len);
    text[l->value_len] = '\0';
    st = rk_conf_parse_value(row, text, into, err, sizeof(err));
    if (st == RANK_ERR_CONFIG)
        rk_fail(RANK_ERR_CONFIG, "%s:%d: %s", l->file, l->number, err);
    if (st == RANK_OK && rows == rk_conf_rows)
        origin[row - rows] = l->file;
    return st;
}

rank_status_t rk_conf_parse_text(const struct rk_conf_row *rows, void *into, const char *file,
                                 const char *text, size_t len)
{
    struct conf_line l = {.file = file};
    rank_status_t first = RANK_OK;

    while (len) {
        enum conf_line_form form = next_line(&text, &len, &l);
        rank_status_t st = parse_line(rows, into, form, &l);
        if (st && !first)
            first = st;
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
        return rk_fail(RANK_ERR_CONFIG, "RANK_CONF names %s: %m", path);
    }
    text = malloc(MAX_FILE);
    if (!text) {
        fclose(f);
        return RANK_ERR_NO_MEMORY;
    }
    n = fread(text, 1, MAX_FILE, f);
    if (ferror(f) || n == MAX_FILE) {
        if (ferror(f))
            rk_fail(RANK_ERR_CONFIG, "cannot read the configuration file %s: %m", path);
        else
            rk_fail(RANK_ERR_CONFIG, "the configuration file %s is longer than %d bytes", path, MAX_FILE - 1);
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

    user_conf = user_file(&named);
    if (named)
        return user_conf ? load_file(user_conf, true) : RANK_ERR_NO_MEMORY;
    st = load_file(SYSTEM_FILE, false);
    if (st || !user_conf)
        return st;
    return load_file(user_conf, false);
}

/* -------------------------------------------------- lines of other programs */

/* Errors are left to rk_conf_load. */
static void others_of(const char *file, const char *prefix, rk_conf_line_fn *take, void *arg)
{
    char where[512], name[128], value[1024], *text = NULL;
    struct conf_line l = {.file = file};
    const char *rest;
    size_t left = 0;
    struct stat st;

    /* A pipe can be read only once, by rk_conf_load. */
    if (!file || stat(file, &st) || !S_ISREG(st.st_mode) || access(file, R_OK) ||
        read_file(file, false, &text, &left) || !text)
        return;
    for (rest = text; left;) {
        if (next_line(&rest, &left, &l) != LINE_PAIR || l.name_len < strlen(prefix) ||
            memcmp(l.name, prefix, strlen(prefix)) != 0 || l.name_len >= sizeof(name) || l.value_len >= sizeof(value))
            continue;
        snprintf(where, sizeof(where), "%s:%d", file, l.number);
        snprintf(name, sizeof(name), "%.*s", (int)l.name_len, l.name);
        snprintf(value, sizeof(value), "%.*s", (int)l.value_len, l.value);
        take(arg, where, name, value);
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
            rk_fail(RANK_ERR_CONFIG, "%s", err);
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
    free(user_conf);
    user_conf = NULL;
}
