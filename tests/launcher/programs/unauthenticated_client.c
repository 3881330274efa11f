/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unauthenticated_client.c: send bad requests to a job's socket, or leave one.
 *
 *   unauthenticated_client garbage|half|silent|more|deaf|flood SOCKET
 *   unauthenticated_client leave SOCKET
 *
 * The first forms exit with 0 if the only reply is a close, within 15 s
 * (deaf sends a valid request and never reads: it counts as closed when the reply
 * can be read to its end). The last leaves a socket without a listener.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int meet(const char *path, bool leave)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), rc;

    if (strlen(path) >= sizeof(to.sun_path)) {
        fprintf(stderr, "unauthenticated_client: %s is too long\n", path);
        exit(2);
    }
    strcpy(to.sun_path, path);
    rc = leave ? bind(fd, (struct sockaddr *)&to, sizeof(to))
               : connect(fd, (struct sockaddr *)&to, sizeof(to));
    if (rc) {
        perror(path);
        exit(2);
    }
    return fd;
}

/* 0: closed, and nothing came before. */
static int await_close(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;

    if (poll(&p, 1, 15000) != 1)
        return 3;
    return recv(fd, &byte, 1, 0) > 0 ? 4 : 0;
}

static int flood(const char *path)
{
    int fd[64];

    for (int i = 0; i < 64; i++) {
        fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        strcpy(to.sun_path, path);
        /* Those that find the queue full are turned away already. */
        if (connect(fd[i], (struct sockaddr *)&to, sizeof(to))) {
            close(fd[i]);
            fd[i] = -1;
        }
    }
    for (int i = 0; i < 64; i++) {
        int rc = fd[i] < 0 ? 0 : await_close(fd[i]);
        if (rc)
            return rc;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[1] : "";
    static char noise[1 << 16];
    int fd;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 3)
        return 2;
    if (strcmp(how, "flood") == 0)
        return flood(argv[2]);
    fd = meet(argv[2], strcmp(how, "leave") == 0);
    if (strcmp(how, "leave") == 0)
        return 0;
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (char)(i * 2654435761u >> 13);
    if (strcmp(how, "garbage") == 0)
        (void)!send(fd, noise, sizeof(noise), 0);
    else if (strcmp(how, "half") == 0)
        (void)!send(fd, "stat", 4, 0);
    else if (strcmp(how, "more") == 0)
        (void)!send(fd, "status\nstatus\n", 14, 0);
    else if (strcmp(how, "deaf") == 0)
        (void)!send(fd, "status\n", 7, 0);
    if (strcmp(how, "deaf") == 0) {
        sleep(1);
        while (recv(fd, noise, sizeof(noise), 0) > 0)
            ;
        return 0;
    }
    return await_close(fd);
}
