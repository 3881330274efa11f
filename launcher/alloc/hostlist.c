/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostlist.c: keep lists of hosts and expand ranges. See hostlist.h.
 */
#include "launcher/alloc/hostlist.h"
#include "launcher/util/shell_words.h"
#include "lib/base/compiler.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HOSTS (1u << 17)
#define MAX_SLOTS (1u << 20)
#define MAX_NAME 255

void xr_hostlist_clear(struct xr_hostlist *list)
{
    if (!list)
        return;
    for (uint32_t i = 0; i < list->n; i++)
        free(list->host[i].name);
    free(list->host);
    xr_hash_clear(&list->names);
    xr_hash_clear(&list->short_names);
    memset(list, 0, sizeof(*list));
}

/* Put a host into the tables. Returns false if out of memory. */
static bool index_host(struct xr_hostlist *list, struct xr_hostspec *host)
{
    const char *domain = xr_local_host_domain(host->name);
    size_t len = domain ? (size_t)(domain - host->name) - 1 : 0;

    return xr_hash_add(&list->names, &host->by_name, xr_hash_bytes(0, host->name, strlen(host->name))) &&
           (!domain || xr_hash_add(&list->short_names, &host->by_short, xr_hash_bytes(0, host->name, len)));
}

/* Rebuild the tables after hosts moved in memory or went. */
static bool index_hosts(struct xr_hostlist *list)
{
    bool ok = true;

    xr_hash_clear(&list->names);
    xr_hash_clear(&list->short_names);
    for (uint32_t i = 0; ok && i < list->n; i++)
        ok = index_host(list, &list->host[i]);
    return ok;
}

static uint32_t hostlist_find(const struct xr_hostlist *list, const char *name, size_t len)
{
    for (struct xr_hash_item *i = xr_hash_first(&list->names, xr_hash_bytes(0, name, len)); i; i = xr_hash_next(i)) {
        const struct xr_hostspec *host = rk_container_of(i, struct xr_hostspec, by_name);
        if (strncmp(host->name, name, len) == 0 && !host->name[len])
            return (uint32_t)(host - list->host);
    }
    return UINT32_MAX;
}

/* Return the only host that has name before its domain, or UINT32_MAX. */
static uint32_t find_short_name(const struct xr_hostlist *list, const char *name, size_t len)
{
    uint32_t found = UINT32_MAX;

    for (struct xr_hash_item *i = xr_hash_first(&list->short_names, xr_hash_bytes(0, name, len)); i;
         i = xr_hash_next(i)) {
        const struct xr_hostspec *host = rk_container_of(i, struct xr_hostspec, by_short);
        if (strncmp(host->name, name, len) != 0 || host->name[len] != '.')
            continue;
        if (found != UINT32_MAX)
            return UINT32_MAX;
        found = (uint32_t)(host - list->host);
    }
    return found;
}

static bool hostlist_grow(struct xr_hostlist *list)
{
    uint32_t cap = list->cap ? list->cap * 2 : 16;
    struct xr_hostspec *more = realloc(list->host, cap * sizeof(*more));

    if (!more)
        return false;
    list->host = more;
    list->cap = cap;
    return index_hosts(list);
}

uint32_t xr_hostlist_find(const struct xr_hostlist *list, const char *name)
{
    return hostlist_find(list, name, strlen(name));
}

rank_status_t xr_hostlist_add(struct xr_hostlist *list, const char *name, size_t len,
                              uint32_t slots)
{
    uint32_t at = hostlist_find(list, name, len);

    if (at != UINT32_MAX) {
        /* "a,a" is two slots of a. */
        list->host[at].slots = (list->host[at].slots ? list->host[at].slots : 1) + (slots ? slots : 1);
        return RANK_OK;
    }
    if (list->n == list->cap && !hostlist_grow(list))
        return RANK_ERR_NO_MEMORY;
    list->host[list->n] = (struct xr_hostspec){.name = strndup(name, len), .slots = slots};
    if (!list->host[list->n].name)
        return RANK_ERR_NO_MEMORY;
    return index_host(list, &list->host[list->n++]) ? RANK_OK : RANK_ERR_NO_MEMORY;
}

void xr_hostlist_limit(struct xr_hostlist *list, const char *name, uint32_t most)
{
    uint32_t at = xr_hostlist_find(list, name);

    if (at != UINT32_MAX)
        list->host[at].most += most;
}

/* ----------------------------------------------------------------- names */

static bool is_v6(const char *text, size_t len)
{
    char address[INET6_ADDRSTRLEN];
    uint8_t bytes[16];

    if (len >= sizeof(address) || memchr(text, '\0', len))
        return false;
    memcpy(address, text, len);
    address[len] = '\0';
    return inet_pton(AF_INET6, address, bytes) == 1;
}

