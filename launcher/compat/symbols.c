/* symbols.c: see symbols.h. The file may be anything, and may be written meanwhile: it is read, and never mapped. */
#include "launcher/compat/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTIONS_MAX 4096
#define TABLE_MAX (16u << 20) /* a program whose tables are larger is not looked into */

/* That part of the file, or NULL. */
static void *read_part(int fd, uint64_t at, uint64_t len)
{
    void *data = at <= INT64_MAX && len > 0 && len <= TABLE_MAX ? malloc(len) : NULL;

    if (data && pread(fd, data, len, (off_t)at) == (ssize_t)len)
        return data;
    free(data);
    return NULL;
}

static bool table_defines(int fd, const ElfW(Shdr) *symbols, const ElfW(Shdr) *texts, const char *function)
{
    char *names = read_part(fd, texts->sh_offset, texts->sh_size);
    size_t n = symbols->sh_size / sizeof(ElfW(Sym)), len = strlen(function) + 1;
    ElfW(Sym) *sym = NULL;
    bool found = false;

    /* Few programs have the word at all: that is seen sooner than which of the symbols it is. */
    if (names && memmem(names, texts->sh_size, function, len))
        sym = read_part(fd, symbols->sh_offset, symbols->sh_size);
    for (size_t i = 0; sym && i < n && !found; i++)
        found = sym[i].st_shndx != SHN_UNDEF && sym[i].st_name <= texts->sh_size - len &&
                memcmp(names + sym[i].st_name, function, len) == 0;
    free(sym);
    free(names);
    return found;
}

bool xr_symbols_define_in(int fd, const char *function)
{
    ElfW(Ehdr) head;
    ElfW(Shdr) *section;
    bool found = false;

    if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_shentsize != sizeof(*section) || head.e_shnum > SECTIONS_MAX)
        return false;
    section = read_part(fd, head.e_shoff, head.e_shnum * sizeof(*section));
    for (unsigned i = 0; section && i < head.e_shnum && !found; i++)
        found = section[i].sh_type == SHT_SYMTAB && section[i].sh_link < head.e_shnum &&
                table_defines(fd, &section[i], &section[section[i].sh_link], function);
    free(section);
    return found;
}

bool xr_symbols_define(const char *path, const char *function)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool found = fd >= 0 && xr_symbols_define_in(fd, function);

    if (fd >= 0)
        close(fd);
    return found;
}
