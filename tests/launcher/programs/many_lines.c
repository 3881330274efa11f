/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many_lines.c: write many lines from many ranks, and check them.
 *
 *   many_lines write RATE SECONDS   a rank (XRUN_RANK): writes RATE lines a second
 *   many_lines flood LINES          a rank: writes them as fast as it can, some of them longer than a page
 *   many_lines check RANKS LINES [flood]  reads what all have written: every byte, each rank's in order
 *
 * A line's length and bytes follow from the rank and its number, so that any
 * loss, doubling or mixing is seen.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MOST = 160, FLOOD_MOST = 20000 };

/* Up to 120 bytes of any value but a newline; "rank number " before them. flood: up to 1000, now and then many. */
static size_t make_line(char *to, unsigned rank, unsigned number, int flood)
{
    uint32_t x = (rank + 1) * 2654435761u ^ (number + 1) * 40503u;
    size_t n = (size_t)sprintf(to, "%u %u ", rank, number);

    for (unsigned i = !flood ? x % 120 : x % 64 ? x % 1000 : x % (FLOOD_MOST - 100); i > 0; i--) {
        x = x * 1664525u + 1013904223u;
        to[n++] = (char)((x >> 24) == '\n' ? 0 : x >> 24);
    }
    to[n++] = '\n';
    return n;
}

static int write_all(const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(STDOUT_FILENO, data, len);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* In bursts, 100 a second: as a program that logs. */
static int write_lines(unsigned rank, unsigned rate, unsigned seconds)
{
    unsigned burst = rate / 100, number = 0;
    char *data = malloc((size_t)burst * LINE_MOST);
    struct timespec due;

    if (!data)
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &due);
    while (number < rate * seconds) {
        size_t n = 0;
        for (unsigned i = 0; i < burst; i++)
            n += make_line(data + n, rank, number++, 0);
        if (write_all(data, n))
            return 1;
        due.tv_nsec += 10000000;
        if (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
    free(data);
    return 0;
}

/* In writes that are much larger than a pipe, and end anywhere. */
static int flood_lines(unsigned rank, unsigned lines)
{
    enum { ROOM = 1 << 20 };
    char *data = malloc(ROOM);
    size_t n = 0;

    if (!data)
        return 1;
    for (unsigned number = 0; number < lines; number++) {
        n += make_line(data + n, rank, number, 1);
        if (n > ROOM - FLOOD_MOST || number + 1 == lines) {
            if (write_all(data, n))
                return 1;
            n = 0;
        }
    }
    free(data);
    return 0;
}

static int check_lines(unsigned ranks, unsigned lines, int flood)
{
    static char want[FLOOD_MOST];
    unsigned *next = calloc(ranks, sizeof(*next)), rank, number;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int bad = !next;

    while (!bad && (n = getline(&line, &room, stdin)) > 0) {
        if (sscanf(line, "%u %u ", &rank, &number) != 2 || rank >= ranks) {
            printf("a line of no rank\n");
            bad = 1;
        } else if (number != next[rank]++ || (size_t)n != make_line(want, rank, number, flood) ||
                   memcmp(line, want, (size_t)n) != 0) {
            printf("rank %u line %u is not as it was written\n", rank, next[rank] - 1);
            bad = 1;
        }
    }
    for (unsigned i = 0; !bad && i < ranks; i++) {
        if (next[i] != lines) {
            printf("%u lines of rank %u\n", next[i], i);
            bad = 1;
        }
    }
    free(line);
    free(next);
    return bad;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("XRUN_RANK");

    if (argc == 4 && rank && strcmp(argv[1], "write") == 0)
        return write_lines((unsigned)atoi(rank), (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
    if (argc == 3 && rank && strcmp(argv[1], "flood") == 0)
        return flood_lines((unsigned)atoi(rank), (unsigned)atoi(argv[2]));
    if (argc >= 4 && strcmp(argv[1], "check") == 0)
        return check_lines((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), argc > 4);
    return 2;
}