/* Return what is wrong with a name, or NULL. */
static const char *not_a_name(const char *name, size_t len)
{
    const char *at = memrchr(name, '@', len);

    if (len == 0 || name[0] == '-')
        return "a host's name is missing";
    if (len > MAX_NAME)
        return "the name is too long";
    if (at && (at == name || at + 1 == name + len || at[1] == '-'))
        return "around @ stand a user and a host";
    if (is_v6(name, len))
        return NULL;
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)name[i]) && (!name[i] || !strchr("-_.@", name[i])))
            return "a host's name is letters, digits, - . and _";
    }
    return NULL;
}

rank_status_t xr_hostlist_take(struct xr_hostlist *list, const char *name, size_t len, uint32_t slots,
                               const char **wrong)
{
    rank_status_t st;

    if (len > 2 && name[0] == '[' && name[len - 1] == ']' && is_v6(name + 1, len - 2)) {
        name++;
        len -= 2;
    }
    *wrong = not_a_name(name, len);
    if (*wrong)
        return RANK_ERR_ARG;
    st = xr_hostlist_add(list, name, len, slots);
    if (st)
        *wrong = rank_status_string(st);
    return st;
}

void xr_hostlist_cut(struct xr_hostlist *list, uint32_t n)
{
    if (n >= list->n)
        return;
    for (uint32_t i = n; i < list->n; i++) {
        struct xr_hostspec *host = &list->host[i];
        xr_hash_remove(&list->names, &host->by_name);
        if (xr_local_host_domain(host->name))
            xr_hash_remove(&list->short_names, &host->by_short);
        free(host->name);
    }
    list->n = n;
}

/* ---------------------------------------------------------------- ranges */

struct spelling {
    struct xr_hostlist *list;
    uint32_t slots;
    char name[MAX_NAME + 1];
    const char *wrong; /* the error, or NULL */
};

static rank_status_t expand(struct spelling *s, size_t at, const char *rest, size_t len);

static rank_status_t wrong(struct spelling *s, const char *what)
{
    s->wrong = what;
    return RANK_ERR_ARG;
}

/* Parse a number like "07": its value and its width. */
static bool hostlist_number(const char *text, size_t len, size_t *used, unsigned long *value)
{
    size_t n = 0;

    *value = 0;
    while (n < len && isdigit((unsigned char)text[n]) && n < 9)
        *value = *value * 10 + (unsigned long)(text[n++] - '0');
    *used = n;
    return n > 0;
}

/* Expand one part between the commas of a bracket: "3" or "01-16". */
static rank_status_t expand_part(struct spelling *s, size_t at, const char *part, size_t len,
                                 const char *rest, size_t restlen)
{
    unsigned long first, last;
    size_t width, used;

    if (!hostlist_number(part, len, &width, &first))
        return wrong(s, "a bracket holds numbers, as in node[01-16,20]");
    last = first;
    if (width < len) {
        if (part[width] != '-' || !hostlist_number(part + width + 1, len - width - 1, &used, &last) ||
            width + 1 + used != len)
            return wrong(s, "a bracket holds numbers, as in node[01-16,20]");
        if (last < first)
            return wrong(s, "a range goes upwards");
    }
    if (last - first >= MAX_HOSTS)
        return wrong(s, "that are too many hosts");
    for (unsigned long i = first; i <= last; i++) {
        int n = snprintf(s->name + at, sizeof(s->name) - at, "%0*lu", (int)width, i);
        rank_status_t st;
        if (n < 0 || at + (size_t)n > MAX_NAME)
            return wrong(s, "the name is too long");
        st = expand(s, at + (size_t)n, rest, restlen);
        if (st)
            return st;
    }
    return RANK_OK;
}

/* Expand rest, which may hold brackets; name[0..at) is complete. */
static rank_status_t expand(struct spelling *s, size_t at, const char *rest, size_t len)
{
    const char *open = memchr(rest, '[', len), *close;
    size_t plain = open ? (size_t)(open - rest) : len;

    if (at + plain > MAX_NAME)
        return wrong(s, "the name is too long");
    memcpy(s->name + at, rest, plain);
    at += plain;
    if (!open) {
        if (s->list->n >= MAX_HOSTS)
            return wrong(s, "that are too many hosts");
        return xr_hostlist_take(s->list, s->name, at, s->slots, &s->wrong);
    }
    close = memchr(open, ']', len - plain);
    if (!close)
        return wrong(s, "a [ has no ]");
    for (const char *part = open + 1; part <= close;) {
        size_t n = 0;
        rank_status_t st;
        while (part + n < close && part[n] != ',')
            n++;
        st = expand_part(s, at, part, n, close + 1, (size_t)(rest + len - close - 1));
        if (st)
            return st;
        part += n + 1;
    }
    return RANK_OK;
}

/* Return whether text is an IPv6 address in brackets, as in a URL; it is a name and no range. */
static bool is_address(const char *text, size_t len)
{
    return len > 2 && text[0] == '[' && text[len - 1] == ']' && memchr(text, ':', len);
}

