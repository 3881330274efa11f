/* conf_load.c: where configuration comes from: files, then the environment. */
#include "lib/base/conf.h"
#include "lib/base/compiler.h"
#include "lib/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

const char *rk_conf_origin(int i)
{
    return origin[i] ? origin[i] : "default";
}

static const struct rk_conf_row *find(const struct rk_conf_row *rows, const char *name, size_t len)
{
    for (; rows->name; rows++) {
        if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0)
            return rows;
    }
    return NULL;
}

/* One voice for a job: xrun checks before it starts ranks, elsewhere rank 0 speaks. */
static bool may_warn(void)
{
    const char *rank = rk_env("PMIX_RANK");
    return !rk_env("XRUN_JOB") && (!rank || strcmp(rank, "0") == 0);
}

static void warn_unknown(const struct rk_conf_row *rows, const char *where, const char *name)
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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void trim(const char **s, size_t *len)
{
    while (*len && is_blank(**s)) {
        ++*s;
        --*len;
    }
    while (*len && is_blank((*s)[*len - 1]))
        --*len;
}

/* One line, without its end: "NAME = value", a comment, or nothing. */
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
    row = find(rows, s, nlen);
    if (!row) {
        char where[512];
        snprintf(where, sizeof(where), "%s:%d: ", file, line);
        snprintf(text, sizeof(text), "%.*s", (int)nlen, s);
        warn_unknown(rows, where, text);
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

/* A file that is not there is fine unless the user named it. */
static rank_status_t load_file(const char *path, bool required)
{
    FILE *f = fopen(path, "re");
    char *text;
    size_t n;
    rank_status_t st;

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
    st = rk_conf_parse_text(rk_conf_rows, &rk_conf, path, text, n);
    free(text);
    return st;
}

static rank_status_t load_files(void)
{
    const char *named = rk_env("RANK_CONF"), *home = rk_env("HOME");
    rank_status_t st;

    if (named && *named) {
        file_names[0] = strdup(named);
        return file_names[0] ? load_file(file_names[0], true) : RANK_ERR_NO_MEMORY;
    }
    st = load_file(RK_SYSCONFDIR "/rank.conf", false);
    if (st || !home)
        return st;
    if (asprintf(&file_names[0], "%s/.rank.conf", home) < 0) {
        file_names[0] = NULL;
        return RANK_ERR_NO_MEMORY;
    }
    return load_file(file_names[0], false);
}

static rank_status_t load_environment(void)
{
    rank_status_t first = RANK_OK;

    for (char **e = environ; *e; e++) {
        const struct rk_conf_row *row;
        const char *eq = strchr(*e, '=');
        char name[128], err[512];
        rank_status_t st;

        if (strncmp(*e, "RANK_", 5) != 0 || !eq)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(eq - *e), *e);
        if (strcmp(name, "RANK_CONF") == 0)
            continue;
        row = find(rk_conf_rows, name, strlen(name));
        if (!row) {
            warn_unknown(rk_conf_rows, "", name);
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
