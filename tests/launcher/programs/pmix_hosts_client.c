/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix_hosts_client.c: call PMIx across hosts, without librank.
 *
 * Events that ranks raise, long texts to log and to abort with, PMIx_Get with a time-out, fences
 * of some ranks, and clients that die.
 *
 * pmix_hosts_client MODE RANK [RANGE]: RANK is the one that raises, is silent or
 * dies. Prints "ok" from each rank that ended as the mode expects.
 */
#include "client_common.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUR_EVENT (PMIX_EXTERNAL_ERR_BASE - 42)
#define LIMIT_S 8.0

static uint32_t special;
static bool absent; /* it never is a client */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_ms(void)
{
    const struct timespec ms = {0, 1000000};

    nanosleep(&ms, NULL);
}

static int wrong(const char *what)
{
    fprintf(stderr, "rank %u: %s\n", me.rank, what);
    return 9;
}

/* ----------------------------------------------------------------------- events */

static _Atomic int heard, died = -1;

static void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    bool word = false, number = false;

    (void)id;
    (void)results;
    (void)nresults;
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], "our.word") && info[i].value.type == PMIX_STRING)
            word = strcmp(info[i].value.data.string, "a word from elsewhere") == 0;
        if (PMIX_CHECK_KEY(&info[i], "our.number") && info[i].value.type == PMIX_UINT32)
            number = info[i].value.data.uint32 == 4711;
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && code != OUR_EVENT)
            atomic_store(&died, (int)info[i].value.data.proc->rank);
    }
    if (code == OUR_EVENT)
        atomic_fetch_add(&heard, word && number && source->rank == special ? 1 : 100);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static void listen_for(pmix_status_t a, pmix_status_t b)
{
    pmix_status_t codes[] = {a, b};

    if (PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL) < 0) {
        fprintf(stderr, "no handler\n");
        exit(9);
    }
}

static void raise_event(pmix_data_range_t range, const pmix_proc_t *targets, size_t ntargets)
{
    pmix_data_array_t array = {.type = PMIX_PROC, .size = ntargets, .array = (void *)(uintptr_t)targets};
    uint32_t number = 4711;
    pmix_info_t info[3];
    size_t n = 2;
    pmix_status_t rc;

    PMIX_INFO_LOAD(&info[0], "our.word", "a word from elsewhere", PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], "our.number", &number, PMIX_UINT32);
    if (range == PMIX_RANGE_CUSTOM) {
        PMIX_INFO_LOAD(&info[2], PMIX_EVENT_CUSTOM_RANGE, &array, PMIX_DATA_ARRAY);
        n = 3;
    }
    rc = PMIx_Notify_event(OUR_EVENT, &me, range, info, n, NULL, NULL);
    if (rc != PMIX_OPERATION_SUCCEEDED)
        need("PMIx_Notify_event", rc);
}

/* Is a rank on this one's host? */
static bool is_near(uint32_t rank)
{
    pmix_value_t *v;
    bool near = false;

    need(PMIX_LOCAL_PEERS, PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &v));
    for (char *save = NULL, *p = strtok_r(v->data.string, ",", &save); p; p = strtok_r(NULL, ",", &save))
        near = near || (uint32_t)strtoul(p, NULL, 10) == rank;
    PMIX_VALUE_RELEASE(v);
    return near;
}

#define TOO_MUCH_MIB 65 /* more than a message between hosts holds */

/* MiB of lines of a hundred bytes. */
static char *long_text(size_t mib)
{
    size_t len = mib << 20;
    char *text = malloc(len + 1);

    if (!text)
        need("memory", PMIX_ERR_NOMEM);
    memset(text, 'x', len);
    for (size_t i = 99; i < len; i += 100)
        text[i] = '\n';
    text[len - 1] = '\n';
    text[len] = '\0';
    return text;
}

static int log_much(size_t mib)
{
    pmix_info_t info;

    need("PMIx_Fence", fence());
    if (me.rank == special) {
        memset(&info, 0, sizeof(info));
        PMIX_LOAD_KEY(info.key, PMIX_LOG_STDOUT);
        info.value.type = PMIX_STRING;
        info.value.data.string = long_text(mib);
        need("PMIx_Log", PMIx_Log(&info, 1, NULL, 0));
        free(info.value.data.string);
    }
    need("PMIx_Fence", fence());
    return finish();
}

