/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elf.c: read a program's libraries. Checks each offset by reading it.
 */
#include "launcher/compat/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define ENTRIES_MAX 1024

static bool read_at(int fd, void *to, size_t len, uint64_t at)
{
    return at <= INT64_MAX && pread(fd, to, len, (off_t)at) == (ssize_t)len;
}

/* Return where the file holds the data of this address. */
static bool file_offset(const ElfW(Phdr) *seg, size_t n, uint64_t address, uint64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (seg[i].p_type == PT_LOAD && address >= seg[i].p_vaddr &&
            address - seg[i].p_vaddr < seg[i].p_filesz) {
            *out = seg[i].p_offset + (address - seg[i].p_vaddr);
            return true;
        }
    }
    return false;
}

/* Read a name of the string table, or nothing. */
static bool read_name(int fd, uint64_t at, char *name, size_t len)
{
    ssize_t n = at <= INT64_MAX ? pread(fd, name, len - 1, (off_t)at) : -1;

    if (n <= 0)
        return false;
    name[n] = '\0';
    return true;
}

/* Return the number of entries of the dynamic section before its end. */
static size_t read_dynamic(int fd, const ElfW(Phdr) *segment, ElfW(Dyn) *dyn)
{
    size_t all = segment->p_filesz / sizeof(*dyn), n = 0;
    ssize_t got;

    if (all > ENTRIES_MAX)
        all = ENTRIES_MAX;
    got = segment->p_offset <= INT64_MAX ? pread(fd, dyn, all * sizeof(*dyn), (off_t)segment->p_offset) : -1;
    all = got > 0 ? (size_t)got / sizeof(*dyn) : 0;
    while (n < all && dyn[n].d_tag != DT_NULL)
        n++;
    return n;
}

bool xr_elf_fd_needs(int fd, bool (*wanted)(const char *name), char *out, size_t len)
{
    ElfW(Phdr) segment[SEGMENTS_MAX];
    ElfW(Dyn) dyn[ENTRIES_MAX];
    ElfW(Ehdr) head;
    size_t nsegments, n = 0;
    uint64_t names = 0, at;
    char name[256];

    if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_phentsize != sizeof(segment[0]))
        return false;
    nsegments = head.e_phnum < SEGMENTS_MAX ? head.e_phnum : SEGMENTS_MAX;
    if (!read_at(fd, segment, nsegments * sizeof(segment[0]), head.e_phoff))
        return false;
    for (size_t i = 0; i < nsegments && n == 0; i++) {
        if (segment[i].p_type == PT_DYNAMIC)
            n = read_dynamic(fd, &segment[i], dyn);
    }
    for (size_t i = 0; i < n; i++) {
        if (dyn[i].d_tag == DT_STRTAB && file_offset(segment, nsegments, dyn[i].d_un.d_ptr, &at))
            names = at;
    }
    for (size_t i = 0; names && i < n; i++) {
        if (dyn[i].d_tag == DT_NEEDED &&
            read_name(fd, names + dyn[i].d_un.d_val, name, sizeof(name)) && wanted(name)) {
            snprintf(out, len, "%s", name);
            return true;
        }
    }
    return false;
}

bool xr_elf_needs(const char *path, bool (*wanted)(const char *name), char *out, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool found = fd >= 0 && xr_elf_fd_needs(fd, wanted, out, len);

    if (fd >= 0)
        close(fd);
    return found;
}
