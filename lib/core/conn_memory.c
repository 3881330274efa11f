/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_memory.c: count what this context keeps for peers of connections. */
#include "lib/core/conn_memory.h"
#include "lib/base/conf.h"

bool rk_peer_memory_fits(struct rk_peer *peer)
{
    const struct rk_engine *e = peer->ctx->engine;

    if (peer->condemned)
        return false;
    if (e->conn_memory <= rk_conf.conn_memory || peer->keeps <= rk_conf.conn_memory / e->conn_keepers)
        return true;
    rk_peer_condemn(peer, "%lld kB wait here for receives of this process, or for the peer, and %lld kB for those of all connections "
                          "(see RANK_CONN_MEMORY)", (long long)(peer->keeps / 1000), (long long)(e->conn_memory / 1000));
    return false;
}

/* Bytes of an earlier process with this number may come back: they are not counted any more. */
void rk_peer_memory_count(struct rk_peer *peer, int64_t bytes)
{
    struct rk_engine *e = peer->ctx->engine;

    if (bytes < -peer->keeps)
        bytes = -peer->keeps;
    e->conn_keepers -= peer->keeps > 0;
    peer->keeps += bytes;
    e->conn_memory += bytes;
    e->conn_keepers += peer->keeps > 0;
}
