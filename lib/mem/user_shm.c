/* SPDX-License-Identifier: BSD-3-Clause */
/* user_shm.c: find and map the program's own shared memory. */
#include "lib/mem/user_shm.h"
#include "lib/base/log.h"
#include "lib/mem/memfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/*
 * Query of one address in /proc/self/maps (Linux 6.11; headers may be older). Reading all maps as text costs a
 * hundred times as much.
 */
struct map_query {
    uint64_t size, flags, address;
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t major, minor, name_size, build_id_size;
    uint64_t name, build_id;
};
#define MAP_QUERY _IOWR('f', 17, struct map_query)
enum { VMA_READABLE = 1, VMA_WRITABLE = 2, VMA_SHARED = 8, QUERY_OR_NEXT = 16 };

struct mapping {
    uint64_t start, end, offset, inode;
    uint32_t major, minor;
    unsigned is; /* VMA_... */
};

/* Mappings of this process, by address. */
struct maps {
    int fd;
    bool fresh; /* opened for this search */
    FILE *text; /* for kernels without the query */
    char *line;
    size_t room;
};

static bool read_line(const char *line, struct mapping *out)
{
    char r, w, x, s;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c%c%c %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64, &out->start, &out->end, &r,
               &w, &x, &s, &out->offset, &out->major, &out->minor, &out->inode) != 10)
        return false;
    out->is = (r == 'r' ? VMA_READABLE : 0u) | (w == 'w' ? VMA_WRITABLE : 0u) | (s == 's' ? VMA_SHARED : 0u);
    return true;
}

static bool next_in_text(struct maps *maps, uint64_t address, struct mapping *out)
{
    while (getline(&maps->line, &maps->room, maps->text) > 0) {
        if (read_line(maps->line, out) && address < out->end)
            return true;
    }
    return false;
}

static void open_maps(struct maps *maps)
{
    maps->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    maps->fresh = true;
}

/* The mapping at address, or the first above it. */
static bool next_mapping(struct maps *maps, uint64_t address, struct mapping *out)
{
    struct map_query q = {.size = sizeof(q), .flags = QUERY_OR_NEXT, .address = address};

    if (!maps->text && ioctl(maps->fd, MAP_QUERY, &q) != 0) {
        int error = errno;
        if (error == ENOENT)
            return false;
        if (!maps->fresh) { /* the program has closed it, and the number may be of another file */
            open_maps(maps);
            return next_mapping(maps, address, out);
        }
        if (error != ENOTTY && error != EINVAL)
            return false;
        maps->text = fdopen(maps->fd, "re");
        if (!maps->text)
            return false;
    }
    if (maps->text)
        return next_in_text(maps, address, out);
    *out = (struct mapping){q.start, q.end, q.offset, q.inode, q.major, q.minor, (unsigned)q.vma_flags};
    return true;
}

/* Keep the descriptor for the next search, unless its position matters. */
static void keep_maps(struct maps *maps, int *kept)
{
    *kept = maps->text ? -1 : maps->fd;
    if (maps->text)
        fclose(maps->text);
    free(maps->line);
}

/* If the number is of another file by now, it is the program's. */
void rk_user_shm_find_end(int *kept)
{
    struct map_query q = {.size = sizeof(q), .flags = QUERY_OR_NEXT};

    if (*kept >= 0 && ioctl(*kept, MAP_QUERY, &q) == 0)
        close(*kept);
    *kept = -1;
}

/* Is it the same file, not a device or pipe in its place? Opening those may have side effects. */
static bool is_the_file(const struct stat *st, const struct rk_user_shm_card *card, uint64_t end)
{
    return S_ISREG(st->st_mode) && st->st_ino == card->inode && major(st->st_dev) == card->major &&
           minor(st->st_dev) == card->minor && st->st_size >= 0 && (uint64_t)st->st_size >= end;
}

/* Find an open descriptor; else /proc/PID/map_files or the name of the mapping must do. */
static int find_descriptor(const struct rk_user_shm_card *card)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    int found = -1;

    while (dir && found < 0 && (e = readdir(dir)) != NULL) {
        struct stat st;
        int fd = atoi(e->d_name);
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9' && fstat(fd, &st) == 0 && is_the_file(&st, card, 0) &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR)
            found = fd;
    }
    if (dir)
        closedir(dir);
    return found;
}

static bool can_be_shared(const struct mapping *m, uint64_t from, uint64_t end)
{
    const unsigned all = VMA_READABLE | VMA_WRITABLE | VMA_SHARED;

    return (m->is & all) == all && m->inode != 0 && m->start <= from && end <= m->end;
}