__attribute__((noreturn)) static void abort_at_length(size_t mib)
{
    need("PMIx_Fence", fence());
    if (me.rank == special)
        PMIx_Abort(42, long_text(mib), NULL, 0);
    for (;;)
        pause();
}

static int raise_and_receive(const char *name)
{
    static const struct {
        const char *name;
        pmix_data_range_t range;
    } ranges[] = {{"namespace", PMIX_RANGE_NAMESPACE}, {"session", PMIX_RANGE_SESSION},
                  {"global", PMIX_RANGE_GLOBAL},       {"custom", PMIX_RANGE_CUSTOM},
                  {"local", PMIX_RANGE_LOCAL},         {"proc", PMIX_RANGE_PROC_LOCAL}};
    pmix_data_range_t range = PMIX_RANGE_INVALID;
    uint32_t first = (special + 1) % size, second = (special + size / 2) % size;
    pmix_proc_t targets[2];
    double until;
    bool mine;

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (strcmp(name, ranges[i].name) == 0)
            range = ranges[i].range;
    }
    mine = range == PMIX_RANGE_CUSTOM  ? me.rank == first || me.rank == second
           : range == PMIX_RANGE_LOCAL ? is_near(special)
                                       : range != PMIX_RANGE_PROC_LOCAL;
    listen_for(OUR_EVENT, PMIX_EXTERNAL_ERR_BASE - 43);
    need("PMIx_Fence", fence());
    if (me.rank == special) {
        PMIX_LOAD_PROCID(&targets[0], me.nspace, first);
        PMIX_LOAD_PROCID(&targets[1], me.nspace, second);
        raise_event(range, targets, 2);
    }
    for (until = now() + LIMIT_S; mine && me.rank != special && atomic_load(&heard) == 0 && now() < until;)
        pause_ms();
    /* What was on its way came before the fence's end. */
    need("PMIx_Fence", fence());
    if (me.rank != special && atomic_load(&heard) != mine) {
        fprintf(stderr, "rank %u: got %d events with range %s\n", me.rank, atomic_load(&heard), name);
        return 9;
    }
    return finish();
}

/* ------------------------------------------------------------------------ modex */

static void put_card(void)
{
    pmix_value_t v;

    memset(&v, 0, sizeof(v));
    v.type = PMIX_UINT32;
    v.data.uint32 = me.rank;
    need("PMIx_Put", PMIx_Put(PMIX_GLOBAL, "card", &v));
    need("PMIx_Commit", PMIx_Commit());
}

/* timeout_s: -1 for none. */
static pmix_status_t get_card(uint32_t rank, int timeout_s)
{
    pmix_info_t info;
    pmix_proc_t victim;
    pmix_value_t *v = NULL;
    pmix_status_t rc;

    PMIX_LOAD_PROCID(&victim, me.nspace, rank);
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &timeout_s, PMIX_INT);
    rc = PMIx_Get(&victim, "card", &info, timeout_s >= 0, &v);
    if (rc == PMIX_SUCCESS && v->data.uint32 != rank)
        exit(wrong("another's card"));
    if (rc == PMIX_SUCCESS)
        PMIX_VALUE_RELEASE(v);
    return rc;
}

/* It never commits, and each rank that gets its data fails in time. */
static int get_without_data(void)
{
    double begin = now(), took;
    pmix_status_t rc;

    if (me.rank != special) {
        put_card();
        rc = get_card(special, 1);
        took = now() - begin;
        if (rc != PMIX_ERR_TIMEOUT || took < 0.5 || took > 6) {
            fprintf(stderr, "rank %u: %s after %.3f s\n", me.rank, PMIx_Error_string(rc), took);
            return 9;
        }
    }
    need("PMIx_Fence", fence());
    if (me.rank == special)
        put_card();
    need("PMIx_Fence", fence());
    need("PMIx_Get after that", get_card(special, 5));
    need("PMIx_Fence", fence());
    return finish();
}

