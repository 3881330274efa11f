/* SPDX-License-Identifier: BSD-3-Clause */
/* misuse.c: report wrong use: bad arguments, calls before init or after finalize. */
#include "tests/mp/mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The cases of the file "cases" match the lines. */
static void wrong_arguments(const struct mp *mp)
{
    char buf[64] = "x";
    rank_mem_t mem;
    void *part;

    MP_STATUS(rank_send(buf, 1, RANK_BYTE, 99, 0, mp->world), RANK_ERR_RANK);
    MP_STATUS(rank_send(buf, 1, RANK_BYTE, 98, 0, mp->world), RANK_ERR_RANK); /* the same kind: no line */
    MP_STATUS(rank_irecv(buf, -4, RANK_BYTE, 0, 0, mp->world, NULL), RANK_ERR_COUNT);
    MP_STATUS(rank_allreduce(buf, RANK_IN_PLACE, 1, RANK_INT32, RANK_SUM, mp->world), RANK_ERR_ARG);
    MP_STATUS(rank_bcast(buf, 1, RANK_BYTE, mp->size, mp->world), RANK_ERR_RANK);
    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, &part, &mem));
    MP_STATUS(rank_put(buf, 8, 0, mem, 60), RANK_ERR_BOUNDS);
    MP_STATUS(rank_barrier(RANK_TEAM_NULL), RANK_ERR_HANDLE);
    MP_STATUS(rank_wait(NULL, NULL), RANK_ERR_ARG);
    MP_STATUS(rank_ssend(buf, 1, (rank_dtype_t)999, 0, 0, mp->world), RANK_ERR_DTYPE);
    MP_STATUS(rank_probe(0, -5, mp->world, NULL), RANK_ERR_TAG); /* the ninth: no line */
    MP_OK(rank_free(&mem));
}

/* Forked children that end at once: one calls the library, and one calls rank_finalize in an exit handler. */
static void in_child(const struct mp *mp, rank_request_t *req, rank_mem_t mem)
{
    char c = 0;
    int done;

    MP_CHECK(!rank_initialized());
    MP_CHECK(rank_world() == RANK_TEAM_NULL);
    MP_STATUS(rank_send(&c, 1, RANK_BYTE, 0, 0, mp->world), RANK_ERR_STATE);
    MP_STATUS(rank_barrier(mp->world), RANK_ERR_STATE);
    MP_STATUS(rank_wait(req, NULL), RANK_ERR_STATE);
    MP_STATUS(rank_test(req, &done, NULL), RANK_ERR_STATE);
    MP_STATUS(rank_put(&c, 1, 0, mem, 0), RANK_ERR_STATE);
    MP_STATUS(rank_free(&mem), RANK_ERR_STATE);
    MP_STATUS(rank_progress(), RANK_ERR_STATE);
    MP_STATUS(rank_init(NULL), RANK_ERR_STATE);
    MP_OK(rank_finalize());
    MP_STATUS(rank_finalize(), RANK_ERR_STATE);
}

static void at_exit(void)
{
    if (rank_finalize())
        _exit(7);
}

static void forks(const struct mp *mp)
{
    rank_request_t req;
    rank_mem_t mem;
    void *part;
    pid_t pid;
    char c = 0;
    int how;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, 64, &part, &mem));
    MP_OK(rank_irecv(&c, 1, RANK_BYTE, mp->rank, 5, mp->world, &req));
    for (int i = 0; i < 2; i++) {
        pid = fork();
        if (pid == 0 && i == 0) {
            in_child(mp, &req, mem);
            _exit(0);
        } else if (pid == 0) {
            atexit(at_exit);
            exit(0);
        }
        MP_CHECK_EQ(waitpid(pid, &how, 0), pid);
        MP_CHECK_EQ(how, 0);
    }
    /* Nothing has changed for the rank. */
    MP_OK(rank_send("x", 1, RANK_BYTE, mp->rank, 5, mp->world));
    MP_OK(rank_wait(&req, NULL));
    MP_CHECK_EQ(c, 'x');
    MP_OK(rank_free(&mem));
}

/* Handles outlive the library. */
static void after_the_end(struct mp *mp)
{
    rank_team_t world = mp->world;
    rank_request_t sent, never, many[200];
    rank_mem_t mem;
    void *part;
    int done;
    char c = 0;
    static char parts[200];

    MP_OK(rank_alloc(world, RANK_MEM_HOST, 64, &part, &mem));
    MP_OK(rank_isend("x", 1, RANK_BYTE, mp->rank, 6, world, &sent));
    MP_OK(rank_irecv(&c, 1, RANK_BYTE, mp->rank, 6, world, &never));
    MP_OK(rank_wait(&never, NULL));
    for (int i = 0; i < 200; i++)
        MP_OK(rank_irecv(&parts[i], 1, RANK_BYTE, mp->rank, 7, world, &many[i]));
    never = many[199];
    mp_end(mp);
    MP_STATUS(rank_barrier(rank_world()), RANK_ERR_STATE);
    MP_STATUS(rank_barrier(world), RANK_ERR_STATE);
    MP_STATUS(rank_wait(&sent, NULL), RANK_ERR_STATE);
    MP_STATUS(rank_wait(&never, NULL), RANK_ERR_STATE);
    MP_STATUS(rank_test(&never, &done, NULL), RANK_ERR_STATE);
    MP_STATUS(rank_waitall(200, many, NULL), RANK_ERR_STATE);
    MP_STATUS(rank_cancel(&never), RANK_ERR_STATE);
    MP_STATUS(rank_request_free(&never), RANK_ERR_STATE);
    MP_STATUS(rank_get(&c, 1, 0, mem, 0), RANK_ERR_STATE);
}

/* As daemons do. What needs no descriptor goes on; what does fails, and nothing hangs. */
static void closes_all(const struct mp *mp)
{
    rank_team_t world = mp->world;

    MP_OK(rank_barrier(world));
    closefrom(3);
    MP_OK(rank_barrier(world));
    MP_STATUS(rank_finalize(), RANK_ERR_SYSTEM);
    MP_STATUS(rank_barrier(world), RANK_ERR_STATE);
    printf("mp: done\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct mp mp;

    if (mp_flag(argc, argv, "--clearenv"))
        clearenv(); /* environ is NULL, and no launcher is to be seen */
    mp_start_level(&mp, &argc, argv, (rank_thread_level_t)mp_option(argc, argv, "--level", RANK_THREAD_SERIALIZED));
    if (mp_flag(argc, argv, "--clearenv"))
        MP_CHECK_EQ(mp.size, 1);
    if (mp_flag(argc, argv, "--arguments"))
        wrong_arguments(&mp);
    if (mp_flag(argc, argv, "--fork"))
        forks(&mp);
    if (mp_flag(argc, argv, "--closefrom")) {
        closes_all(&mp);
        return 3;
    }
    if (mp_flag(argc, argv, "--finalized")) {
        after_the_end(&mp);
        return 0;
    }
    mp_end(&mp);
    return 0;
}
