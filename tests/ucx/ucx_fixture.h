/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_fixture.h: run processes that talk through the ucx module.
 * They have the library's own engine, but no PMIx, launcher and matching. Cards go through memory that
 * the processes share, frames come to the test itself.
 */
#ifndef TESTS_UCX_UCX_FIXTURE_H
#define TESTS_UCX_UCX_FIXTURE_H

#include "lib/boot/boot.h"
#include "lib/core/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RIG_RANKS_MAX = 16, RIG_KEY_MAX = 1024 };

struct rig_shared {
    _Atomic int met[64]; /* barriers, one after the other */
    _Atomic uint64_t word[16];
    struct {
        size_t len;
        unsigned char bytes[RK_CARD_MAX];
    } card[RIG_RANKS_MAX];
    struct {
        size_t len;
        uint64_t base;
        unsigned char bytes[RIG_KEY_MAX];
    } key[RIG_RANKS_MAX];
};

struct rig {
    struct rk_ctx *ctx;
    const struct rk_channel *ucx;
    void *state;
    struct rig_shared *shared;
    int me, n, nmet;
    bool by_shm; /* UCX's shared memory may carry frames */
};

/* How UCX is set up: the transports that the user names (NULL: none), and whether ucx is forced. */
struct rig_way {
    const char *name, *tls;
    bool forced;
};

/* May frames between ranks of this node take UCX's shared memory? */
bool rig_by_shm(const struct rig_way *way);

/* Run body on n ranks; false if any fails, but for rank victim, which is to be killed (-1: none).
 * rma: with RANK_UCX_RMA=on. */
bool rig_run(const struct rig_way *way, int n, int victim, bool rma, void (*body)(struct rig *));

/* rk_wait for a condition and its argument. */
void rig_wait(struct rig *r, bool (*over)(void *), void *arg);
/* All ranks (or the first of them, if less than n) have come here; makes progress meanwhile. */
void rig_meet(struct rig *r, int n);
struct rk_peer *rig_peer(struct rig *r, int rank);
/* Put or get, and wait for it. */
rank_status_t rig_move(struct rig *r, bool put, struct rk_channel_mem *mem, int p, void *local, size_t bytes, size_t offset);
/* Offer until there is room. */
rank_status_t rig_send(struct rig *r, int to, const struct rk_hdr *hdr, const void *payload);

#define RIG_CHECK(what)                                                                            \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "# rank %d: %s:%d: %s\n", r->me, __FILE__, __LINE__, #what);           \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* The bodies. */
void storm_body(struct rig *r);
void sleep_body(struct rig *r);
void onesided_body(struct rig *r);
void death_body(struct rig *r);
void death_onesided_body(struct rig *r);
void death_flush_body(struct rig *r);
void death_receive_body(struct rig *r);
void late_body(struct rig *r);
void goodbye_body(struct rig *r);
void unauthenticated_body(struct rig *r);
void unauthenticated_rma_body(struct rig *r);
void hostile_body(struct rig *r);
void hostile_rma_body(struct rig *r);
void hostile_p2p_body(struct rig *r);
void hostile_much_body(struct rig *r);
void noise_body(struct rig *r);

#endif
