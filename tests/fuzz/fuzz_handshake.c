/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_handshake.c: decode the messages of a handshake as a socket delivers them.
 *
 * The first byte says how many bytes arrive at once at most. What is accepted is encoded again and must give the same
 * bytes, but for characters that the decoder replaces.
 */
#include "lib/conn/handshake_wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool is_text(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

/* One message, complete. */
static void check_message(const uint8_t *message, size_t len, const struct rk_shake *m)
{
    static const unsigned char nonce[RK_SHAKE_NONCE];
    unsigned char again[RK_SHAKE_MAX], covered[RK_SHAKE_SIGNED_MAX];
    size_t n = rk_shake_signed(nonce, nonce, message, len, covered);

    require(len <= RK_SHAKE_MAX && m->need == len && is_text(m->name) && is_text(m->text));
    require(strnlen(m->name, RK_SHAKE_NAME) < RK_SHAKE_NAME && m->hello_bytes <= RK_SHAKE_HELLO_MAX &&
            m->card_bytes <= RK_SHAKE_CARD_MAX);
    require(n == (rk_shake_label(m->type) ? 2 * RK_SHAKE_NONCE + len - RK_SHAKE_MAC : 0));
    require(rk_shake_encode(m, again) == len);
    if (!strchr(m->name, '?') && !strchr(m->text, '?'))
        require(memcmp(message, again, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
    size_t step, have = 0;
    struct rk_shake m;

    if (len == 0)
        return 0;
    step = 1u + *input++;
    len--;
    for (;;) {
        /* of just its size, so that a read past the end is found */
        uint8_t *copy = malloc(have ? have : 1);
        ssize_t used;

        if (!copy)
            return 0;
        memcpy(copy, input, have);
        used = rk_shake_next(copy, have, &m);
        if (used > 0)
            check_message(copy, (size_t)used, &m);
        free(copy);
        if (used < 0) {
            require(m.why[0] && memchr(m.why, '\0', sizeof(m.why)));
            return 0;
        }
        if (used > 0) {
            require((size_t)used <= have);
            input += used;
            len -= (size_t)used;
            have = 0; /* the reader takes what the next message needs, and no more */
            continue;
        }
        require(m.need > have && m.need <= RK_SHAKE_MAX);
        if (have == len)
            return 0;
        have += step < m.need - have ? step : m.need - have;
        if (have > len)
            have = len;
    }
}
