/*
 * world.h: the roof: what needs every room below it: joining and leaving, making teams and
 * symmetric memory.
 */
#ifndef RK_WORLD_WORLD_H
#define RK_WORLD_WORLD_H

#include "lib/base/ctx.h"

/* The context that rank_init made; NULL outside init and finalize. */
struct rk_ctx *rk_world_ctx(void);

#endif
