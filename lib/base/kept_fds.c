/* SPDX-License-Identifier: BSD-3-Clause */
/* kept_fds.c: detect that the program has closed the library's descriptors. */
#include "lib/base/kept_fds.h"
#include "lib/base/arg_error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_MAX = 8, PMIX_MAX = 32 };

static struct {
    int fd;
    ino_t ino;
    const char *what;
} kept[KEPT_MAX];
static int nkept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, when contexts open and close */

static struct {
    int fd;
    bool is_epoll;
} pmix[PMIX_MAX];
static int npmix;
static atomic_flag reported = ATOMIC_FLAG_INIT;

void rk_kept_fds_note(int fd, const char *what)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st))
        return;
    pthread_mutex_lock(&kept_lock);
    if (nkept < KEPT_MAX) {
        kept[nkept].fd = fd;
        kept[nkept].ino = st.st_ino;
        kept[nkept++].what = what;
    }
    pthread_mutex_unlock(&kept_lock);
}

void rk_kept_fds_forget(int fd)
{
    pthread_mutex_lock(&kept_lock);
    for (int i = 0; i < nkept; i++) {
        if (kept[i].fd == fd)
            kept[i--] = kept[--nkept];
    }
    pthread_mutex_unlock(&kept_lock);
}

void rk_kept_fds_lock(void)
{
    pthread_mutex_lock(&kept_lock);
}

void rk_kept_fds_unlock(void)
{
    pthread_mutex_unlock(&kept_lock);
}

int rk_kept_fds_lowest(void)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd;
}

void rk_kept_fds_note_pmix(int lowest)
{
    int end = rk_kept_fds_lowest();
    char path[32], to[32];

    npmix = 0;
    for (int fd = lowest; lowest >= 0 && fd < end && npmix < PMIX_MAX; fd++) {
        ssize_t n;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, to, sizeof(to) - 1);
        if (n <= 0)
            continue;
        to[n] = '\0';
        pmix[npmix].fd = fd;
        pmix[npmix++].is_epoll = strstr(to, "[eventpoll]") != NULL;
    }
}

static bool is_closed(int fd)
{
    return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

bool rk_kept_fds_pmix_closed(void)
{
    bool closed = false;

    for (int i = 0; i < npmix && !closed; i++)
        closed = is_closed(pmix[i].fd);
    return closed;
}

/*
 * libpmix's thread polls a closed descriptor in a loop and prints a warning each time. Open an idle descriptor
 * under the same number, if that is free.
 */
static void quiet_pmix(int fd)
{
    int empty = epoll_create1(EPOLL_CLOEXEC), got;

    if (empty < 0 || empty == fd)
        return;
    got = fcntl(empty, F_DUPFD_CLOEXEC, fd);
    if (got >= 0 && got != fd)
        close(got);
    close(empty);
}

static void report(const char *doing)
{
    char list[256];
    size_t n = 0;

    pthread_mutex_lock(&kept_lock);
    for (int i = 0; i < nkept && n < sizeof(list); i++) {
        if (is_closed(kept[i].fd))
            n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%d (%s)", n ? ", " : "", kept[i].fd, kept[i].what);
    }
    pthread_mutex_unlock(&kept_lock);
    for (int i = 0; i < npmix && n < sizeof(list); i++) {
        if (is_closed(pmix[i].fd))
            n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%d (libpmix)", n ? ", " : "", pmix[i].fd);
    }
    rk_fail(RANK_ERR_SYSTEM, "%s: the program has closed descriptors of the library: %s; call closefrom and the like before "
            "rank_init", doing, n ? list : "other files have their numbers now");
}

bool rk_kept_fds_closed(const char *doing)
{
    bool closed = false;
    struct stat st;
    int saved = errno;

    pthread_mutex_lock(&kept_lock);
    for (int i = 0; i < nkept && !closed; i++)
        closed = fstat(kept[i].fd, &st) ? errno == EBADF : st.st_ino != kept[i].ino;
    pthread_mutex_unlock(&kept_lock);
    if (closed && !atomic_flag_test_and_set(&reported)) {
        report(doing);
        for (int i = 0; i < npmix; i++) {
            if (pmix[i].is_epoll && is_closed(pmix[i].fd))
                quiet_pmix(pmix[i].fd);
        }
    }
    errno = saved;
    return closed;
}
