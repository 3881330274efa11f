/* SPDX-License-Identifier: BSD-3-Clause */
/* proto_table_test.c: read and write the protocol table, and share a copy. */
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/channel/shm/split_copy.h"
#include "lib/data/copy_nt.h"
#include "lib/channel/shm/proto_table.h"

#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/stat.h>

static const char machine[] = "A processor, Linux 6, librank 9";

/* RANK_LARGE takes the protocols' names, in the order of their ids. */
static void test_protocol_names(void **state)
{
    const struct rk_conf_row *row = rk_conf_rows;
    char names[128] = "auto";

    (void)state;
    for (int i = 0; i < RK_PROTOS; i++) {
        assert_int_equal(rk_shm_protos[i]->id, i);
        strcat(strcat(names, "|"), rk_shm_protos[i]->name);
    }
    while (row->name && strcmp(row->name, "RANK_LARGE") != 0)
        row++;
    assert_string_equal(row->allowed, names);
}

static void test_classes(void **state)
{
    (void)state;
    assert_int_equal(rk_proto_class(0), 0);
    assert_int_equal(rk_proto_class(8191), 0);
    assert_int_equal(rk_proto_class(8192), 1);
    for (int i = 0; i < RK_PROTO_CLASSES; i++)
        assert_int_equal(rk_proto_class(rk_proto_bytes(i)), i);
    assert_int_equal(rk_proto_class(UINT64_MAX), RK_PROTO_CLASSES - 1);
}

static void test_choice(void **state)
{
    struct rk_proto_table p;

    (void)state;
    rk_proto_table_built_in(&p);
    assert_false(p.measured);
    p.meet = 10000;
    for (int i = 0; i < RK_PROTO_CLASSES; i++) {
        p.rate[i][RK_PROTO_CMA] = 1000;
        p.rate[i][RK_PROTO_CMA2] = i < 4 ? 1100 : i < 5 ? 1300 : 1250; /* a tenth more, or 65 us - 1/11 - 10 us, is not enough */
        p.rate[i][RK_PROTO_RING] = 900;
        p.rate[i][RK_PROTO_MAPPED] = 2000;
        p.rate[i][RK_PROTO_MAPPED2] = i < 5 ? 3200 : 3000;
        p.rate[i][RK_PROTO_RING_NT] = i < 6 ? 980 : 5000;
    }
    rk_proto_table_choose(&p);
    assert_ptr_equal(p.best[3], &rk_shm_proto_cma);
    assert_ptr_equal(p.best[4], &rk_shm_proto_cma);
    assert_ptr_equal(p.best[5], &rk_shm_proto_cma2);
    assert_ptr_equal(p.best[6], &rk_shm_proto_ring_nt);
    assert_ptr_equal(p.alone[6], &rk_shm_proto_cma2);
    assert_ptr_equal(p.ring[5], &rk_shm_proto_ring);
    assert_ptr_equal(p.mapped[4], &rk_shm_proto_mapped);
    assert_ptr_equal(p.mapped[5], &rk_shm_proto_mapped2);
    assert_int_equal(rk_proto_table_nt_from(&p), rk_proto_bytes(6));
    p.rate[10][RK_PROTO_RING_NT] = 1;
    p.meet = 0; /* where meetings cost nothing more, they are worth it sooner */
    p.rate[5][RK_PROTO_MAPPED2] = 0;
    rk_proto_table_choose(&p);
    assert_ptr_equal(p.best[4], &rk_shm_proto_cma2);
    assert_ptr_equal(p.mapped[4], &rk_shm_proto_mapped2);
    assert_ptr_equal(p.mapped[5], &rk_shm_proto_mapped);
    assert_int_equal(rk_proto_table_nt_from(&p), UINT32_MAX);
    for (int i = 0; i < RK_PROTO_CLASSES; i++)
        p.rate[i][RK_PROTO_CMA] = p.rate[i][RK_PROTO_CMA2] = 0;
    rk_proto_table_choose(&p);
    assert_ptr_equal(p.best[0], &rk_shm_proto_ring);
}

/* Of just its length, so that a sanitizer sees a byte too many. */
static enum rk_proto_table_parsed parsed(const char *text, size_t len, const char *of, struct rk_proto_table *p)
{
    char *exact = malloc(len + 1);
    enum rk_proto_table_parsed r;

    assert_non_null(exact);
    memcpy(exact + 1, text, len);
    r = rk_proto_table_parse(exact + 1, len, of, p);
    free(exact);
    return r;
}

