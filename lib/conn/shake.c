/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shake.c: carry out handshakes as their bytes arrive.
 *
 * Each side reads no byte beyond the message that it awaits, so that frames stay in the socket. Messages are short: one
 * that the socket does not take at once ends the handshake.
 */
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/conn/conns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void rk_shake_settle(struct rk_shaking *s, rank_status_t st, const char *why)
{
    if (s->over)
        return;
    s->over = true;
    s->status = st;
    s->of->tcp->handled++;
    if (why)
        snprintf(s->why, sizeof(s->why), "%s", why);
    rk_tcp_unwatch(s->of->tcp, &s->source);
    if (s->listener)
        s->listener->shaken(s);
    else
        s->of->tcp->settled = true;
}

static void send_message(struct rk_shaking *s, const struct rk_shake *m, const struct rk_secret *secret)
{
    unsigned char bytes[RK_SHAKE_MAX], covered[RK_SHAKE_SIGNED_MAX];
    size_t len = rk_shake_encode(m, bytes), n = rk_shake_signed(s->nonce[0], s->nonce[1], bytes, len, covered);
    rank_status_t st = n && secret ? rk_secret_prove(secret, rk_shake_label(m->type), covered, n, bytes + RK_SHAKE_HEAD) : RANK_OK;

    if (st)
        rk_shake_settle(s, st, "libsodium is missing");
    else if (send(s->source.fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)len)
        rk_shake_settle(s, RANK_ERR_UNREACHABLE, strerror(errno));
}

static void shake_refuse(struct rk_shaking *s, rank_status_t st, const char *text)
{
    struct rk_shake no = {.type = RK_SHAKE_REFUSED, .status = st};

    snprintf(no.text, sizeof(no.text), "%s", text);
    send_message(s, &no, NULL);
    rk_shake_settle(s, st, text);
}

static void identify(const struct rk_shaking *s, struct rk_shake *m)
{
    m->context = s->of->context;
    m->host = s->of->host;
    m->pid = (uint32_t)getpid();
    m->uid = (uint32_t)geteuid();
    m->window = (uint32_t)rk_conf.eager_window;
    m->team = s->team;
    memcpy(m->name, s->of->name, sizeof(m->name));
    m->hello_bytes = s->opts->hello_bytes;
    memcpy(m->hello, s->opts->hello, s->opts->hello_bytes);
}

static void shake_await(struct rk_shaking *s, enum rk_shake_type type)
{
    s->next = type;
    s->got = 0;
    s->need = RK_SHAKE_HEAD;
}

/* Is the other side's mac right? The message is in s->in. */
static bool is_proved(const struct rk_shaking *s, const struct rk_shake *m)
{
    unsigned char covered[RK_SHAKE_SIGNED_MAX];
    size_t n = rk_shake_signed(s->nonce[0], s->nonce[1], s->in, s->got, covered);

    return n && rk_secret_verify(&s->opts->secret, rk_shake_label(m->type), covered, n, m->mac);
}

static void send_hello(struct rk_shaking *s)
{
    struct rk_shake hello = {.type = RK_SHAKE_HELLO};

    memcpy(hello.nonce, s->nonce[0], sizeof(hello.nonce));
    rk_tcp_rewatch(s->of->tcp, &s->source, EPOLLIN | EPOLLRDHUP);
    shake_await(s, RK_SHAKE_CHALLENGE);
    send_message(s, &hello, NULL);
}

/* Server. */
static void hello_came(struct rk_shaking *s, const struct rk_shake *m)
{
    struct rk_shake challenge = {.type = RK_SHAKE_CHALLENGE, .secret_wanted = s->opts->secret.bytes > 0};

    memcpy(s->nonce[0], m->nonce, sizeof(s->nonce[0]));
    memcpy(challenge.nonce, s->nonce[1], sizeof(challenge.nonce));
    shake_await(s, RK_SHAKE_PROOF);
    send_message(s, &challenge, NULL);
}

