/* texts.c: see texts.h. The file may be anything, and may be written meanwhile: it is read, and never mapped. */
#include "launcher/compat/texts.h"
#include "lib/base/clock.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define TEXT_MAX 63
#define PIECE (256u << 10)
#define BYTES_MAX (64u << 20) /* of one program; an MPI has a few */
#define NS_MAX 50000000       /* who asks has other things to do */

struct search {
    int fd;
    char text[TEXT_MAX + 1]; /* with the end of the one before it */
    size_t len;
    char *piece; /* [PIECE] */
    uint64_t left, until_ns;
};

/* Pieces overlap by what a text may have in both. */
static bool is_in_segment(struct search *s, uint64_t at, uint64_t bytes)
{
    while (bytes >= s->len && s->left >= s->len && at <= INT64_MAX && rk_clock_ns() < s->until_ns) {
        uint64_t want = bytes < PIECE ? bytes : PIECE;
        ssize_t n = pread(s->fd, s->piece, want < s->left ? want : s->left, (off_t)at);
        if (n < (ssize_t)s->len)
            return false;
        if (memmem(s->piece, (size_t)n, s->text, s->len))
            return true;
        n -= (ssize_t)s->len - 1;
        at += (uint64_t)n;
        bytes -= (uint64_t)n;
        s->left -= (uint64_t)n;
    }
    return false;
}

/* Constants lie apart from the code, or, as some linkers have it, with it. */
static bool is_in_program(struct search *s, const ElfW(Phdr) *segment, size_t n)
{
    bool apart = false;

    for (size_t i = 0; i < n; i++) {
        if (segment[i].p_type != PT_LOAD || segment[i].p_flags & (PF_W | PF_X))
            continue;
        apart = true;
        if (is_in_segment(s, segment[i].p_offset, segment[i].p_filesz))
            return true;
    }
    for (size_t i = 0; i < n && !apart; i++) {
        if (segment[i].p_type == PT_LOAD && !(segment[i].p_flags & PF_W) &&
            is_in_segment(s, segment[i].p_offset, segment[i].p_filesz))
            return true;
    }
    return false;
}

bool xr_texts_begin_in(int fd, const char *text)
{
    struct search s = {.fd = fd, .len = strlen(text) + 1, .left = BYTES_MAX, .until_ns = rk_clock_ns() + NS_MAX};
    ElfW(Phdr) segment[SEGMENTS_MAX];
    ElfW(Ehdr) head;
    ssize_t bytes;
    bool found;

    if (s.len > sizeof(s.text) || pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_phentsize != sizeof(segment[0]) || head.e_phnum > SEGMENTS_MAX || head.e_phoff > INT64_MAX)
        return false;
    bytes = (ssize_t)(head.e_phnum * sizeof(segment[0]));
    if (pread(fd, segment, (size_t)bytes, (off_t)head.e_phoff) != bytes || !(s.piece = malloc(PIECE)))
        return false;
    memcpy(s.text + 1, text, s.len - 1);
    found = is_in_program(&s, segment, head.e_phnum);
    free(s.piece);
    return found;
}

bool xr_texts_begin(const char *path, const char *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool found = fd >= 0 && xr_texts_begin_in(fd, text);

    if (fd >= 0)
        close(fd);
    return found;
}