static void test_text(void **state)
{
    char text[RK_PROTO_TEXT_MAX];
    struct rk_proto_table p, q, none;
    size_t len;

    (void)state;
    rk_proto_table_built_in(&p);
    p.rate[3][RK_PROTO_CMA] = 0;
    p.rate[4][RK_PROTO_RING] = 123456;
    p.meet = 777;
    rk_proto_table_choose(&p);
    len = rk_proto_table_format(&p, machine, text);
    assert_true(len < sizeof(text));
    assert_int_equal(parsed(text, len, machine, &q), RK_PROTO_TABLE_OK);
    assert_true(q.measured);
    assert_memory_equal(q.rate, p.rate, sizeof(p.rate));
    assert_memory_equal(q.best, p.best, sizeof(p.best));
    assert_memory_equal(q.alone, p.alone, sizeof(p.alone));
    assert_memory_equal(q.mapped, p.mapped, sizeof(p.mapped));
    assert_int_equal(q.meet, 777);

    memset(&none, 0x55, sizeof(none));
    q = none;
    assert_int_equal(parsed(text, len, "Another processor", &q), RK_PROTO_TABLE_FOREIGN);
    for (size_t n = 0; n < len; n++)
        assert_int_not_equal(parsed(text, n, machine, &q), RK_PROTO_TABLE_OK);
    for (size_t i = 0; i < len; i++) { /* each bit that can go wrong */
        text[i] ^= (char)(1 << i % 7);
        assert_int_not_equal(parsed(text, len, machine, &q), RK_PROTO_TABLE_OK);
        text[i] ^= (char)(1 << i % 7);
    }
    text[len] = '\n';
    assert_int_not_equal(parsed(text, len + 1, machine, &q), RK_PROTO_TABLE_OK);
    assert_memory_equal(&q, &none, sizeof(q));
}