/* Format an error about text, made safe for a terminal. */
static rank_status_t format_error(const char *text, size_t len, const char *what, char *err, size_t errlen)
{
    snprintf(err, errlen, "'%.*s': %s", (int)(len > MAX_NAME ? MAX_NAME : len), text, what);
    xr_shell_words_show(err);
    return RANK_ERR_ARG;
}

static rank_status_t hostlist_parse_one(struct xr_hostlist *list, const char *text, size_t len, char *err,
                               size_t errlen)
{
    struct spelling s = {.list = list};
    const char *colon = memrchr(text, ':', len), *bracket = memrchr(text, ']', len);
    size_t namelen = len, used = 0;
    unsigned long slots = 0;
    rank_status_t st;

    if (colon && !bracket && memchr(text, ':', (size_t)(colon - text)))
        return format_error(text, len, "an address of IPv6 stands in brackets, as in [fd00::2] or [fd00::2]:4", err,
                            errlen);
    if (colon && (!bracket || colon > bracket)) {
        namelen = (size_t)(colon - text);
        if (!hostlist_number(colon + 1, len - namelen - 1, &used, &slots) || namelen + 1 + used != len ||
            slots < 1 || slots > MAX_SLOTS)
            return format_error(text, len, "behind the colon stands how many ranks the host takes", err, errlen);
    }
    s.slots = (uint32_t)slots;
    if (is_address(text, namelen) && !is_v6(text + 1, namelen - 2))
        return format_error(text, len, "this is not an IPv6 address", err, errlen);
    if (is_address(text, namelen))
        st = xr_hostlist_take(list, text, namelen, s.slots, &s.wrong);
    else
        st = expand(&s, 0, text, namelen);
    if (st)
        format_error(text, len, s.wrong ? s.wrong : rank_status_string(st), err, errlen);
    return st;
}

rank_status_t xr_hostlist_parse(struct xr_hostlist *list, const char *text, char *err,
                                size_t errlen)
{
    const char *from = text;
    int depth = 0;

    for (const char *at = text;; at++) {
        depth += *at == '[';
        depth -= *at == ']';
        if (*at == '\0' || (*at == ',' && depth <= 0)) {
            rank_status_t st = hostlist_parse_one(list, from, (size_t)(at - from), err, errlen);
            if (st)
                return st;
            from = at + 1;
        }
        if (*at == '\0')
            return RANK_OK;
    }
}

/* Return the only host that equals name except for a domain that one of them lacks. Addresses have no domain. */
static uint32_t find_except_domain(const struct xr_hostlist *list, const char *name)
{
    const char *domain = xr_local_host_domain(name);
    size_t len = strlen(name);

    if (!domain && memchr(name, '.', len))
        return UINT32_MAX;
    return domain ? hostlist_find(list, name, (size_t)(domain - name) - 1) : find_short_name(list, name, len);
}

uint32_t xr_hostlist_mean(const struct xr_hostlist *list, struct xr_local_host *here, const char *name)
{
    uint32_t found = xr_hostlist_find(list, name);
    bool own = here && xr_local_host_is(here, name);

    for (uint32_t i = 0; own && i < list->n && found == UINT32_MAX; i++) {
        if (xr_local_host_is(here, list->host[i].name) && !xr_local_host_differ(list->host[i].name, name))
            found = i;
    }
    if (found != UINT32_MAX)
        return found;
    /* Without a list, names of a rankfile are added one after the other: each may be a new host. */
    return list->source ? find_except_domain(list, name) : UINT32_MAX;
}

rank_status_t xr_hostlist_restrict(struct xr_hostlist *list, const struct xr_hostlist *only, struct xr_local_host *here,
                                   char *err, size_t errlen)
{
    struct xr_hostlist kept = {.source = only->source};
    rank_status_t st = RANK_OK;

    /* Use the names of list, which other hosts use. Two names of one host count as that host twice, as a,a does. */
    for (uint32_t i = 0; !st && i < only->n; i++) {
        uint32_t at = xr_hostlist_mean(list, here, only->host[i].name);
        const char *name = at != UINT32_MAX ? list->host[at].name : NULL;
        if (!name) {
            snprintf(err, errlen, "host %s of %s is not among the %u host%s that %s gives",
                     only->host[i].name, only->source, list->n, xr_plural(list->n), list->source);
            xr_hostlist_clear(&kept);
            return RANK_ERR_ARG;
        }
        st = xr_hostlist_add(&kept, name, strlen(name), only->host[i].slots);
    }
    for (uint32_t i = 0; !st && i < kept.n; i++) {
        struct xr_hostspec *h = &kept.host[i];
        const struct xr_hostspec *from = &list->host[xr_hostlist_find(list, h->name)];
        h->most = from->most;
        if (!h->slots)
            h->slots = from->slots;
    }
    if (st) {
        xr_hostlist_clear(&kept);
        snprintf(err, errlen, "%s", rank_status_string(st));
        return st;
    }
    xr_hostlist_clear(list);
    *list = kept;
    return RANK_OK;
}