/* Client. */
static void challenge_came(struct rk_shaking *s, const struct rk_shake *m)
{
    struct rk_shake proof = {.type = RK_SHAKE_PROOF};
    bool has = s->opts->secret.bytes > 0;

    if (m->secret_wanted != has) {
        shake_refuse(s, RANK_ERR_SECRET, has ? "the client has a secret, the listener has none" :
                                         "the listener wants a secret: set opts.secret or RANK_SECRET_FILE");
        return;
    }
    memcpy(s->nonce[1], m->nonce, sizeof(s->nonce[1]));
    identify(s, &proof);
    rk_conn_ucx_add_card(s, &proof);
    shake_await(s, RK_SHAKE_WELCOME);
    send_message(s, &proof, &s->opts->secret);
}

/* Is the peer a process of this user on this host, and may the connection use shared memory? */
static bool wants_segment(const struct rk_shaking *s)
{
    return s->of->host && s->peer.host == s->of->host && !(s->opts->flags & RANK_CONN_NO_SHM) &&
           rk_conf.channels & RK_CONF_SHM && rk_pair_may_share(s->of->ctx, s->peer.pid, s->peer.uid);
}

/* Server. */
static void offer_segment(struct rk_shaking *s, struct rk_shake *welcome)
{
    struct rk_memfd_card card;

    if (!wants_segment(s) || rk_pair_create(s->of->ctx, &s->node, &card) != RANK_OK)
        return;
    welcome->segment = card.nonce;
    welcome->segment_bytes = card.bytes;
    welcome->segment_fd = (uint32_t)card.fd;
}

/* Client. */
static void take_offer(struct rk_shaking *s)
{
    const struct rk_memfd_card card = {s->peer.segment, s->peer.segment_bytes, (int32_t)s->peer.pid, (int32_t)s->peer.segment_fd};
    struct rk_shake ready = {.type = RK_SHAKE_READY};

    if (s->peer.segment && wants_segment(s) && rk_pair_attach(s->of->ctx, &card, &s->node) == RANK_OK)
        ready.takes = RK_SHAKE_TAKES_SEGMENT;
    else if (rk_conn_ucx_prepare(s))
        ready.takes = RK_SHAKE_TAKES_CARD;
    send_message(s, &ready, NULL);
}

/* Server. */
static void proof_came(struct rk_shaking *s, const struct rk_shake *m)
{
    struct rk_shake welcome = {.type = RK_SHAKE_WELCOME};
    const char *refusal;

    if (!is_proved(s, m)) {
        shake_refuse(s, RANK_ERR_SECRET, "the secrets differ");
        return;
    }
    s->peer = *m;
    refusal = s->listener->refusal ? s->listener->refusal(s) : NULL;
    if (refusal) {
        shake_refuse(s, RANK_ERR_REFUSED, refusal);
        return;
    }
    if (m->context == s->of->context) { /* both teams would have one id */
        shake_refuse(s, RANK_ERR_REFUSED, "a context cannot connect to itself: open another one");
        return;
    }
    if (s->listener->count->n >= s->opts->max_conns) {
        shake_refuse(s, RANK_ERR_REFUSED, "the listener has as many connections as it may have");
        return;
    }
    if (!rk_team_secret_id(&s->team)) {
        shake_refuse(s, RANK_ERR_NO_MEMORY, "the kernel gives no random bytes");
        return;
    }
    s->proved = s->opts->secret.bytes > 0;
    identify(s, &welcome);
    offer_segment(s, &welcome);
    if (!s->node && rk_conn_ucx_prepare(s))
        rk_conn_ucx_add_card(s, &welcome);
    if (s->node || s->ucx_link)
        shake_await(s, RK_SHAKE_READY);
    send_message(s, &welcome, &s->opts->secret);
    if (!s->node && !s->ucx_link)
        rk_shake_settle(s, RANK_OK, NULL);
}

/* Server. */
static void ready_came(struct rk_shaking *s, const struct rk_shake *m)
{
    bool segment = m->takes == RK_SHAKE_TAKES_SEGMENT, card = m->takes == RK_SHAKE_TAKES_CARD;

    if (segment && (!s->node || !rk_pair_is_attached(s->node))) {
        shake_refuse(s, RANK_ERR_REFUSED, "the client has not attached the segment");
        return;
    }
    if (card && !s->ucx_link) {
        shake_refuse(s, RANK_ERR_REFUSED, "the client takes a card that was not offered");
        return;
    }
    if (!segment) {
        rk_pair_drop(s->node);
        s->node = NULL;
    }
    if (!card)
        rk_conn_ucx_drop(s);
    rk_shake_settle(s, RANK_OK, NULL);
}

