/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elf_test.c: read the libraries that a program names.
 * The files may be cut off or changed.
 */
#include "launcher/compat/elf.h"

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
    assert_true(xr_elf_fd_needs(self, is_cmocka, name, sizeof(name)));
    assert_string_equal(name, "libcmocka.so.0");
    assert_false(xr_elf_fd_needs(self, is_absent, name, sizeof(name)));
    assert_false(xr_elf_needs("/dev/null", is_cmocka, name, sizeof(name)));
    assert_false(xr_elf_needs("/nonexistent", is_cmocka, name, sizeof(name)));
    for (int i = 0; i < 2000; i++) {
        size_t cut = (size_t)rand_r(&seed) % (size_t)len, at = (size_t)rand_r(&seed) % 1024;
        char old = data[at];
        data[at] = (char)rand_r(&seed);
        assert_return_code(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, data, cut, 0), (ssize_t)cut);
        xr_elf_fd_needs(fd, is_absent, name, sizeof(name));
        data[at] = old;
    }
    free(data);
    close(fd);
    close(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(needed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