/* It commits while they wait. */
static int get_late(void)
{
    const struct timespec later = {0, 300000000};

    if (me.rank == special) {
        nanosleep(&later, NULL); /* the others call by then, or soon */
        put_card();
    } else {
        need("PMIx_Get", get_card(special, 20));
    }
    need("PMIx_Fence", fence());
    return finish();
}

/* It dies without having committed. before: they call before that, else after. */
static int get_of_the_dead(bool before, bool wrapped)
{
    const struct timespec later = {0, 300000000};
    double begin, until;
    pmix_status_t rc;

    listen_for(PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_TERM_WO_SYNC);
    need("PMIx_Fence", fence());
    if (me.rank == special) {
        if (before)
            nanosleep(&later, NULL);
        raise(SIGKILL);
    }
    /* A rank behind a wrapper ends without notice. */
    for (until = now() + LIMIT_S; !before && !wrapped && atomic_load(&died) < 0 && now() < until;)
        pause_ms();
    if (!before && wrapped)
        nanosleep(&later, NULL);
    begin = now();
    rc = get_card(special, is_near(special) ? 1 : -1);
    if (rc == PMIX_SUCCESS || now() - begin > 4) {
        fprintf(stderr, "rank %u: %s after %.3f s\n", me.rank, PMIx_Error_string(rc), now() - begin);
        return 9;
    }
    return finish();
}

/* All ranks of a host end well without a commit. late: the Get begins when that is over. */
static int get_of_departed(bool late)
{
    const struct timespec later = {0, 500000000};
    double begin;
    pmix_status_t rc;

    need("PMIx_Fence", fence());
    if (is_near(special))
        return finish();
    if (late)
        nanosleep(&later, NULL);
    begin = now();
    rc = get_card(special, -1);
    if (rc == PMIX_SUCCESS || now() - begin > 4) {
        fprintf(stderr, "rank %u: %s after %.3f s\n", me.rank, PMIx_Error_string(rc), now() - begin);
        return 9;
    }
    return finish();
}

/* ------------------------------------------------------------------------ fence */

/* It dies before the others come to a fence, or in it. */
static int fence_with_the_dead(bool in)
{
    const struct timespec later = {0, 300000000};

    need("PMIx_Fence", fence());
    if (me.rank == special) {
        if (in)
            nanosleep(&later, NULL);
        raise(SIGKILL);
    }
    if (!in)
        nanosleep(&later, NULL);
    if (fence() == PMIX_SUCCESS)
        return wrong("the fence succeeded without one of its participants");
    return finish();
}

static void late_event(uint32_t rank, bool send_notice)
{
    char key[32];
    pmix_info_t info;
    pmix_pdata_t data;
    int wait_s = 20;

    snprintf(key, sizeof(key), "late %u", rank);
    if (send_notice) {
        PMIX_INFO_LOAD(&info, key, key, PMIX_STRING);
        need("PMIx_Publish", PMIx_Publish(&info, 1));
        PMIX_INFO_DESTRUCT(&info);
        return;
    }
    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, key);
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &wait_s, PMIX_INT);
    need("PMIx_Lookup", PMIx_Lookup(&data, 1, &info, 1));
    PMIX_PDATA_DESTRUCT(&data);
}

/* One comes to a fence when the time of all others is over; then all come again, and it is whole. The time is a number of any type. */
static int fence_too_late(void)
{
    size_t another = 1;
    int timeout_s = 1;
    pmix_info_t info;
    pmix_status_t rc;
    double begin;

    for (int round = 0; round < 2; round++) {
        PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, round ? (void *)&another : &timeout_s, round ? PMIX_SIZE : PMIX_INT);
        need("PMIx_Fence", fence());
        begin = now();
        if (me.rank != special) {
            rc = PMIx_Fence(NULL, 0, &info, 1);
            if (rc != PMIX_ERR_TIMEOUT)
                return wrong(PMIx_Error_string(rc));
            if (now() - begin < 0.9 || now() - begin > LIMIT_S)
                return wrong("not the time that was given");
            late_event(me.rank + (uint32_t)round * size, true);
        }
        for (uint32_t i = 0; i < size && me.rank == special; i++) {
            if (i != special)
                late_event(i + (uint32_t)round * size, false);
        }
        need("PMIx_Fence once more", fence());
    }
    return finish();
}

