/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.h: link structs in an intrusive doubly linked list.
 *
 * A head is a link that points to itself when empty.
 */
#ifndef RK_BASE_LIST_H
#define RK_BASE_LIST_H

#include "lib/base/compiler.h"

struct rk_link {
    struct rk_link *next, *prev;
};

RK_INLINE void rk_list_init(struct rk_link *head)
{
    head->next = head->prev = head;
}

RK_INLINE int rk_list_empty(const struct rk_link *head)
{
    return head->next == head;
}

/* Insert before the link at; with the head as at this appends. */
RK_INLINE void rk_list_insert_before(struct rk_link *at, struct rk_link *link)
{
    link->next = at;
    link->prev = at->prev;
    at->prev->next = link;
    at->prev = link;
}

RK_INLINE void rk_list_append(struct rk_link *head, struct rk_link *link)
{
    rk_list_insert_before(head, link);
}

/* Unlink. The link then points to itself, so that unlinking twice is harmless. */
RK_INLINE void rk_list_remove(struct rk_link *link)
{
    link->next->prev = link->prev;
    link->prev->next = link->next;
    link->next = link->prev = link;
}

#define rk_list_entry(link, type, member) rk_container_of(link, type, member)

#define rk_list_for_each(pos, head) for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)

#define rk_list_for_each_safe(pos, tmp, head)                                                      \
    for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); (pos) = (tmp), (tmp) = (pos)->next)

#endif
