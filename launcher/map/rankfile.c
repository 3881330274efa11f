/* SPDX-License-Identifier: BSD-3-Clause */
/* rankfile.c: see rankfile.h. */
#include "launcher/map/rankfile.h"
#include "launcher/util/text_file.h"
#include "launcher/util/shell_words.h"
#include "lib/base/log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANK (1u << 20)
#define MAX_CORES (1u << 16)
#define NO_HOST UINT32_MAX

void xr_rankfile_clear(struct xr_rankfile *file)
{
    if (!file)
        return;
    for (uint32_t i = 0; i < file->n; i++)
        hwloc_bitmap_free((hwloc_bitmap_t)(uintptr_t)file->pin[i].cores);
    free(file->pin);
    memset(file, 0, sizeof(*file));
}

struct line {
    struct xr_rankfile *file;
    struct xr_hostlist *hosts;
    struct xr_local_host *here;
    char *err;
    size_t errlen;
};

static bool rankfile_bad(struct line *l, const char *what, const char *word)
{
    snprintf(l->err, l->errlen, what, word);
    return false;
}

static bool make_room(struct xr_rankfile *f, uint32_t rank)
{
    while (rank >= f->cap) {
        uint32_t cap = f->cap ? f->cap * 2 : 64;
        struct xr_place_pin *more = realloc(f->pin, cap * sizeof(*more));
        if (!more)
            return false;
        f->pin = more;
        f->cap = cap;
    }
    for (; f->n <= rank; f->n++)
        f->pin[f->n] = (struct xr_place_pin){.host = NO_HOST, .package = -1};
    return true;
}

static bool find_host(struct line *l, char *name, uint32_t *host)
{
    size_t len = strlen(name);
    const char *wrong;
    char *end;

    /* An IPv6 address stands in brackets, as elsewhere; the list has it without. */
    if (len > 2 && name[0] == '[' && name[len - 1] == ']') {
        name[len - 1] = '\0';
        name++;
    }

    if (!*name)
        return rankfile_bad(l, "a line reads rank N=HOST slot=CORES%s", "");
    if (strncmp(name, "+n", 2) == 0 && isdigit((unsigned char)name[2])) {
        unsigned long i = strtoul(name + 2, &end, 10);
        *host = (uint32_t)i;
        return !*end && i < l->hosts->n ? true : rankfile_bad(l, "there is no host %s", name);
    }
    *host = xr_hostlist_mean(l->hosts, l->here, name);
    if (*host != NO_HOST)
        return true;
    if (l->hosts->source)
        return rankfile_bad(l, "host %s is not among those that the job may use", name);
    if (xr_hostlist_take(l->hosts, name, strlen(name), 0, &wrong)) {
        snprintf(l->err, l->errlen, "'%s': %s", name, wrong);
        return false;
    }
    *host = l->hosts->n - 1;
    return true;
}

/* Limit numbers to what any machine has: a range is expanded one by one. */
static bool numbers_are_small(const char *list)
{
    while (*list) {
        char *end;
        if (!isdigit((unsigned char)*list)) { /* strtoul would take the sign of a range as a number's */
            list++;
            continue;
        }
        if (strtoul(list, &end, 10) >= MAX_CORES)
            return false;
        list = end;
    }
    return true;
}

/* Parse "0-3,6" or "1:0-3". */
static bool take_cores(struct line *l, struct xr_place_pin *pin, const char *text)
{
    const char *list = text, *colon = strchr(text, ':');
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    char *end;

    if (!cores)
        return rankfile_bad(l, "out of memory%s", "");
    pin->cores = cores;
    if (colon) {
        unsigned long package = strtoul(text, &end, 10);
        if (!isdigit((unsigned char)text[0]) || end != colon || package > 4096)
            return rankfile_bad(l, "'%s': cores are numbered as 0-3,6 or, in a package, as 1:0-3", text);
        pin->package = (int)package;
        list = colon + 1;
    }
    if (strspn(list, "0123456789,-") != strlen(list) || !numbers_are_small(list) || hwloc_bitmap_list_sscanf(cores, list) ||
        hwloc_bitmap_iszero(cores) || hwloc_bitmap_last(cores) < 0)
        return rankfile_bad(l, "'%s': cores are numbered as 0-3,6 or, in a package, as 1:0-3", text);
    return true;
}

static bool take_line(struct line *l, char *text)
{
    char *save = NULL, *word, *eq, *end;
    unsigned long rank;
    struct xr_place_pin *pin;
    uint32_t host;

    text[strcspn(text, "#\r")] = '\0';
    word = strtok_r(text, " \t", &save);
    if (!word)
        return true;
    if (strcmp(word, "rank") != 0 || !(word = strtok_r(NULL, " \t", &save)) ||
        !(eq = strchr(word, '=')))
        return rankfile_bad(l, "a line reads rank N=HOST slot=CORES%s", "");
    *eq = '\0';
    rank = strtoul(word, &end, 10);
    if (!isdigit((unsigned char)word[0]) || *end || rank >= MAX_RANK)
        return rankfile_bad(l, "'%s' is not a rank", word);
    if (!find_host(l, eq + 1, &host))
        return false;
    if (!make_room(l->file, (uint32_t)rank))
        return rankfile_bad(l, "out of memory%s", "");
    pin = &l->file->pin[rank];
    if (pin->host != NO_HOST)
        return rankfile_bad(l, "rank %s stands here a second time", word);
    pin->host = host;
    word = strtok_r(NULL, " \t", &save);
    if (!word)
        return true;
    if (strncmp(word, "slot=", 5) != 0 && strncmp(word, "slots=", 6) != 0)
        return rankfile_bad(l, "'%s' is not understood; behind the host stands slot=CORES", word);
    if (!take_cores(l, pin, strchr(word, '=') + 1))
        return false;
    word = strtok_r(NULL, " \t", &save);
    return word ? rankfile_bad(l, "'%s' is too much", word) : true;
}

rank_status_t xr_rankfile_read(const char *path, struct xr_hostlist *hosts, struct xr_local_host *here,
                               struct xr_rankfile *out, char *err, size_t errlen)
{
    char *text, why[256];
    struct line l = {.file = out, .hosts = hosts, .here = here, .err = why, .errlen = sizeof(why)};
    struct xr_text_file f;
    unsigned wrong = 0;

    memset(out, 0, sizeof(*out));
    if (!xr_text_file_open(path, &f, why, sizeof(why))) {
        snprintf(err, errlen, "cannot read the rankfile %s: %s", path, why);
        xr_text_file_close(&f);
        return RANK_ERR_ARG;
    }
    while ((text = xr_text_file_line(&f))) {
        if (f.nul)
            rankfile_bad(&l, "the line holds a NUL byte%s", "");
        else if (take_line(&l, text))
            continue;
        xr_shell_words_show(why);
        rk_error("%s:%u: %s", path, f.number, why);
        wrong++;
    }
    if (!xr_text_file_close(&f)) {
        snprintf(err, errlen, "the rankfile %s cannot be read to its end", path);
        return RANK_ERR_ARG;
    }
    for (uint32_t i = 0; i < out->n && !wrong; i++) {
        if (out->pin[i].host == NO_HOST) {
            snprintf(err, errlen, "the rankfile %s has no line for rank %u", path, i);
            return RANK_ERR_ARG;
        }
    }
    if (wrong)
        snprintf(err, errlen, "the rankfile %s has %u bad line%s", path, wrong, xr_plural(wrong));
    else if (out->n == 0)
        snprintf(err, errlen, "the rankfile %s places no rank", path);
    return wrong || out->n == 0 ? RANK_ERR_ARG : RANK_OK;
}