/* -------------------------------------------------------------- fences of some ranks */

/* A file shows that a rank is that far: the ranks share the folder, not the machine. */
static void file_of(char name[64], const char *what, int round, uint32_t rank)
{
    snprintf(name, 64, "%s.%d.%u", what, round, rank);
}

static void say(const char *what, int round)
{
    char name[64];
    FILE *f;

    file_of(name, what, round, me.rank);
    f = fopen(name, "w");
    if (!f || fclose(f))
        exit(wrong("no file"));
}

static bool said(const char *what, int round, uint32_t rank)
{
    char name[64];

    file_of(name, what, round, rank);
    return access(name, F_OK) == 0;
}

/* Fence the ranks of a mask; every other one of them names the last rank first, in the same fence. */
static pmix_status_t fence_of(uint32_t mask, const pmix_info_t *info, size_t ninfo)
{
    pmix_proc_t procs[32];
    size_t n = 0;

    for (uint32_t i = 0; i < size; i++) {
        uint32_t r = me.rank % 2 ? size - 1 - i : i;
        if (mask >> r & 1) {
            PMIX_LOAD_PROCID(&procs[n], me.nspace, r); /* a macro, which names it more than once */
            n++;
        }
    }
    return PMIx_Fence(procs, n, info, ninfo);
}

/* It ends when all of the mask have come, without any other rank. */
static void meet(uint32_t mask, int round, bool collect)
{
    pmix_info_t info;
    bool yes = true;

    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    say("came", round);
    need("PMIx_Fence of some", fence_of(mask, &info, collect));
    for (uint32_t r = 0; r < size; r++) {
        if ((mask >> r & 1) && !said("came", round, r))
            exit(wrong("the fence ended before all of it had come"));
    }
    say("left", round);
}

static void watch(uint32_t mask, int round)
{
    double until = now() + 5 * LIMIT_S;

    for (uint32_t r = 0; r < size; r++) {
        while ((mask >> r & 1) && !said("left", round, r)) {
            if (now() > until)
                exit(wrong("the others' fence does not end without this one"));
            pause_ms();
        }
    }
}

/* One rank commits and ends, well or badly; its data stays available, also when a proxy client has replaced it. */
static int get_what_is_left(bool dies, bool late)
{
    const struct timespec later = {late ? 2 : 0, 300000000};

    put_card();
    need("PMIx_Fence", fence());
    if (me.rank == special && dies)
        raise(SIGKILL);
    if (me.rank == special)
        return finish();
    nanosleep(&later, NULL);
    need("PMIx_Get of what was left", get_card(special, is_near(special) ? 5 : -1));
    /* If no rank is left, none replies. */
    need("PMIx_Fence of those left", fence_of((1u << size) - 1 - (1u << special), NULL, 0));
    return finish();
}

/*
 * The ranks at both ends have committed more than one message between hosts holds: each a part that would go with nothing
 * else, and then the first one more. A fence of both parts fails, and a get of that one's; no more.
 */
static int too_much(void)
{
    static const size_t share = 40u << 20, more = 30u << 20;
    bool yes = true;
    pmix_proc_t first;
    pmix_value_t v, *got = NULL;
    pmix_info_t info;

    memset(&v, 0, sizeof(v));
    v.type = PMIX_BYTE_OBJECT;
    v.data.bo.size = share;
    v.data.bo.bytes = calloc(1, share);
    if (!v.data.bo.bytes)
        return wrong("no memory");
    if (me.rank == 0 || me.rank == size - 1) {
        need("PMIx_Put", PMIx_Put(PMIX_GLOBAL, "much", &v));
        need("PMIx_Commit", PMIx_Commit());
    }
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    if (PMIx_Fence(NULL, 0, &info, 1) == PMIX_SUCCESS)
        return wrong("80 MiB go by one message");
    v.data.bo.size = more;
    if (me.rank == 0) {
        need("PMIx_Put", PMIx_Put(PMIX_GLOBAL, "more", &v));
        need("PMIx_Commit", PMIx_Commit());
    }
    free(v.data.bo.bytes);
    need("PMIx_Fence", fence());
    PMIX_LOAD_PROCID(&first, me.nspace, 0);
    if (me.rank == size - 1 && PMIx_Get(&first, "more", NULL, 0, &got) == PMIX_SUCCESS)
        return wrong("70 MiB go by one message");
    need("PMIx_Fence", fence());
    return finish();
}

