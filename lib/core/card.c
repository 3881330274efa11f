/* SPDX-License-Identifier: BSD-3-Clause */
/* card.c: pack the addresses of channels into one blob. */
#include "lib/core/card.h"
#include "lib/boot/boot.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct part {
    char channel[6];
    uint16_t bytes;
};

bool rk_card_add(unsigned char **card, size_t *len, const char *channel, const void *part, size_t bytes)
{
    struct part head = {.bytes = (uint16_t)bytes};
    unsigned char *grown;

    if (*len + sizeof(head) + bytes > RK_CARD_MAX || strlen(channel) >= sizeof(head.channel))
        return false;
    grown = realloc(*card, *len + sizeof(head) + bytes);
    if (!grown)
        return false;
    memcpy(head.channel, channel, strlen(channel));
    memcpy(grown + *len, &head, sizeof(head));
    memcpy(grown + *len + sizeof(head), part, bytes);
    *card = grown;
    *len += sizeof(head) + bytes;
    return true;
}

const void *rk_card_part(const void *card, size_t len, const char *channel, size_t *bytes)
{
    const unsigned char *at = card, *end = at + len;
    struct part head;

    while ((size_t)(end - at) >= sizeof(head)) {
        memcpy(&head, at, sizeof(head));
        at += sizeof(head);
        if (head.bytes > (size_t)(end - at))
            return NULL;
        *bytes = head.bytes;
        if (strncmp(head.channel, channel, sizeof(head.channel)) == 0)
            return at;
        at += head.bytes;
    }
    return NULL;
}
