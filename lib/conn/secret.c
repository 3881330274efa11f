/* SPDX-License-Identifier: BSD-3-Clause */
/* secret.c: load the secret of a connection and prove that both sides have it. */
#include "lib/conn/secret.h"
#include "lib/base/auth.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------- loading */

static RK_PRINTF(4, 5) rank_status_t secret_wrong(rank_status_t status, char *why, size_t len, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, len, fmt, args);
    va_end(args);
    return status;
}

static rank_status_t require_sodium(struct rk_secret *out, char *why, size_t len)
{
    if (rk_auth_open())
        return RANK_OK;
    rk_secret_clear(out);
    return secret_wrong(RANK_ERR_NOT_SUPPORTED, why, len, "a connection with a secret needs libsodium: " RK_AUTH_MISSING);
}

/* Is the open file one that only this user can read and write? */
static rank_status_t check_secret_file(const char *path, int fd, char *why, size_t len)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return secret_wrong(RANK_ERR_CONFIG, why, len, "the secret's file %s cannot be examined: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return secret_wrong(RANK_ERR_CONFIG, why, len, "the secret's file %s is not a regular file", path);
    if (st.st_uid != geteuid())
        return secret_wrong(RANK_ERR_CONFIG, why, len, "the secret's file %s belongs to user %u, not to user %u of this "
                                                       "process; use a file of your own", path, (unsigned)st.st_uid,
                            (unsigned)geteuid());
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return secret_wrong(RANK_ERR_CONFIG, why, len, "the secret's file %s is open to others (mode %04o); run: chmod 600 %s",
                            path, (unsigned)(st.st_mode & 07777), path);
    return RANK_OK;
}

/* Read up to the size of data. Returns -1 with errno if that fails. */
static ssize_t read_secret_file(int fd, unsigned char *data, size_t size)
{
    size_t bytes = 0;

    while (bytes < size) {
        ssize_t n = read(fd, data + bytes, size - bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        bytes += (size_t)n;
    }
    return (ssize_t)bytes;
}

rank_status_t rk_secret_load_file(const char *path, struct rk_secret *out, char *why, size_t len)
{
    unsigned char data[RK_SECRET_MAX + 2]; /* a newline, and a byte that is too much */
    rank_status_t status;
    ssize_t bytes;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    out->bytes = 0;
    if (fd < 0)
        return secret_wrong(RANK_ERR_CONFIG, why, len, "the secret's file %s cannot be opened: %s", path, strerror(errno));
    status = check_secret_file(path, fd, why, len);
    if (status != RANK_OK) {
        close(fd);
        return status;
    }
    bytes = read_secret_file(fd, data, sizeof(data));
    if (bytes < 0)
        status = secret_wrong(RANK_ERR_CONFIG, why, len, "the secret's file %s cannot be read: %s", path, strerror(errno));
    close(fd);
    if (bytes > 0 && data[bytes - 1] == '\n')
        bytes--;
    if (status == RANK_OK && (bytes < RK_SECRET_MIN || bytes > RK_SECRET_MAX))
        status = secret_wrong(RANK_ERR_CONFIG, why, len, "the secret in %s has %s than %d bytes; it may have %d to %d", path,
                              bytes < RK_SECRET_MIN ? "less" : "more", bytes < RK_SECRET_MIN ? RK_SECRET_MIN : RK_SECRET_MAX,
                              RK_SECRET_MIN, RK_SECRET_MAX);
    if (status == RANK_OK) {
        memcpy(out->data, data, (size_t)bytes);
        out->bytes = (size_t)bytes;
    }
    explicit_bzero(data, sizeof(data));
    return status == RANK_OK ? require_sodium(out, why, len) : status;
}

rank_status_t rk_secret_load(const void *given, size_t bytes, struct rk_secret *out, char *why, size_t len)
{
    out->bytes = 0;
    if (!given && !bytes)
        return rk_conf.secret_file && rk_conf.secret_file[0] ? rk_secret_load_file(rk_conf.secret_file, out, why, len)
                                                             : RANK_OK;
    if (!given)
        return secret_wrong(RANK_ERR_ARG, why, len, "the secret is NULL and has %zu bytes", bytes);
    if (bytes < RK_SECRET_MIN || bytes > RK_SECRET_MAX)
        return secret_wrong(RANK_ERR_ARG, why, len, "the secret has %zu bytes; it may have %d to %d", bytes, RK_SECRET_MIN,
                            RK_SECRET_MAX);
    memcpy(out->data, given, bytes);
    out->bytes = bytes;
    return require_sodium(out, why, len);
}

void rk_secret_clear(struct rk_secret *secret)
{
    explicit_bzero(secret, sizeof(*secret));
}

/* ------------------------------------------------------------------- proofs */

rank_status_t rk_secret_prove(const struct rk_secret *secret, const char *label, const void *data, size_t len,
                              unsigned char mac[RK_SECRET_MAC])
{
    memset(mac, 0, RK_SECRET_MAC);
    if (!secret->bytes)
        return RANK_OK;
    if (!rk_auth_open())
        return RANK_ERR_NOT_SUPPORTED;
    rk_auth_mac(secret->data, secret->bytes, label, data, len, mac);
    return RANK_OK;
}

bool rk_secret_verify(const struct rk_secret *secret, const char *label, const void *data, size_t len,
                      const unsigned char mac[RK_SECRET_MAC])
{
    unsigned char expected[RK_SECRET_MAC];
    bool equal = rk_secret_prove(secret, label, data, len, expected) == RANK_OK &&
                 rk_auth_equal(mac, expected, sizeof(expected));

    explicit_bzero(expected, sizeof(expected));
    return equal;
}