/* The bits of a mask stand for a quarter of the ranks each. */
static uint32_t quarters(uint32_t mask)
{
    uint32_t ranks = 0;

    for (uint32_t r = 0; r < size; r++)
        ranks |= (mask >> (r * 4 / size) & 1) << r;
    return ranks;
}

/* Of four ranks 0 and 1 are on one host, 2 and 3 on another, where there are two. */
static int fences_of_some(void)
{
    static const uint32_t whole[] = {0x7, 0xe, 0x6, 0x5, 0x9, 0x3, 0xc, 0x1, 0x8};
    static const uint32_t pairs[][2] = {{0x3, 0xc}, {0x5, 0xa}, {0x9, 0x6}, {0x1, 0xe}};
    int round = 0;

    put_card();
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++, round++) {
        uint32_t mask = quarters(whole[i]);
        if (mask >> me.rank & 1)
            meet(mask, round, i % 2);
        else
            watch(mask, round);
        if (i == 0) /* participants get what the others have put, and so does each other caller */
            need("PMIx_Get", get_card((me.rank + 1) % size, 20));
    }
    need("PMIx_Fence", fence());
    /* Disjoint ones at once; many, so that some go past each other. */
    for (int again = 0; again < 10; again++) {
        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++, round++)
            meet(quarters(pairs[i][quarters(pairs[i][1]) >> me.rank & 1]), round, again % 2);
    }
    /* Rings that overlap: each rank with its neighbours, one after the other. */
    for (uint32_t i = 0; i < 4 * size; i++, round++) {
        uint32_t mask = 1u << i % size | 1u << (i + 1) % size;
        if (mask >> me.rank & 1)
            meet(mask, round, false);
    }
    need("PMIx_Fence", fence());
    return finish();
}

/*
 * One of three dies before the fence, or in it, or never came; the fourth has no part. The three others go on.
 */
static int ends_among_some(bool in)
{
    /* Without a rank of the other host, and without the one beside the dying rank: no rank of its host comes then. */
    const uint32_t outside[] = {(special + 2) % size, special ^ 1}, full = (1u << size) - 1, left = full - (1u << special);
    const struct timespec later = {0, 300000000};

    if (!absent)
        need("PMIx_Fence", fence());
    if (me.rank == special) {
        if (in)
            nanosleep(&later, NULL);
        raise(SIGKILL);
    }
    /* FAR_DEAD: a file that exists once the client behind a script has died. */
    while (!in && getenv("FAR_DEAD") && access(getenv("FAR_DEAD"), F_OK))
        pause_ms();
    if (!in)
        nanosleep(&later, NULL);
    for (int i = 0; i < 2; i++) {
        if (me.rank != outside[i] && fence_of(full - (1u << outside[i]), NULL, 0) == PMIX_SUCCESS)
            return wrong("the fence succeeded without one of its participants");
    }
    if (fence() == PMIX_SUCCESS)
        return wrong("a fence of all came to a good end without one of them");
    meet(left, 0, false);
    meet(left, 1, true);
    return finish();
}

/*
 * Three ranks begin a fence with one that dies in that moment, again and again. Some of these fences begin when the PMIx server
 * has seen the death and has not handled it yet.
 */
static int fences_beside_deaths(void)
{
    const uint32_t living = 3;
    unsigned seed = 4711 + me.rank;

    need("PMIx_Fence", fence());
    for (uint32_t victim = living; victim < size; victim++) {
        if (me.rank == victim) {
            while (victim > living && !said("left", (int)victim - 1, 0))
                pause_ms();
            say("dies", (int)victim);
            raise(SIGKILL);
        }
        if (me.rank >= living)
            continue;
        while (!said("dies", (int)victim, victim))
            sched_yield();
        for (double until = now() + 1e-6 * (rand_r(&seed) % 1500); now() < until;)
            sched_yield();
        if (fence_of((1u << living) - 1 + (1u << victim), NULL, 0) == PMIX_SUCCESS)
            return wrong("the fence succeeded without one of its participants");
        meet((1u << living) - 1, (int)victim, false);
    }
    return finish();
}

