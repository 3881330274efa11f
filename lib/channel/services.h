/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * services.h: lend the core's functions to a module of the same build.
 *
 * The core's symbols are hidden; with librank.a they are not even in a shared object. A module gets a table of
 * functions and defines forwarders under the core's names (module_core.c, ucx/module_glue.c). So its code reads and
 * is tested like the rest of the library.
 */
#ifndef RK_CHANNEL_SERVICES_H
#define RK_CHANNEL_SERVICES_H

#include "config.h"

#include "lib/base/conf.h"
#include "lib/boot/boot.h"
#include "lib/core/engine.h"

#include <string.h>

#define RK_MODULE_MAGIC 0x4b4e4152u

/* Increase with every change of what core and module share that no struct size reveals. */
enum { RK_MODULE_ABI = 23 };

struct rk_services {
    uint32_t magic, abi;
    char version[16];   /* library version */
    uint32_t sizes[8];  /* of the shared structs: RK_MODULE_SIZES */

    const struct rk_conf *conf;
    const int *log_threshold;
    void (*log_text)(int level, const char *text);
    rank_status_t (*fail_text)(rank_status_t st, bool prints, const char *text); /* rk_fail or rk_fail_silent */
    const char *(*env)(const char *name);
    rank_status_t (*peer_card)(struct rk_peer *peer, const char *channel, void *data, size_t *len);
    struct rk_peer *(*engine_peer)(struct rk_ctx *ctx, int number);
    struct rk_peer *(*find_peer)(struct rk_ctx *ctx, struct rk_procid id);
    rank_status_t (*peer_connect)(struct rk_peer *peer);
    rank_status_t (*peer_try_connect)(struct rk_peer *peer);
    void (*send_control)(struct rk_peer *peer, uint8_t kind, uint64_t tag, const void *payload, uint32_t len);
    void (*report_death)(struct rk_ctx *ctx, int number);
    rank_status_t (*why_unreached)(struct rk_peer *peer);
    void (*req_complete)(struct rank_request *req, rank_status_t status);
    rank_status_t (*req_wait)(struct rank_request *req);
};

#define RK_MODULE_SIZES                                                                            \
    {                                                                                              \
        sizeof(struct rk_services), sizeof(struct rk_conf), sizeof(struct rk_boot),                \
            sizeof(struct rk_ctx), sizeof(struct rk_engine), sizeof(struct rk_peer),               \
            sizeof(struct rank_request), sizeof(struct rk_channel)                                 \
    }

/* Was a module built for these services? */
RK_INLINE bool rk_services_match(const struct rk_services *s)
{
    static const uint32_t sizes[RK_ARRAY_LEN(((struct rk_services *)0)->sizes)] = RK_MODULE_SIZES;

    return s->magic == RK_MODULE_MAGIC && s->abi == RK_MODULE_ABI &&
           strncmp(s->version, PACKAGE_VERSION, sizeof(s->version)) == 0 && memcmp(s->sizes, sizes, sizeof(sizes)) == 0;
}

/*
 * The only symbol of a module, in librank-NAME.so: its struct rk_channel (ucx) or struct rk_kind (all others). NULL
 * if it was not built for these services, or if its library finds no device.
 */
#define RK_MODULE_ENTRY "rank_module"
typedef const void *(*rk_module_entry_fn)(const struct rk_services *services);

#endif