/* Client. */
static void welcome_came(struct rk_shaking *s, const struct rk_shake *m)
{
    if (!is_proved(s, m)) {
        rk_shake_settle(s, RANK_ERR_SECRET, "the listener has another secret");
        return;
    }
    s->peer = *m;
    s->proved = s->opts->secret.bytes > 0;
    s->team = m->team;
    if (m->segment || m->card_bytes)
        take_offer(s);
    rk_shake_settle(s, m->team & RK_TEAM_MIXED && !(m->team & RK_TEAM_COLL) ? RANK_OK : RANK_ERR_REFUSED, "it gave no valid team");
}

static void message_came(struct rk_shaking *s, const struct rk_shake *m)
{
    if (m->type == RK_SHAKE_REFUSED) {
        rk_shake_settle(s, m->status, m->text);
        return;
    }
    if (m->type != s->next) {
        shake_refuse(s, RANK_ERR_REFUSED, "a message of the handshake is out of order");
        return;
    }
    switch (m->type) {
    case RK_SHAKE_HELLO:
        hello_came(s, m);
        break;
    case RK_SHAKE_CHALLENGE:
        challenge_came(s, m);
        break;
    case RK_SHAKE_PROOF:
        proof_came(s, m);
        break;
    case RK_SHAKE_READY:
        ready_came(s, m);
        break;
    default:
        welcome_came(s, m);
    }
}

static void read_more(struct rk_shaking *s)
{
    while (!s->over) {
        ssize_t n = recv(s->source.fd, s->in + s->got, s->need - s->got, MSG_DONTWAIT);
        struct rk_shake m;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n <= 0) {
            rk_shake_settle(s, RANK_ERR_UNREACHABLE, n < 0 ? strerror(errno) : "the other side has ended the handshake");
            return;
        }
        s->got += (size_t)n;
        n = rk_shake_next(s->in, s->got, &m);
        if (n < 0)
            shake_refuse(s, RANK_ERR_REFUSED, m.why);
        else if (n == 0 && m.need > sizeof(s->in))
            shake_refuse(s, RANK_ERR_REFUSED, "a message of the handshake is too long");
        else if (n == 0)
            s->need = m.need;
        else
            message_came(s, &m);
    }
}

static void shaking_ready(struct rk_tcp_source *source, uint32_t events)
{
    struct rk_shaking *s = rk_container_of(source, struct rk_shaking, source);
    socklen_t len = sizeof(int);
    int error = 0;

    if (s->next) {
        read_more(s);
        return;
    }
    if (getsockopt(s->source.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error)
        rk_shake_settle(s, RANK_ERR_UNREACHABLE, error == ECONNREFUSED ? "nothing listens there (Connection refused)" : strerror(error));
    else if (events & EPOLLOUT)
        send_hello(s);
}

struct rk_shaking *rk_shake_begin(struct rk_conns *c, int fd, rank_listener_t listener, const struct rk_conn_opts *opts)
{
    struct rk_shaking *s = calloc(1, sizeof(*s));

    if (!s || !rk_random_secret(s->nonce[listener != NULL], sizeof(s->nonce[0]))) {
        free(s);
        close(fd);
        return NULL;
    }
    s->source = (struct rk_tcp_source){.fd = fd, .ready = shaking_ready};
    s->of = c;
    s->listener = listener;
    s->opts = opts;
    s->begun = rk_clock_ns();
    s->deadline = s->begun + opts->timeout_ns;
    if (listener)
        shake_await(s, RK_SHAKE_HELLO);
    if (rk_tcp_watch(c->tcp, &s->source, listener ? EPOLLIN | EPOLLRDHUP : EPOLLOUT)) {
        close(fd);
        free(s);
        return NULL;
    }
    rk_list_append(listener ? &listener->half_open : &c->clients, &s->link);
    return s;
}

void rk_shake_end(struct rk_shaking *s)
{
    if (!s->over)
        rk_tcp_unwatch(s->of->tcp, &s->source);
    rk_list_remove(&s->link);
    if (s->source.fd >= 0)
        close(s->source.fd);
    rk_pair_drop(s->node);
    rk_conn_ucx_drop(s);
    free(s);
}
