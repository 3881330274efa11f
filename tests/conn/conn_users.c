/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_users.c: connect processes of two users of a host, and false listeners.
 *
 * Two users never share a segment: their connection goes by its socket. The false listener speaks the handshake by hand,
 * claims to be the client's user, and offers memory that another user owns or that can be truncated. Cases of two users
 * need root.
 */
#include "lib/node/node.h"
#include "tests/conn/conn_pair.h"
#include "tests/conn/raw_shake.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OTHER_USER = 65534, PAGE = 4096, SEGMENT = 8 * PAGE, TAG = 7 };
enum { NEVER = -1 };
static int side_of_other; /* which side is another user, or NEVER */
static bool sealed;       /* by the false listener */

/* Side 1 runs as this user, and side 0 as well unless it is the other one. */
static void become_user(const struct pair *p)
{
    if (p->me != side_of_other)
        return;
    CHECK(setresgid(OTHER_USER, OTHER_USER, OTHER_USER) == 0 && setresuid(OTHER_USER, OTHER_USER, OTHER_USER) == 0);
    CHECK(prctl(PR_SET_DUMPABLE, 1) == 0); /* so that /proc shows its descriptors, as those of any program */
}

/* ---------------------------------------------------------------------------- two users */

static void honest_side(struct pair *p)
{
    rank_conn_info_t info = {.size = sizeof(info)};
    rank_conn_opts_t opts = pair_opts();
    rank_listener_t listener = NULL;
    int64_t x = p->me, y = -1;
    rank_team_t conn;
    rank_ctx_t ctx;

    become_user(p);
    ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
    if (p->me == 0)
        listener = pair_listen(p, ctx, &opts);
    conn = pair_connect(p, ctx, listener);
    OK(rank_conn_info(conn, &info));
    CHECK(strcmp(info.channel, side_of_other == NEVER ? "shm" : "tcp") == 0);
    OK(rank_sendrecv(&x, 1, RANK_INT64, p->me, TAG, &y, 1, RANK_INT64, p->me, TAG, conn, NULL));
    CHECK(y == 1 - p->me);
    OK(rank_barrier(conn));
    OK(rank_ctx_close(&ctx, 20 * SECOND));
}

/* ---------------------------------------------------------------------- a false listener */

/* Memory that a client would take for the segment of a connection. Returns its descriptor. */
static int make_segment(uint64_t nonce)
{
    const size_t front = rk_round_up(sizeof(struct rk_node_head), 64) + 2 * (sizeof(struct rk_node_slot) + sizeof(struct rk_affinity));
    int fd = memfd_create("librank", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct rk_node_head *head;

    CHECK(fd >= 0 && front <= SEGMENT && ftruncate(fd, SEGMENT) == 0);
    CHECK(!sealed || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    head = mmap(NULL, SEGMENT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(head != MAP_FAILED);
    head->nonce = nonce;
    head->nlocal = 2;
    head->rank_bytes = sizeof(struct rk_node_slot) + sizeof(struct rk_affinity);
    return fd;
}

static int accept_client(struct pair *p)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int at = socket(AF_INET, SOCK_STREAM, 0), fd;
    char address[PAIR_ADDRESS] = "";
    socklen_t len = sizeof(a);

    CHECK(at >= 0 && bind(at, (struct sockaddr *)&a, len) == 0 && listen(at, 1) == 0);
    CHECK(getsockname(at, (struct sockaddr *)&a, &len) == 0);
    snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(a.sin_port));
    pair_put(p, address, sizeof(address));
    fd = accept(at, NULL, NULL);
    CHECK(fd >= 0);
    return fd;
}

/* Returns what the client takes. */
static int offer_to_client(int fd)
{
    struct rk_shake challenge = {.type = RK_SHAKE_CHALLENGE}, m, welcome = {.type = RK_SHAKE_WELCOME, .context = 1, .name = "false"};

    CHECK(raw_message(fd, &m) && m.type == RK_SHAKE_HELLO);
    raw_say(fd, &challenge);
    CHECK(raw_message(fd, &m) && m.type == RK_SHAKE_PROOF);
    welcome.host = m.host;
    welcome.uid = m.uid; /* a lie, if this is another user */
    welcome.pid = (uint32_t)getpid();
    welcome.segment = 0x1234567890abcdee;
    welcome.segment_bytes = SEGMENT;
    welcome.segment_fd = (uint32_t)make_segment(welcome.segment);
    raw_say(fd, &welcome);
    CHECK(raw_message(fd, &m) && m.type == RK_SHAKE_READY);
    return m.takes;
}

static void false_side(struct pair *p)
{
    bool own = side_of_other == NEVER;

    become_user(p);
    if (p->me == 0) {
        CHECK(offer_to_client(accept_client(p)) == (own && sealed ? RK_SHAKE_TAKES_SEGMENT : RK_SHAKE_TAKES_NONE));
    } else {
        rank_ctx_t ctx = pair_context(RANK_THREAD_MULTIPLE, 0);
        rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
        char address[PAIR_ADDRESS];
        rank_team_t conn;

        pair_get(p, address, sizeof(address));
        STATUS(rank_connect(ctx, address, &opts, &conn), RANK_ERR_REFUSED); /* it has no team */
        OK(rank_ctx_close(&ctx, 20 * SECOND));
    }
}

int main(void)
{
    const char *what[] = {"the same user", "the listener is another user", "the client is another user"};
    int users = geteuid() == 0 ? 2 : 0;
    bool ok = true;

    if (users == 0)
        printf("ok - two users # SKIP not root\n");
    for (int other = NEVER; other < users; other++) {
        side_of_other = other;
        ok &= pair_run(what[other + 1], honest_side, 1, 60, false);
    }
    for (int other = NEVER; other < users / 2; other++) {
        side_of_other = other;
        for (int i = 0; i < 2; i++) {
            sealed = i == 1;
            ok &= pair_run(sealed ? "a false listener, sealed memory" : "a false listener", false_side, 1, 60, false);
        }
    }
    return ok ? 0 : 1;
}
