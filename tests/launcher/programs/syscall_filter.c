/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall_filter.c: execute a program with a filter that refuses system calls.
 *
 * syscall_filter CALL[,CALL...] ERROR PROGRAM ARGUMENTS...
 * CALL is a name of the table; ERROR is EPERM or ENOSYS. The filter holds for the program and all that it starts.
 * --list prints the names that this machine has.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name) {#name, SYS_##name}

/* What profiles or old kernels refuse, and what xrun needs (launcher/exec/kernel_calls.c). */
static const struct filtered_call {
    const char *name;
    unsigned number;
} calls[] = {
#ifdef SYS_clone3
    CALL(clone3),
#endif
#ifdef SYS_close_range
    CALL(close_range),
#endif
#ifdef SYS_epoll_pwait2
    CALL(epoll_pwait2),
#endif
#ifdef SYS_faccessat2
    CALL(faccessat2),
#endif
#ifdef SYS_openat2
    CALL(openat2),
#endif
#ifdef SYS_pidfd_getfd
    CALL(pidfd_getfd),
#endif
#ifdef SYS_pidfd_open
    CALL(pidfd_open),
#endif
#ifdef SYS_pidfd_send_signal
    CALL(pidfd_send_signal),
#endif
#ifdef SYS_rseq
    CALL(rseq),
#endif
#ifdef SYS_epoll_wait
    CALL(epoll_wait),
#endif
#ifdef SYS_poll
    CALL(poll),
#endif
    CALL(accept), CALL(bind), CALL(connect), CALL(copy_file_range), CALL(dup3), CALL(epoll_create1), CALL(epoll_ctl),
    CALL(eventfd2), CALL(fallocate), CALL(fcntl), CALL(ftruncate), CALL(get_mempolicy), CALL(getrandom),
    CALL(getsockname), CALL(getsockopt), CALL(inotify_init1), CALL(ioctl), CALL(kcmp), CALL(listen), CALL(madvise),
    CALL(mbind), CALL(membarrier), CALL(memfd_create), CALL(pipe2), CALL(prctl), CALL(prlimit64),
    CALL(process_vm_readv), CALL(process_vm_writev), CALL(pselect6), CALL(ptrace), CALL(recvfrom),
    CALL(sched_getaffinity), CALL(sched_setaffinity), CALL(sched_yield), CALL(sendto), CALL(set_mempolicy),
    CALL(set_robust_list), CALL(setpgid), CALL(setpriority), CALL(setsid), CALL(setsockopt), CALL(shmget),
    CALL(shutdown), CALL(sigaltstack), CALL(signalfd4), CALL(socket), CALL(socketpair), CALL(splice), CALL(statx),
    CALL(timerfd_create), CALL(unshare), CALL(userfaultfd), CALL(wait4), CALL(waitid), CALL(writev),
};

enum { NCALLS = sizeof(calls) / sizeof(calls[0]) };

static unsigned call_number(const char *name)
{
    for (int i = 0; i < NCALLS; i++) {
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    }
    fprintf(stderr, "syscall_filter: no call %s in the table\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    struct sock_filter code[2 * NCALLS + 2];
    struct sock_fprog filter = {.filter = code};
    unsigned short n = 0;
    int error;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (int i = 0; i < NCALLS; i++)
            puts(calls[i].name);
        return 0;
    }
    if (argc < 4) {
        fprintf(stderr, "usage: syscall_filter CALL[,CALL...] EPERM|ENOSYS PROGRAM ARGUMENTS...\n");
        return 2;
    }
    error = strcmp(argv[2], "ENOSYS") == 0 ? ENOSYS : EPERM;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char *rest = argv[1], *name; (name = strtok_r(rest, ",", &rest)) && n + 2u < sizeof(code) / sizeof(code[0]);) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call_number(name), 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter.len = n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        perror("syscall_filter: seccomp");
        return 77;
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}
