/* SPDX-License-Identifier: BSD-3-Clause */
/* random.c: see random.h. */
#include "lib/base/random.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

uint64_t rk_random_word(void)
{
    uint64_t n;

    if (!rk_random_secret(&n, sizeof(n)))
        n = rk_clock_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 40;
    return n;
}

/* Read from /dev/urandom: a filter of system calls may refuse getrandom. */
static bool random_from_device(void *out, size_t bytes)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, bytes);
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return n == (ssize_t)bytes;
}

bool rk_random_secret(void *out, size_t bytes)
{
    ssize_t n;

    do /* up to 256 bytes come whole */
        n = getrandom(out, bytes, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes || random_from_device(out, bytes);
}
