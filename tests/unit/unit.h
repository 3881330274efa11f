/* SPDX-License-Identifier: BSD-3-Clause */
/* unit.h: include cmocka, start child processes, read stderr. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* fn(arg) in a child, which ends with the value that it returns. cmocka's checks must not be used
 * there. */
static inline pid_t unit_spawn(int (*fn)(void *), void *arg)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0)
        _exit(fn(arg));
    assert_true(pid > 0);
    return pid;
}

/* The child's exit code, or 128 plus its signal. */
static inline int unit_reap(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What is written to stderr between the two calls. */
struct unit_stderr {
    int saved;
    FILE *file;
    char text[8192];
};

static inline void unit_stderr_begin(struct unit_stderr *e)
{
    fflush(stderr);
    e->saved = dup(STDERR_FILENO);
    e->file = tmpfile();
    assert_non_null(e->file);
    assert_true(dup2(fileno(e->file), STDERR_FILENO) >= 0);
}

static inline const char *unit_stderr_end(struct unit_stderr *e)
{
    size_t n;

    fflush(stderr);
    dup2(e->saved, STDERR_FILENO);
    close(e->saved);
    rewind(e->file);
    n = fread(e->text, 1, sizeof(e->text) - 1, e->file);
    e->text[n] = '\0';
    fclose(e->file);
    return e->text;
}

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        const char *text_ = (text), *part_ = (part);                                               \
        if (!strstr(text_, part_))                                                                 \
            fail_msg("'%s' is not in: %s", part_, text_);                                          \
    } while (0)

#endif