static void write_file(const char *name, const char *text, size_t len)
{
    FILE *f = fopen(name, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* The line, or "" for none. */
static const char *load(struct rk_proto_table *p, struct unit_stderr *e, bool *from_file)
{
    char *file;
    const char *said;

    unit_stderr_begin(e);
    file = rk_proto_table_load(p, true);
    said = unit_stderr_end(e);
    *from_file = file != NULL;
    free(file);
    return said;
}

static void test_file(void **state)
{
    char folder[] = "paths_test.XXXXXX", file[64], here[RK_PROTO_MACHINE_MAX], text[RK_PROTO_TEXT_MAX];
    struct unit_stderr *e = calloc(1, sizeof(*e));
    struct rk_proto_table p, q;
    bool from_file;
    size_t len;

    (void)state;
    assert_non_null(e);
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/a/b/paths", folder);
    rk_conf.paths = file;
    rk_proto_table_machine(here);
    assert_null(strchr(here, '\n'));

    assert_non_null(strstr(load(&p, e, &from_file), "is not used")); /* named, and not there */
    assert_false(from_file || p.measured);
    rk_proto_table_built_in(&p);
    p.rate[0][RK_PROTO_MAPPED] = 4711;
    assert_int_equal(rk_proto_table_save(&p, here, file), RANK_OK);
    assert_string_equal(load(&q, e, &from_file), "");
    assert_true(from_file && q.measured);
    assert_int_equal(q.rate[0][RK_PROTO_MAPPED], 4711);

    len = rk_proto_table_format(&p, "Another machine", text);
    write_file(file, text, len);
    assert_non_null(strstr(load(&q, e, &from_file), "another machine"));
    assert_false(from_file || q.measured);
    assert_int_not_equal(q.rate[0][RK_PROTO_MAPPED], 4711);
    write_file(file, text, len / 2);
    assert_non_null(strstr(load(&q, e, &from_file), "not used"));
    write_file(file, "", 0);
    assert_non_null(strstr(load(&q, e, &from_file), "damaged"));
    write_file(file, text, strlen("librank paths "));
    assert_non_null(strstr(load(&q, e, &from_file), "damaged"));
    write_file(file, "librank paths 2\nx\n", 18);
    assert_non_null(strstr(load(&q, e, &from_file), "of another version of librank; rankinfo --calibrate"));
    assert_false(from_file || q.measured);

    /* What cannot be replaced is reported; what was there stays, and nothing else is left. */
    unlink(file);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_non_null(strstr(load(&q, e, &from_file), "not a plain file"));
    unlink(file);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_non_null(strstr(load(&q, e, &from_file), "not a plain file"));
    unit_stderr_begin(e);
    assert_int_not_equal(rk_proto_table_save(&p, here, file), RANK_OK);
    assert_non_null(strstr(unit_stderr_end(e), "cannot write the table of paths"));
    rk_conf.paths = "none";
    assert_string_equal(load(&q, e, &from_file), "");
    assert_false(from_file);

    assert_int_equal(rmdir(file), 0);
    *strrchr(file, '/') = '\0';
    assert_int_equal(rmdir(file), 0); /* so it is empty */
    *strrchr(file, '/') = '\0';
    assert_int_equal(rmdir(file), 0);
    assert_int_equal(rmdir(folder), 0);
    free(e);
}

/* ------------------------------------------------------------------------- claims */

/* Each byte belongs to one share, whichever rank claims. */
static void cover(uint64_t bytes, uint64_t most, unsigned int order)
{
    uint64_t chunk = rk_chunk_of(bytes, most), chunks = rk_chunks(bytes, chunk), front = 0, back = bytes;
    _Atomic uint64_t word = rk_split_begin(7);
    struct rk_share s;

    assert_true(chunk >= RK_CHUNK_MIN && chunk % 1024 == 0);
    assert_true(chunks < 1 << 24);
    assert_false(rk_split_claim(&word, 6, bytes, chunk, true, &s)); /* another transfer's */
    for (uint64_t i = 0; i < chunks; i++) {
        bool from_front = order >> i % 32 & 1;

        assert_true(rk_split_claim(&word, 7 + (1 << 16), bytes, chunk, from_front, &s)); /* 16 bits of it count */
        assert_true(s.bytes > 0 && s.bytes <= chunk);
        if (from_front) {
            assert_int_equal(s.at, front);
            front += s.bytes;
        } else {
            assert_int_equal(s.at + s.bytes, back);
            back = s.at;
        }
    }
    assert_int_equal(front, back);
    assert_false(rk_split_claim(&word, 7, bytes, chunk, true, &s));
    assert_false(rk_split_claim(&word, 7, bytes, chunk, false, &s));
}

static void test_claims(void **state)
{
    static const uint64_t sizes[] = {1, 4095, 16384, 16385, 32768, 65535, 65536, 65537, 262144, 262145, 1 << 20,
                                     (1 << 20) + 1, (4 << 20) - 1};
    _Atomic uint64_t word = rk_split_begin(1);
    struct rk_share s;

    (void)state;
    for (size_t i = 0; i < RK_ARRAY_LEN(sizes); i++) {
        for (unsigned int order = 0; order < 64; order++) {
            cover(sizes[i], RK_CHUNK_MAPPED, order * 0x2545f491u);
            cover(sizes[i], RK_CHUNK_MAX, order * 0x2545f491u);
            cover(sizes[i], RK_CHUNK_BUSY, order * 0x2545f491u);
        }
    }
    assert_true(rk_chunks(1ull << 50, rk_chunk_of(1ull << 50, RK_CHUNK_MAX)) < 1 << 24);
    assert_true(rk_split_claim(&word, 1, 1 << 20, 65536, true, &s));
    rk_split_claim_rest(&word, 16);
    assert_false(rk_split_claim(&word, 1, 1 << 20, 65536, true, &s));
    assert_int_equal(rk_split_front(word), 1);
}

/* Two threads claim at once: what each got is marked. */
struct race {
    _Atomic uint64_t word;
    _Atomic unsigned char *taken;
    uint64_t bytes, chunk;
    bool front;
};

static void *claim_all(void *arg)
{
    struct race *r = arg;
    struct rk_share s;

    while (rk_split_claim(&r->word, 3, r->bytes, r->chunk, !r->front, &s))
        atomic_fetch_add(&r->taken[s.at / r->chunk], 1);
    return NULL;
}

static void test_claims_race(void **state)
{
    enum { CHUNKS = 50000 };
    struct race r = {.word = rk_split_begin(3), .chunk = RK_CHUNK_MIN, .bytes = (uint64_t)CHUNKS * RK_CHUNK_MIN};
    struct rk_share s;
    pthread_t t;

    (void)state;
    r.taken = calloc(CHUNKS, 1);
    assert_non_null(r.taken);
    assert_int_equal(pthread_create(&t, NULL, claim_all, &r), 0);
    while (rk_split_claim(&r.word, 3, r.bytes, r.chunk, true, &s))
        atomic_fetch_add(&r.taken[s.at / r.chunk], 1);
    assert_int_equal(pthread_join(t, NULL), 0);
    for (int i = 0; i < CHUNKS; i++)
        assert_int_equal(r.taken[i], 1);
    free((void *)r.taken);
}

static void test_streamed_copy(void **state)
{
    static unsigned char from[3000], to[3200];

    (void)state;
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t n = 0; n < 2000; n += n < 600 ? 1 : 61) {
        for (size_t off = 0; off < 70; off += 23) {
            memset(to, 0xee, sizeof(to));
            rk_copy_streamed(to + 64 + off, from + off % 5, n);
            assert_memory_equal(to + 64 + off, from + off % 5, n);
            assert_int_equal(to[63 + off], 0xee);
            assert_int_equal(to[64 + off + n], 0xee);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),     cmocka_unit_test(test_choice), cmocka_unit_test(test_text),
        cmocka_unit_test(test_file),        cmocka_unit_test(test_claims), cmocka_unit_test(test_claims_race),
        cmocka_unit_test(test_streamed_copy), cmocka_unit_test(test_protocol_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
