/* SPDX-License-Identifier: BSD-3-Clause */
/* pattern.c: compute communication patterns. */
#include "collectives/pattern.h"

int rk_log2_ceil(int n)
{
    int k = 0;

    while ((int64_t)1 << k < n)
        k++;
    return k;
}

int rk_pow2_floor(int n)
{
    int p = 1;

    while (p <= n / 2)
        p *= 2;
    return p;
}

void rk_tree_binomial(int vrank, int size, struct rk_tree *tree)
{
    int64_t width = 1; /* of the subtrees at the present level */

    tree->children = 0;
    for (; width < size && !(vrank & width); width *= 2) { /* from the leaves upwards: vrank is the left of a pair */
        int64_t child = vrank + width;

        if (child >= size)
            continue;
        tree->child[tree->children] = (int)child;
        tree->child_span[tree->children++] = (int)(child + width <= size ? width : size - child);
    }
    tree->parent = vrank > 0 ? (int)(vrank - width) : -1;
    tree->span = (int)(vrank + width <= size ? width : size - vrank);
}

void rk_dissemination(int rank, int size, int round, int *to, int *from)
{
    *to = rk_ring(rank, 1 << round, size);
    *from = rk_ring(rank, -(1 << round), size);
}

struct rk_fold rk_fold(int rank, int size)
{
    struct rk_fold f = {.pow2 = rk_pow2_floor(size), .partner = -1};

    f.rest = size - f.pow2;
    if (rank >= 2 * f.rest) {
        f.vrank = rank - f.rest;
    } else {
        f.vrank = rank % 2 ? rank / 2 : -1;
        f.partner = rank ^ 1;
    }
    return f;
}

int rk_unfold(int vrank, int size)
{
    int rest = size - rk_pow2_floor(size);

    return vrank < rest ? 2 * vrank + 1 : vrank + rest;
}

void rk_fold_members(int vrank, int size, int *first, int *n)
{
    int rest = size - rk_pow2_floor(size);

    *first = vrank < rest ? 2 * vrank : vrank + rest;
    *n = vrank < rest ? 2 : 1;
}

struct rk_halving rk_halving(int vrank, int pow2, int round)
{
    struct rk_halving h = {.half = pow2 >> (round + 1)};

    h.peer = vrank ^ h.half;
    h.keep = vrank & -h.half;
    h.give = h.peer & -h.half;
    return h;
}

int rk_place(int vrank, int pow2)
{
    int place = 0;

    for (int bit = 1; bit < pow2; bit *= 2, vrank /= 2)
        place = place * 2 + (vrank & 1);
    return place;
}

int rk_place_first(int place, int size)
{
    int pow2 = rk_pow2_floor(size), rest = size - pow2, first = place;

    /* Places before this one, in runs of a power of two: their vranks are equally far apart. */
    for (int run = pow2, at = 0; run > 0; run /= 2) {
        int stride = pow2 / run, vrank;

        if (!(place & run))
            continue;
        vrank = rk_place(at, pow2);
        first += vrank < rest ? (rest - vrank + stride - 1) / stride : 0; /* those of two ranks */
        at += run;
    }
    return first;
}

void rk_bruck_gather(int rank, int size, int round, int *to, int *from, int *n)
{
    int have = 1 << round;

    *to = rk_ring(rank, -have, size);
    *from = rk_ring(rank, have, size);
    *n = have <= size - have ? have : size - have;
}

void rk_pairwise(int rank, int size, int step, int *to, int *from)
{
    if (rk_is_pow2(size)) {
        *to = *from = rank ^ step;
    } else {
        *to = rk_ring(rank, step, size);
        *from = rk_ring(rank, -step, size);
    }
}
