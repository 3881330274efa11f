/* singletons.c: see singletons.h. */
#include "launcher/singletons.h"
#include "launcher/maps.h"
#include "launcher/needed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Looks at the process: the first after this, each other after three times as long. */
#define FIRST_MS 50
#define LOOKS 5 /* the last after 6 s */
/* A wrapper's child may be the program, or its child. */
#define GENERATIONS 4

struct rk_singletons {
    struct event *timer;
    uint32_t size, left; /* ranks of the job; of this host that have not ended */
    char *program;
    pid_t pid;
    void (*say)(void *arg, bool over, const char *text);
    void *arg;
    unsigned looks;
    bool over;
    char library[64];
};

/* Open MPI, MPICH and all that derive from it name their libraries so. */
static bool is_mpi(const char *name)
{
    return strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpi_", 7) == 0 ||
           strncmp(name, "libmpich", 8) == 0 || strncmp(name, "libmpifort", 10) == 0;
}

static bool look_at(void *arg, const char *path)
{
    struct rk_singletons *s = arg;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (!is_mpi(name))
        return true;
    snprintf(s->library, sizeof(s->library), "%s", name);
    return false;
}

static void stop(struct rk_singletons *s)
{
    s->over = true;
    event_del(s->timer);
}

static void tell(struct rk_singletons *s)
{
    char text[512];

    snprintf(text, sizeof(text),
             "none of the %u ranks has joined the job although their program uses %s: each is "
             "rank 0 of 1 to itself; use an MPI that speaks PMIx or PMI-1, or its own launcher",
             s->size, s->library);
    s->say(s->arg, s->left == 0, text);
    stop(s);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct rk_singletons *s = arg;
    pid_t pid = s->pid;
    struct timeval next;
    uint32_t ms = FIRST_MS;

    (void)fd;
    (void)what;
    for (int i = 0; i < GENERATIONS && pid > 0 && !s->library[0]; i++, pid = rk_maps_child(pid))
        rk_maps_each(pid, look_at, s);
    if (++s->looks == LOOKS) {
        if (s->library[0])
            tell(s);
        return;
    }
    for (unsigned i = 0; i < s->looks; i++)
        ms *= 3;
    next = (struct timeval){ms / 1000, ms % 1000 * 1000};
    event_add(s->timer, &next);
}

rank_status_t rk_singletons_watch(struct event_base *base, uint32_t size, uint32_t local,
                                  const char *program, pid_t pid,
                                  void (*say)(void *arg, bool over, const char *text), void *arg,
                                  struct rk_singletons **out)
{
    const struct timeval first = {0, FIRST_MS * 1000};
    struct rk_singletons *s;

    *out = NULL;
    if (size < 2)
        return RANK_OK;
    s = calloc(1, sizeof(*s));
    if (!s)
        return RANK_ERR_NO_MEMORY;
    s->size = size;
    s->left = local;
    s->pid = pid;
    s->say = say;
    s->arg = arg;
    s->program = strdup(program);
    s->timer = evtimer_new(base, on_timer, s);
    if (!s->program || !s->timer || event_add(s->timer, &first)) {
        rk_singletons_destroy(s);
        return RANK_ERR_NO_MEMORY;
    }
    *out = s;
    return RANK_OK;
}

void rk_singletons_destroy(struct rk_singletons *s)
{
    if (!s)
        return;
    if (s->timer)
        event_free(s->timer);
    free(s->program);
    free(s);
}

void rk_singletons_joined(struct rk_singletons *s)
{
    if (s && !s->over)
        stop(s);
}

void rk_singletons_ended(struct rk_singletons *s, bool well)
{
    if (!s || s->over || (s->left-- > 1 && well))
        return;
    if (well && !s->library[0])
        rk_needed_find(s->program, is_mpi, s->library, sizeof(s->library));
    if (well && s->library[0])
        tell(s);
    else
        stop(s);
}
