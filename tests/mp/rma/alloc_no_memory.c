/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc_no_memory.c: fail to allocate with an error on every rank.
 * Never by a signal later; and the library works on.
 *
 *   --limit as|fsize|cgroup|huge
 *   --limit sum        one cgroup of all ranks has room for each part, but not for all
 *   --limit contact    rank 1 has no memory to answer rank 2: that is the end between the two, and no wait for ever
 */
#include "tests/mp/mp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int64_t big = 700ll << 20, small = 100000;

/* Write text to a file; 0 or an errno. */
static int put_text(const char *dir, const char *name, const char *text)
{
    char path[512];
    int fd, err = 0;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (write(fd, text, strlen(text)) < 0)
        err = errno;
    close(fd);
    return err;
}

struct cage {
    char dir[256], home[256];
};

static bool is_v2(void)
{
    return access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
}

/* A memory cgroup of 200 MB with this process in it; false where none can be made. */
static bool enter_cgroup(struct cage *c)
{
    char line[512], pid[32], *path = NULL;
    FILE *f = fopen("/proc/self/cgroup", "re");
    bool v2 = is_v2();
    const char *root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";

    while (f && !path && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (v2 && strncmp(line, "0::", 3) == 0)
            path = line + 3;
        else if (!v2 && strstr(line, ":memory:"))
            path = strstr(line, ":memory:") + 8;
    }
    if (f)
        fclose(f);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    for (int i = 0; i < 2; i++) { /* our own group may not be visible from here: then the root */
        snprintf(c->home, sizeof(c->home), "%s%.150s", root, path && i == 0 ? path : "");
        if (snprintf(c->dir, sizeof(c->dir), "%.200s/rk-test-%d", c->home, (int)getpid()) >=
            (int)sizeof(c->dir))
            return false;
        if (mkdir(c->dir, 0755) == 0)
            break;
        c->dir[0] = '\0';
    }
    if (!c->dir[0])
        return false;
    if (put_text(c->dir, v2 ? "memory.max" : "memory.limit_in_bytes", "209715200") ||
        put_text(c->dir, "cgroup.procs", pid)) {
        rmdir(c->dir);
        return false;
    }
    return true;
}

static void leave_cgroup(struct cage *c)
{
    char pid[32];

    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    MP_CHECK_EQ(put_text(c->home, "cgroup.procs", pid), 0);
    /* The kernel may need a moment to give the group up. */
    for (int i = 0; i < 200 && rmdir(c->dir) != 0 && errno == EBUSY; i++)
        usleep(10000);
}

static void set_limit(int which, rlim_t bytes, struct rlimit *old)
{
    struct rlimit l;

    MP_CHECK_EQ(getrlimit(which, old), 0);
    l = *old;
    l.rlim_cur = bytes;
    MP_CHECK_EQ(setrlimit(which, &l), 0);
}

/* It works, every byte of it, on every rank. */
static void use(struct mp *mp, int64_t bytes)
{
    rank_mem_t mem;
    char *p;

    MP_OK(rank_alloc(mp->world, RANK_MEM_HOST, bytes, (void **)&p, &mem));
    memset(p, 1, (size_t)bytes);
    mp_barrier(mp->world);
    for (int r = 0; r < mp->size; r++) {
        char c = 0;
        MP_OK(rank_get(&c, 1, r, mem, bytes - 1));
        MP_CHECK_EQ(c, 1);
    }
    MP_OK(rank_free(&mem));
}

static void refuse(struct mp *mp, int64_t bytes)
{
    rank_mem_t mem = RANK_MEM_NULL;
    void *p = NULL;

    MP_STATUS(rank_alloc(mp->world, RANK_MEM_HOST, bytes, &p, &mem), RANK_ERR_NO_MEMORY);
    MP_CHECK(p == NULL && mem == RANK_MEM_NULL);
}

/* 200 MB for all: each has room for 90 MB, all for 20 MB. Returns false where there is no cgroup. */
static bool sum(struct mp *mp, struct cage *c)
{
    rank_mem_t mem;
    char pid[32];
    void *p;
    int32_t able;

    memset(c, 0, sizeof(*c));
    able = mp->rank == 0 && enter_cgroup(c);
    MP_OK(rank_bcast(&able, 1, RANK_INT32, 0, mp->world));
    MP_OK(rank_bcast(c, sizeof(*c), RANK_BYTE, 0, mp->world));
    if (!able)
        return false;
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    MP_CHECK_EQ(put_text(c->dir, "cgroup.procs", pid), 0);
    mp_barrier(mp->world);
    MP_STATUS(rank_alloc(mp->world, RANK_MEM_HOST, 90ll << 20, &p, &mem), mp->size > 2 ? RANK_ERR_NO_MEMORY : RANK_OK);
    if (mp->size > 2)
        MP_CHECK(strstr(rank_status_reason(RANK_ERR_NO_MEMORY), is_v2() ? "memory.max" : "memory.limit_in_bytes"));
    else
        MP_OK(rank_free(&mem));
    use(mp, 20ll << 20);
    if (mp->rank > 0)
        MP_CHECK_EQ(put_text(c->home, "cgroup.procs", pid), 0);
    mp_barrier(mp->world);
    if (mp->rank == 0)
        leave_cgroup(c);
    return true;
}