unsigned rk_user_shm_find(int *kept, const void *p, size_t bytes, struct rk_user_shm_card *card)
{
    struct maps maps = {.fd = *kept};
    uint64_t from = (uint64_t)(uintptr_t)p, end = from + bytes;
    struct rk_user_shm_card found = {.fd = -1};
    unsigned denied = 0;
    struct mapping m;

    if (maps.fd < 0)
        open_maps(&maps);
    for (uint64_t at = from; maps.fd >= 0 && at < end && next_mapping(&maps, at, &m) && m.start < end; at = m.end) {
        denied |= (m.is & VMA_READABLE ? 0u : RK_NO_READS) | (m.is & VMA_WRITABLE ? 0u : RK_NO_WRITES);
        if (can_be_shared(&m, from, end))
            found = (struct rk_user_shm_card){.inode = m.inode, .at = m.offset + (from - m.start), .start = m.start,
                                            .end = m.end, .major = m.major, .minor = m.minor, .pid = getpid(), .fd = -1};
    }
    keep_maps(&maps, kept);
    if (card && found.inode)
        found.fd = find_descriptor(&found);
    found.denied = denied;
    if (card)
        *card = found;
    return denied;
}

/* ------------------------------------------------------------------------------ map */

static bool map_file(const char *path, const struct rk_user_shm_card *card, size_t bytes, struct rk_user_shm_map *out)
{
    uint64_t unit = (uint64_t)sysconf(_SC_PAGESIZE), from, end = card->at + bytes;
    bool writes = !(card->denied & RK_NO_WRITES);
    struct stat st;
    void *map;
    int fd;

    if (stat(path, &st) != 0 || !is_the_file(&st, card, end))
        return false;
    fd = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        rk_debug("cannot open %s: %m", path);
        return false;
    }
    if (fstat(fd, &st) != 0 || !is_the_file(&st, card, end)) {
        close(fd);
        return false;
    }
    /* Page size of hugetlbfs, if it is one. */
    if (st.st_blksize > 0 && (uint64_t)st.st_blksize > unit && ((uint64_t)st.st_blksize & ((uint64_t)st.st_blksize - 1)) == 0)
        unit = (uint64_t)st.st_blksize;
    from = card->at & ~(unit - 1);
    out->map_bytes = (size_t)((end - from + unit - 1) & ~(unit - 1));
    map = mmap(NULL, out->map_bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, (off_t)from);
    if (map == MAP_FAILED)
        rk_debug("cannot map %zu bytes of %s: %m", out->map_bytes, path);
    close(fd);
    if (map == MAP_FAILED)
        return false;
    out->map = map;
    out->base = (char *)map + (card->at - from);
    return true;
}

/* Through map_files, which needs a privilege, or by the name that it links to, which does not. */
static bool map_by_mapping(const struct rk_user_shm_card *card, size_t bytes, struct rk_user_shm_map *out)
{
    char path[96], name[PATH_MAX];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)card->pid, card->start, card->end);
    if (map_file(path, card, bytes, out))
        return true;
    n = readlink(path, name, sizeof(name) - 1);
    if (n <= 0 || name[0] != '/')
        return false;
    name[n] = '\0';
    return map_file(name, card, bytes, out);
}

bool rk_user_shm_map(const struct rk_user_shm_card *card, size_t bytes, struct rk_user_shm_map *out)
{
    char path[64];

    *out = (struct rk_user_shm_map){NULL, NULL, 0};
    if (card->inode == 0 || bytes == 0 || card->at > INT64_MAX - bytes)
        return false;
    if (!rk_is_own_process(card->pid)) { /* even if this user could open everything */
        rk_debug("process %d is gone, or another user's", (int)card->pid);
        return false;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)card->pid, (int)card->fd);
    if ((card->fd >= 0 && map_file(path, card, bytes, out)) || map_by_mapping(card, bytes, out))
        return true;
    rk_debug("shared memory of process %d cannot be mapped here", (int)card->pid);
    return false;
}

bool rk_user_shm_detach(const struct rk_user_shm_map *map)
{
    return mmap(map->map, map->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) !=
           MAP_FAILED;
}

void rk_user_shm_unmap(struct rk_user_shm_map *map)
{
    if (map->map)
        munmap(map->map, map->map_bytes);
    *map = (struct rk_user_shm_map){NULL, NULL, 0};
}
