/*
 * elf_test.c: what a program's file tells the launcher: the libraries it needs, functions and texts it carries, and
 * whether it is known to need no server. Files that are cut off or changed, too.
 */
#include "launcher/compat/elf.h"
#include "launcher/compat/non_mpi.h"
#include "launcher/compat/symbols.h"
#include "launcher/compat/texts.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_cmocka(const char *name)
{
    return strncmp(name, "libcmocka.so", 12) == 0;
}

static bool is_absent(const char *name)
{
    return strncmp(name, "libabsent", 9) == 0;
}

/* This program; it cut off and with bytes changed; none at all. */
static void needed(void **state)
{
    static const char carried[] = "what this program carries";
    char name[64], path[] = "/tmp/rk-needed-XXXXXX", *data = NULL;
    int fd = mkstemp(path), self = open("/proc/self/exe", O_RDONLY);
    unsigned seed = 7;
    ssize_t len;

    (void)state;
    assert_true(fd >= 0 && self >= 0);
    unlink(path);
    data = malloc(64 << 10);
    assert_non_null(data);
    len = read(self, data, 64 << 10);
    assert_true(len > 4096);
    assert_true(xr_needed_find_in(self, is_cmocka, name, sizeof(name)));
    assert_string_equal(name, "libcmocka.so.0");
    assert_false(xr_needed_find_in(self, is_absent, name, sizeof(name)));
    assert_false(xr_needed_find("/dev/null", is_cmocka, name, sizeof(name)));
    assert_false(xr_needed_find("/nonexistent", is_cmocka, name, sizeof(name)));
    assert_true(xr_symbols_define_in(self, "main"));
    assert_false(xr_symbols_define_in(self, "malloc"));
    assert_false(xr_symbols_define_in(self, "a_function_that_is_not"));
    assert_false(xr_symbols_define("/dev/null", "main"));
    assert_false(xr_symbols_define("/nonexistent", "main"));
    assert_true(xr_texts_begin_in(self, carried));
    assert_false(xr_texts_begin_in(self, carried + 1));
    snprintf(name, sizeof(name), "%.12s", carried);
    assert_true(xr_texts_begin_in(self, name));
    name[11] = '?';
    assert_false(xr_texts_begin_in(self, name));
    assert_false(xr_texts_begin("/dev/null", "text"));
    assert_false(xr_texts_begin("/nonexistent", "text"));
    for (int i = 0; i < 2000; i++) {
        size_t cut = (size_t)rand_r(&seed) % (size_t)len, at = (size_t)rand_r(&seed) % 1024;
        char old = data[at];
        data[at] = (char)rand_r(&seed);
        assert_return_code(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, data, cut, 0), (ssize_t)cut);
        xr_needed_find_in(fd, is_absent, name, sizeof(name));
        xr_symbols_define_in(fd, "main");
        xr_texts_begin_in(fd, "a text");
        data[at] = old;
    }
    free(data);
    close(fd);
    close(self);
}

/* What a job of many is likely to be, and what must never be taken for it. */
static void plain(void **state)
{
    char *preload[] = {(char *)(uintptr_t) "LD_PRELOAD=x.so", NULL};

    (void)state;
    assert_true(xr_plain("/bin/true", NULL));
    assert_false(xr_plain("/bin/true", preload));
    assert_false(xr_plain("/bin/sh", NULL));
    assert_false(xr_plain("/usr/bin/env", NULL));
    assert_false(xr_plain("/usr/bin/printenv", NULL)); /* who asks it wants to see PMIx's variables */
    assert_false(xr_plain("/usr/bin/nice", NULL));
    assert_false(xr_plain("/usr/bin/timeout", NULL));
    assert_false(xr_plain("/proc/self/exe", NULL));
    assert_false(xr_plain("/dev/null", NULL));
    assert_false(xr_plain("/nonexistent", NULL));
}

/* Programs are named as they will be found: in the rank's folder, and by its host. */
static void plain_jobs(void **state)
{
    static char bin_true[] = "/bin/true", bin_sh[] = "/bin/sh", sleep_there[] = "./sleep", by_path[] = "true", bin[] = "/bin",
                tmp[] = "/tmp", preload[] = "LD_PRELOAD=x.so";
    char *none[] = {NULL}, *with[] = {preload, NULL};
    struct xr_app apps[2] = {{.program = bin_true, .wdir = tmp, .env = none}, {.program = sleep_there, .wdir = bin, .env = none}};
    struct xr_job job = {.env = none, .apps = apps, .napps = 2};

    (void)state;
    assert_true(xr_plain_job(&job));
    apps[1].wdir = tmp;
    assert_false(xr_plain_job(&job));
    apps[1] = (struct xr_app){.program = bin_sh, .wdir = bin, .env = none};
    assert_false(xr_plain_job(&job));
    apps[1] = (struct xr_app){.program = by_path, .wdir = bin, .env = none};
    assert_false(xr_plain_job(&job));
    apps[1] = (struct xr_app){.program = bin_true, .wdir = tmp, .env = with};
    assert_false(xr_plain_job(&job));
    job.napps = 1;
    assert_true(xr_plain_job(&job));
    job.env = with;
    assert_false(xr_plain_job(&job));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(needed), cmocka_unit_test(plain), cmocka_unit_test(plain_jobs)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