static const char *text_option(int argc, char **argv, const char *option)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], option) == 0)
            return argv[i + 1];
    }
    return "";
}

/* No memory for files, from here to the end. */
static void deny_fallocate(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    MP_CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    MP_CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

/* The first message of rank 1 to rank 2 is that a message has been received: one that waits for that, or a large one,
 * which is to be fetched. It gets that it is disconnected from rank 2; and when it ends rank 2 gets that. */
static void contact(struct mp *mp, int64_t bytes)
{
    char *buf = mp_alloc((size_t)bytes);
    rank_status_t st = RANK_OK;
    int32_t go = 1;

    memset(buf, 0, (size_t)bytes);
    if (mp->rank == 0) {
        MP_OK(rank_recv(&go, 1, RANK_INT32, 1, 2, mp->world, NULL)); /* these two are in contact */
        MP_OK(rank_recv(&go, 1, RANK_INT32, 1, 2, mp->world, NULL));
        MP_OK(rank_send(&go, 1, RANK_INT32, 2, 2, mp->world));
    } else if (mp->rank == 2) {
        MP_OK(rank_recv(&go, 1, RANK_INT32, 0, 2, mp->world, NULL));
        MP_STATUS(rank_ssend(buf, bytes, RANK_BYTE, 1, 1, mp->world), RANK_ERR_PEER_DEAD);
    } else {
        MP_OK(rank_ssend(&go, 1, RANK_INT32, 0, 2, mp->world));
        deny_fallocate();
        MP_OK(rank_send(&go, 1, RANK_INT32, 0, 2, mp->world));
        while (!st) /* from any rank: one that waits for a message connects to its sender before */
            st = rank_recv(buf, bytes, RANK_BYTE, RANK_ANY_SOURCE, 1, mp->world, NULL);
        MP_STATUS(st, RANK_ERR_PEER_DEAD);
        raise(SIGKILL);
    }
    free(buf);
    mp_end_survivor(mp);
}

int main(int argc, char **argv)
{
    const char *limit = text_option(argc, argv, "--limit");
    bool me, all = mp_flag(argc, argv, "--all");
    int32_t able = 1;
    struct rlimit old;
    struct cage cage;
    struct mp mp;

    mp_start(&mp, &argc, argv);
    if (strcmp(limit, "contact") == 0) {
        contact(&mp, mp_option(argc, argv, "--bytes", 1));
        return 0;
    }
    me = all || mp.rank == mp.size / 2; /* one is in need, all must get an error */
    mp_case(&mp, limit);
    use(&mp, small);
    if (strcmp(limit, "as") == 0) {
        if (me)
            set_limit(RLIMIT_AS, ((rlim_t)mp_status_kb("VmSize") << 10) + (64 << 20), &old);
        refuse(&mp, big);
        use(&mp, small);
        if (me)
            MP_CHECK_EQ(setrlimit(RLIMIT_AS, &old), 0);
    } else if (strcmp(limit, "fsize") == 0) {
        if (me)
            set_limit(RLIMIT_FSIZE, 1 << 20, &old);
        refuse(&mp, big);
        use(&mp, small);
        if (me)
            MP_CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    } else if (strcmp(limit, "cgroup") == 0) {
        if (me)
            able = enter_cgroup(&cage);
        for (int r = 0; r < mp.size; r++) { /* the needy one reports whether it could */
            int from = all ? 0 : mp.size / 2;
            if (mp.rank == from && r != from)
                MP_OK(rank_send(&able, 1, RANK_INT32, r, 9, mp.world));
            else if (mp.rank == r && r != from)
                MP_OK(rank_recv(&able, 1, RANK_INT32, from, 9, mp.world, NULL));
        }
        if (!able) {
            if (mp.rank == 0)
                printf("no memory cgroup can be made here\n");
            mp_end(&mp);
            return 0;
        }
        refuse(&mp, big);
        use(&mp, small);
        use(&mp, 60ll << 20);
        if (me)
            leave_cgroup(&cage);
    } else if (strcmp(limit, "sum") == 0) {
        if (sum(&mp, &cage))
            mp_barrier(mp.world);
        else if (mp.rank == 0)
            printf("no memory cgroup can be made here\n");
    } else if (strcmp(limit, "huge") == 0) {
        refuse(&mp, 1ll << 46); /* more than any machine has */
        refuse(&mp, INT64_MAX);
        refuse(&mp, INT64_MAX - 4095);
        use(&mp, small);
    } else {
        mp_fail(__FILE__, __LINE__, "--limit as|fsize|cgroup|sum|huge|contact");
    }
    use(&mp, 3 << 20);
    mp_end(&mp);
    return 0;
}
