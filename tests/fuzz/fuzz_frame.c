/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_frame.c: decode and reorder bytes from the network as the ucx channel does.
 * The first byte gives the length of the head and whether the
 * data waits at the sender; head and data lie in memory of just their size.
 * The same bytes as a card, too, with our magic number before them.
 */
#include "lib/channel/ucx/decode.h"
#include "lib/channel/ucx/reorder.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len);

/* The handler of a frame reads all of its payload. */
static void read_all(const struct rk_hdr *hdr, const void *payload)
{
    const unsigned char *bytes = payload;
    unsigned sum = hdr->kind;

    for (uint32_t i = 0; i < hdr->len; i++)
        sum += bytes[i];
    __asm__ __volatile__("" : : "r"(sum)); /* the compiler must not leave the reading out */
}

static void drop(void *item, void *arg)
{
    (void)arg;
    free(item);
}

/* Packets with the turns that the fuzzer thinks of; none may be lost but by being refused. */
static void shuffle(const uint8_t *input, size_t len)
{
    struct rk_order o = {.due = len > 4 ? (uint32_t)-input[4] : 0};
    uint32_t taken = 0, held = 0;
    void *item;

    for (size_t i = 0; i + 2 <= len; i += 2) {
        uint32_t turn = o.due + (uint32_t)((int16_t)(input[i] | input[i + 1] << 8) / 16);

        switch (rk_order_compare(&o, turn)) {
        case RK_TURN_DUE:
            rk_order_advance(&o);
            break;
        case RK_TURN_EARLY:
            item = malloc(1);
            if (!item || rk_order_hold(&o, turn, item) != 0)
                free(item);
            else
                held++;
            break;
        case RK_TURN_STALE:
        case RK_TURN_BROKEN:
            break;
        }
        while ((item = rk_order_take(&o)) != NULL) {
            rk_order_advance(&o);
            free(item);
            taken++;
        }
    }
    if (held - taken != o.nheld)
        abort();
    rk_order_destroy(&o, drop, NULL);
}

/* Behind a good one there is an address. */
static void read_card(const uint8_t *input, size_t len)
{
    static const uint32_t magic = RK_UCX_CARD_MAGIC;
    size_t all = len + sizeof(magic);
    unsigned char *bytes = malloc(all);
    struct rk_ucx_card card;
    const void *address;

    if (!bytes)
        return;
    memcpy(bytes, &magic, sizeof(magic));
    memcpy(bytes + sizeof(magic), input, len);
    if (rk_ucx_card_decode(bytes, all, &card, &address) &&
        (all <= sizeof(card) || (const unsigned char *)address != bytes + sizeof(card) || memcmp(&card, bytes, sizeof(card)) != 0))
        abort();
    if (rk_ucx_card_decode(bytes + sizeof(magic), len, &card, &address) && card.magic != magic)
        abort();
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
    struct rk_ucx_packet p;
    const void *payload;
    unsigned char *head, *data;
    size_t head_len, frames = 0;
    struct rk_hdr hdr;
    bool rndv;

    if (len == 0)
        return 0;
    rndv = input[0] & 1;
    head_len = input[0] >> 1;
    input++;
    len--;
    shuffle(input, len);
    read_card(input, len);
    if (head_len > len)
        head_len = len;
    head = malloc(head_len + !head_len);
    data = malloc(len - head_len + !(len - head_len));
    if (head && data) {
        memcpy(head, input, head_len);
        memcpy(data, input + head_len, len - head_len);
        if (rk_ucx_decode(head, head_len, data, len - head_len, rndv, &p)) {
            while (rk_ucx_next(&p, &hdr, &payload)) {
                read_all(&hdr, payload);
                frames++;
            }
            /* A good packet has a frame, and no more than fit. */
            if (rndv ? frames != 0 : frames == 0 || (frames - 1) * sizeof(hdr) > len)
                abort();
        }
    }
    free(head);
    free(data);
    return 0;
}
