/* spawn_request.c: see request.h. */
#include "launcher/dpm/spawn_request.h"

#include <stdlib.h>
#include <string.h>

static size_t count(char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

bool rk_request_word(char ***words, const char *word)
{
    size_t n = count(*words);
    char **longer = realloc(*words, (n + 2) * sizeof(*longer));

    if (!longer)
        return false;
    *words = longer;
    longer[n] = strdup(word);
    longer[n + 1] = NULL;
    return longer[n] != NULL;
}

struct rk_request_app *rk_request_add(struct rk_request *r)
{
    struct rk_request_app *longer = realloc(r->apps, (r->napps + 1) * sizeof(*longer));

    if (!longer)
        return NULL;
    r->apps = longer;
    memset(&longer[r->napps], 0, sizeof(*longer));
    return &longer[r->napps++];
}

void rk_request_clear(struct rk_request *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->napps; i++) {
        rk_strings_free(r->apps[i].argv);
        rk_strings_free(r->apps[i].env);
        free(r->apps[i].wdir);
        free(r->apps[i].path);
    }
    free(r->apps);
    rk_strings_free(r->words);
    rk_strings_free(r->keys);
    memset(r, 0, sizeof(*r));
}

static void pack_words(struct rk_packer *p, char *const *v)
{
    char *none[] = {NULL};

    rk_pack_strings(p, v ? v : none);
}

void rk_request_pack(const struct rk_request *r, struct rk_packer *p)
{
    rk_pack_u32(p, r->napps);
    for (uint32_t i = 0; i < r->napps; i++) {
        rk_pack_u32(p, r->apps[i].n);
        pack_words(p, r->apps[i].argv);
        pack_words(p, r->apps[i].env);
        rk_pack_string(p, r->apps[i].wdir ? r->apps[i].wdir : "");
        rk_pack_string(p, r->apps[i].path ? r->apps[i].path : "");
    }
    pack_words(p, r->words);
    pack_words(p, r->keys);
}

/* Empty is NULL. */
static char *take_text(struct rk_unpacker *u)
{
    const char *s = rk_unpack_string(u);

    return s && *s ? strdup(s) : NULL;
}

bool rk_request_unpack(struct rk_unpacker *u, struct rk_request *out)
{
    uint32_t n = rk_unpack_u32(u), ranks = 0;

    memset(out, 0, sizeof(*out));
    if (u->failed || n == 0 || n > u->left / 20)
        return false;
    for (uint32_t i = 0; i < n && !u->failed; i++) {
        struct rk_request_app *app = rk_request_add(out);
        if (!app)
            return false;
        app->n = rk_unpack_u32(u);
        app->argv = rk_unpack_strings(u);
        app->env = rk_unpack_strings(u);
        app->wdir = take_text(u);
        app->path = take_text(u);
        if (u->failed || app->n == 0 || app->n > RK_MAX_RANKS - ranks || !app->argv[0])
            return false;
        ranks += app->n;
    }
    out->words = rk_unpack_strings(u);
    out->keys = rk_unpack_strings(u);
    return !u->failed;
}

void rk_hello_clear(struct rk_hello *h)
{
    if (!h)
        return;
    rk_strings_free(h->options);
    rk_strings_free(h->busy);
    rk_strings_free(h->env);
    free(h->hosts);
    free(h->parent);
    free(h->outline);
    rk_request_clear(&h->request);
    memset(h, 0, sizeof(*h));
}

void rk_hello_pack(const struct rk_hello *h, struct rk_packer *p)
{
    pack_words(p, h->options);
    rk_pack_u32(p, h->number);
    rk_pack_string(p, h->parent);
    rk_pack_u32(p, h->rank);
    rk_pack_bytes(p, h->outline, h->outline_len);
    pack_words(p, h->busy);
    pack_words(p, h->env);
    rk_pack_string(p, h->hosts ? h->hosts : "");
    rk_request_pack(&h->request, p);
}

bool rk_hello_unpack(struct rk_unpacker *u, struct rk_hello *out)
{
    const void *outline;

    memset(out, 0, sizeof(*out));
    out->options = rk_unpack_strings(u);
    out->number = rk_unpack_u32(u);
    out->parent = take_text(u);
    out->rank = rk_unpack_u32(u);
    outline = rk_unpack_bytes(u, &out->outline_len);
    out->outline = u->failed ? NULL : malloc(out->outline_len + 1);
    if (!out->outline || !out->parent)
        return false;
    memcpy(out->outline, outline, out->outline_len);
    out->busy = rk_unpack_strings(u);
    out->env = rk_unpack_strings(u);
    out->hosts = take_text(u);
    return !u->failed && rk_request_unpack(u, &out->request) && rk_unpack_done(u);
}