/*
 * One finalizes before the others come to a fence with it, or when they are in it (before: they have come before that), and
 * its process lives for a while yet, or is over. They get that it will not come.
 */
static int fence_of_departed(bool over, bool before)
{
    const struct timespec while_yet = {0, 600000000}, later = {0, 300000000};
    uint32_t full = (1u << size) - 1, outside = (special + 2) % size;

    need("PMIx_Fence", fence());
    if (me.rank == special) {
        if (before)
            nanosleep(&later, NULL);
        need("PMIx_Finalize", PMIx_Finalize(NULL, 0));
        if (!over)
            nanosleep(&while_yet, NULL);
        puts("ok");
        return 0;
    }
    if (!before)
        nanosleep(&later, NULL);
    /* A fence that starts a second after the end of a member ends early for the ranks in it (doc/architecture.md). */
    say("came", 9);
    for (uint32_t r = 0; r < size; r++) {
        while (r != special && !said("came", 9, r))
            pause_ms();
    }
    if (me.rank != outside && fence_of(full - (1u << outside), NULL, 0) == PMIX_SUCCESS)
        return wrong("the fence succeeded without one of its participants");
    meet(full - (1u << special), 0, false);
    return finish();
}

/* One rank after the other leaves; the remaining ranks meet without them. */
static int leave_in_turn(void)
{
    for (uint32_t r = 0; r < me.rank; r++)
        need("PMIx_Fence of those left", fence_of((1u << size) - (1u << r), NULL, 0));
    need("PMIx_Fence of those left", fence_of((1u << size) - (1u << me.rank), NULL, 0));
    return finish();
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";

    special = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    absent = strcmp(mode, "absent-some") == 0;
    if (absent && atoi(getenv("PMIX_RANK")) == (int)special)
        return 0;
    start();
    if (strcmp(mode, "notify") == 0 && argc > 3)
        return raise_and_receive(argv[3]);
    if (strcmp(mode, "log-much") == 0)
        return log_much(TOO_MUCH_MIB);
    if (strcmp(mode, "abort-at-length") == 0)
        abort_at_length(TOO_MUCH_MIB);
    if (strcmp(mode, "get-in-vain") == 0)
        return get_without_data();
    if (strcmp(mode, "get-late") == 0)
        return get_late();
    if (strcmp(mode, "get-before-death") == 0)
        return get_of_the_dead(true, argc > 3);
    if (strcmp(mode, "get-after-death") == 0)
        return get_of_the_dead(false, argc > 3);
    if (strcmp(mode, "get-before-leave") == 0)
        return get_of_departed(false);
    if (strcmp(mode, "get-after-leave") == 0)
        return get_of_departed(true);
    if (strcmp(mode, "get-left") == 0)
        return get_what_is_left(argc > 3, false);
    if (strcmp(mode, "get-left-late") == 0)
        return get_what_is_left(false, true);
    if (strcmp(mode, "die-before-fence") == 0)
        return fence_with_the_dead(false);
    if (strcmp(mode, "die-in-fence") == 0)
        return fence_with_the_dead(true);
    if (strcmp(mode, "fence-late") == 0)
        return fence_too_late();
    if (strcmp(mode, "fence-some") == 0)
        return fences_of_some();
    if (strcmp(mode, "too-much") == 0)
        return too_much();
    if (strcmp(mode, "finalize-before-some") == 0)
        return fence_of_departed(false, false);
    if (strcmp(mode, "leave-in-some") == 0)
        return fence_of_departed(true, true);
    if (strcmp(mode, "leave-in-turn") == 0)
        return leave_in_turn();
    if (strcmp(mode, "leave-before-some") == 0)
        return fence_of_departed(true, false);
    if (strcmp(mode, "die-before-some") == 0)
        return ends_among_some(false);
    if (strcmp(mode, "die-in-some") == 0)
        return ends_among_some(true);
    if (strcmp(mode, "die-beside-some") == 0)
        return fences_beside_deaths();
    if (absent)
        return ends_among_some(false);
    fprintf(stderr, "unknown mode %s\n", mode);
    return 2;
}
