/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_shake.c: see raw_shake.h. */
#include "tests/conn/raw_shake.h"

#include <sys/socket.h>

bool raw_sends(int fd, const void *data, size_t len)
{
    return send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len;
}

bool raw_message(int fd, struct rk_shake *m)
{
    unsigned char bytes[RK_SHAKE_MAX];
    size_t got = 0;
    ssize_t n;

    while ((n = rk_shake_next(bytes, got, m)) == 0) {
        n = recv(fd, bytes + got, m->need - got, 0);
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return n > 0;
}

void raw_say(int fd, const struct rk_shake *m)
{
    unsigned char bytes[RK_SHAKE_MAX];

    raw_sends(fd, bytes, rk_shake_encode(m, bytes));
}
