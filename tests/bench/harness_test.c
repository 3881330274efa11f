/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_test.c: test the harness without ranks: statistics, options, JSON. */
#include "tests/unit/unit.h"

#include "bench/bench.h"
#include "bench/harness_hist.h"
#include "bench/harness_setting.h"
#include "bench/harness_stats.h"
#include "launcher/util/json_writer.h"

#include <math.h>

static void stats_of_known_samples(void **state)
{
    static double lots[10000];
    double one[] = {7}, even[] = {4, 1, 3, 2}, many[200];
    struct bench_stats s = bench_stats_of(one, 1);

    (void)state;
    assert_true(s.min == 7 && s.median == 7 && s.p99 == 7 && s.max == 7);
    s = bench_stats_of(even, 4);
    assert_true(s.min == 1 && s.median == 2.5 && s.p99 == 4 && s.max == 4);
    for (int i = 0; i < 200; i++)
        many[i] = 200 - i;
    s = bench_stats_of(many, 200);
    assert_true(s.min == 1 && s.median == 100.5 && s.p99 == 198 && s.p999 == 200 && s.max == 200);
    s = bench_stats_of(many, 0);
    assert_true(s.min == 0 && s.median == 0 && s.p99 == 0 && s.p999 == 0 && s.max == 0);
    for (int i = 0; i < 10000; i++)
        lots[i] = (i * 7919 + 5) % 10000 + 1;
    s = bench_stats_of(lots, 10000);
    assert_true(s.p99 == 9900 && s.p999 == 9990 && s.max == 10000);
}

static void buckets_are_powers_of_two(void **state)
{
    (void)state;
    assert_int_equal(bench_hist_bucket(0), 0);
    assert_int_equal(bench_hist_bucket(-1), 0);
    assert_int_equal(bench_hist_bucket(0.0005), 0);
    assert_int_equal(bench_hist_bucket(0.001), 1);
    for (int i = 1; i < 40; i++) {
        double low = ldexp(1e-3, i - 1);
        assert_int_equal(bench_hist_bucket(low * 1.001), i);
        assert_int_equal(bench_hist_bucket(low * 1.999), i);
    }
    assert_int_equal(bench_hist_bucket(1e30), BENCH_HIST_BUCKETS - 1);
}

static void histogram_as_text(void **state)
{
    struct bench_hist hist = {.n = 0};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    assert_non_null(out);
    bench_hist_print(&hist, out); /* nothing */
    for (int i = 0; i < 998; i++)
        bench_hist_add(&hist, 0.1);
    bench_hist_add(&hist, 0.3);
    bench_hist_add(&hist, 0.3);
    fclose(out);
    assert_int_equal(len, 0);
    free(text);
    out = open_memstream(&text, &len);
    assert_non_null(out);
    bench_hist_print(&hist, out);
    fclose(out);
    assert_string_equal(text,
                        "#    64 ns -   128 ns       998  99.80 % "
                        "##################################################\n"
                        "#   128 ns -   256 ns         0   0.00 % \n"
                        "#   256 ns -   512 ns         2   0.20 % #\n");
    free(text);
}

static void expect_sizes(int64_t min, int64_t max, int64_t step, int64_t factor, int n,
                         const int64_t *want)
{
    int64_t got = min;

    for (int i = 0; i < n; i++, got = bench_next_size(got, max, step, factor))
        assert_int_equal(got, want[i]);
    assert_int_equal(got, -1);
}

static void sizes_by_factor_and_step(void **state)
{
    (void)state;
    expect_sizes(8, 100, 0, 2, 4, (int64_t[]){8, 16, 32, 64});
    expect_sizes(0, 9, 0, 3, 4, (int64_t[]){0, 1, 3, 9});
    expect_sizes(10, 35, 10, 2, 3, (int64_t[]){10, 20, 30});
    expect_sizes(5, 5, 0, 2, 1, (int64_t[]){5});
    expect_sizes(INT64_MAX / 2 + 1, INT64_MAX, 0, 2, 1, (int64_t[]){INT64_MAX / 2 + 1});
    expect_sizes(INT64_MAX - 1, INT64_MAX, 2, 2, 1, (int64_t[]){INT64_MAX - 1});
}

static int parse(struct bench_opts *o, char *err, size_t len, const char *const *words)
{
    char *argv[16] = {(char *)"bench"};
    int argc = 1;

    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    err[0] = '\0';
    return bench_opts_parse(o, argc, argv, err, len);
}

static void options_as_nccl_tests(void **state)
{
    struct bench_opts o;
    char err[512];

    (void)state;
    assert_int_equal(parse(&o, err, sizeof(err), (const char *const[]){"lat", NULL}), 0);
    assert_int_equal(o.min, BENCH_AUTO);
    assert_int_equal(o.iters, BENCH_AUTO);
    assert_int_equal(o.check, 1);
    assert_int_equal(o.dtype, BENCH_INDEX(RANK_F32));
    assert_int_equal(o.op, BENCH_INDEX(RANK_SUM));
    assert_int_equal(o.average, BENCH_MAX);
    assert_int_equal(o.names_n, 1);
    assert_string_equal(o.json, "");
    bench_opts_free(&o);

    assert_int_equal(parse(&o, err, sizeof(err),
                           (const char *const[]){"-b", "8", "-e1M", "--stepfactor=4", "-d",
                                                 "double", "-o", "all", "-r", "all", "-a", "1",
                                                 "--untouched", "bw", NULL}),
                     0);
    assert_int_equal(o.min, 8);
    assert_int_equal(o.max, 1 << 20);
    assert_int_equal(o.factor, 4);
    assert_int_equal(o.dtype, BENCH_INDEX(RANK_F64));
    assert_int_equal(o.op, BENCH_OPS);
    assert_int_equal(o.root, BENCH_AUTO);
    assert_int_equal(o.average, BENCH_AVG);
    assert_true(o.untouched);
    assert_string_equal(o.names[0], "bw");
    bench_opts_free(&o);
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *words[4], *said;
    } cases[] = {
        {{"--minbyte", "8", NULL}, "did you mean --minbytes?"},
        {{"--zzzzzzzz", NULL}, "--help lists them"},
        {{"-q", NULL}, "unknown option -q"},
        {{"-", NULL}, "unknown option -"},
        {{"-b", "-8", NULL}, "--minbytes is '-8'"},
        {{"-b", "x", NULL}, "--minbytes is 'x'"},
        {{"-f", "1", NULL}, "--stepfactor is '1'"},
        {{"-d", "f128", NULL}, "--datatype is 'f128'"},
        {{"-n", "0", NULL}, "--iters is '0'; allowed is a whole number from 1 to 1000000000, or auto"},
        {{"-r", "-1", NULL}, "--root is '-1'; allowed is a whole number from 0 to 1073741824, or all"},
        {{"-b", NULL}, "-b needs a value"},
        {{"-b64", "-e8", NULL}, "--minbytes 64 is more than --maxbytes 8"},
    };
    struct bench_opts o;
    char err[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse(&o, err, sizeof(err), cases[i].words), -1);
        if (!strstr(err, cases[i].said))
            fail_msg("'%s' does not hold '%s'", err, cases[i].said);
        bench_opts_free(&o);
    }
}

static void words_follow_rank_h(void **state)
{
    char word[32];

    (void)state;
    assert_string_equal(bench_word(bench_dtype_words, BENCH_INDEX(RANK_BF16), word, sizeof(word)), "bf16");
    assert_string_equal(bench_word(bench_dtype_words, BENCH_DTYPES, word, sizeof(word)), "all");
    assert_string_equal(bench_word(bench_op_words, BENCH_INDEX(RANK_MAXLOC), word, sizeof(word)), "maxloc");
    assert_string_equal(bench_word(bench_op_words, BENCH_OPS, word, sizeof(word)), "all");
}

static void read_text(const char *path, char *text, size_t room)
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    text[fread(text, 1, room - 1, f)] = '\0';
    fclose(f);
}

static void json_is_written_and_quoted(void **state)
{
    char path[] = "/tmp/frame_test.XXXXXX", text[512];
    struct xr_json json = {0};
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(xr_json_open(&json, path), 0);
    xr_json_flat_object(&json, NULL);
    xr_json_text(&json, "a", "q\"b\\c\n");
    xr_json_int(&json, "i", -5);
    xr_json_end(&json);
    xr_json_checkpoint(&json);
    read_text(path, text, sizeof(text)); /* as if the program ended here */
    assert_string_equal(text, "[\n  {\"a\": \"q\\\"b\\\\c\\u000a\", \"i\": -5}\n]\n");
    xr_json_flat_object(&json, NULL);
    xr_json_real(&json, "r", 0.25);
    xr_json_real(&json, "n", __builtin_inf());
    xr_json_bool(&json, "t", true);
    xr_json_null(&json, "u");
    xr_json_end(&json);
    assert_int_equal(xr_json_close(&json), 0);
    read_text(path, text, sizeof(text));
    assert_string_equal(text, "[\n  {\"a\": \"q\\\"b\\\\c\\u000a\", \"i\": -5},\n"
                              "  {\"r\": 0.25, \"n\": null, \"t\": true, \"u\": null}\n]\n");

    assert_int_equal(xr_json_open(&json, path), 0); /* no records: still an array */
    assert_int_equal(xr_json_close(&json), 0);
    read_text(path, text, sizeof(text));
    assert_string_equal(text, "[]\n");
    unlink(path);
    assert_int_equal(xr_json_open(&json, "/nowhere/at/all"), -1);
    assert_int_equal(xr_json_open(&json, "/dev/full"), 0);
    xr_json_flat_object(&json, NULL);
    xr_json_end(&json);
    assert_int_equal(xr_json_close(&json), -1);
}

static void hosts_and_placement_as_text(void **state)
{
    static const struct bench_place block[] = {{"a", "0", "cuda:0 A", "mlx5_0 PIX"}, {"a", "1-2", "cuda:1 B", "mlx5_0 PIX"},
                                                {"b", "0", "cuda:0 A", "mlx5_1"}, {"b", "1-2", "cuda:1 B", "mlx5_1"}};
    static const struct bench_place cyclic[] = {{"a", "0-7", "", ""}, {"b", "0-7", "", ""}, {"a", "0-7", "", ""}, {"a", "0-7", "", ""}, {"b", "0-7", "", ""}};
    char *text = bench_setting_hosts(block, 4);

    (void)state;
    assert_string_equal(text, "a: ranks 0-1; b: ranks 2-3");
    free(text);
    text = bench_setting_placement(block, 4);
    assert_string_equal(text, "ranks 0,2: cpus 0; ranks 1,3: cpus 1-2");
    free(text);
    text = bench_setting_gpus(block, 4);
    assert_string_equal(text, "ranks 0,2: cuda:0 A; ranks 1,3: cuda:1 B");
    free(text);
    text = bench_setting_nics(block, 4);
    assert_string_equal(text, "ranks 0-1: mlx5_0 PIX; ranks 2-3: mlx5_1");
    free(text);
    text = bench_setting_nics(cyclic, 5);
    assert_string_equal(text, "");
    free(text);
    text = bench_setting_gpus(cyclic, 5);
    assert_string_equal(text, "");
    free(text);
    text = bench_setting_hosts(cyclic, 5);
    assert_string_equal(text, "a: ranks 0,2-3; b: ranks 1,4");
    free(text);
    text = bench_setting_placement(cyclic, 5);
    assert_string_equal(text, "ranks 0-4: cpus 0-7");
    free(text);
    text = bench_setting_hosts(cyclic, 1);
    assert_string_equal(text, "a: rank 0");
    free(text);
}

static void protocols_out_of_rankinfo(void **state)
{
    static const char said[] = "  RANK_EAGER_MAX = 16K\n      default: 16K; value: a size\n"
                               "  from     takes     if mapped    mapped\n"
                               "  4 KiB    cma       mapped         29.3  only if\n  8 KiB    cma       mapped\n"
                               "  16 KiB   ring      mapped         39.9\n  32 KiB   cma       mapped         42.0\n"
                               "  64 KiB   cma       mapped         42.0\n  1 MiB    cma2      mapped2        43.8\n";
    char *text = bench_setting_shm(said, 0), way[32];

    (void)state;
    assert_string_equal(text, "eager up to 16K, ring above 16K, cma from 32K, cma2 from 1M");
    free(text);
    text = bench_setting_shm(said, 1);
    assert_string_equal(text, "eager up to 16K, mapped above 16K, mapped2 from 1M");
    free(text);
    assert_null(bench_setting_shm("no such table\n", 0));
    bench_setting_far("  4 MiB    ring_nt\npaths of messages from device memory on a host\n  cuda     one copy; mapped\nnext\n", way, sizeof(way));
    assert_string_equal(way, "one copy; mapped");
    bench_setting_far("paths of messages from device memory on a host\n  cuda     not used: no module\n", way, sizeof(way));
    assert_string_equal(way, "");
    bench_setting_far("no such table\n", way, sizeof(way));
    assert_string_equal(way, "");
    assert_null(bench_setting_shm("", 0));
}

static void bus_factors_of_nccl_tests(void **state)
{
    static const struct {
        const char *name;
        double at4;
    } want[] = {{"barrier", 1},    {"bcast", 1},       {"reduce", 1},  {"allreduce", 1.5},
                {"gather", .75},   {"allgather", .75}, {"allgatherv", .75},
                {"scatter", .75},  {"reduce_scatter", .75}, {"alltoall", .75},
                {"gatherv", .75},  {"scatterv", .75},  {"alltoallv", .75},
                {"reduce_scatterv", .75}, {"scan", 1}, {"exscan", 1}};
    size_t n = 0;

    (void)state;
    for (const struct bench_entry *e = bench_coll; e->name; e++, n++) {
        assert_string_equal(e->name, want[n].name);
        assert_true((e->bus ? e->bus(4) : 1) == want[n].at4);
    }
    assert_int_equal(n, sizeof(want) / sizeof(want[0]));
}

static void patterns_differ_by_rank_and_place(void **state)
{
    struct bench_opts o = {0};
    struct bench_run run = {.opts = &o, .turn = 5};
    char buf[1000];

    (void)state;
    bench_pattern(&run, 3, buf, sizeof(buf));
    assert_int_equal(bench_pattern_wrong(&run, 3, buf, sizeof(buf)), 0);
    assert_true(bench_pattern_wrong(&run, 2, buf, sizeof(buf)) > 900);
    assert_true(bench_pattern_wrong(&run, 3, buf + 1, sizeof(buf) - 1) > 900);
    buf[777] ^= 1;
    assert_int_equal(bench_pattern_wrong(&run, 3, buf, sizeof(buf)), 1);
}

/* Sums in every datatype that has them: what the checker takes for right, and that it sees a bit. */
static void sums_are_judged(void **state)
{
    struct bench_opts o = {0};
    int32_t in[3][64], sum[64];
    double din[3][64], dsum[64];
    struct bench_run run = {.opts = &o, .dtype = RANK_INT32, .op = RANK_SUM, .turn = 9};
    int64_t moved = 0;

    (void)state;
    for (int r = 0; r < 3; r++)
        bench_fill(&run, 3, r, in[r], 100, 64);
    for (int i = 0; i < 64; i++)
        sum[i] = in[0][i] + in[1][i] + in[2][i];
    assert_int_equal(bench_wrong(&run, 3, sum, 100, 64), 0);
    moved = bench_wrong(&run, 3, sum, 101, 64);
    assert_true(moved > 20);
    sum[17]++;
    assert_int_equal(bench_wrong(&run, 3, sum, 100, 64), 1);

    run.dtype = RANK_F64;
    for (int r = 0; r < 3; r++)
        bench_fill(&run, 3, r, din[r], 0, 64);
    for (int i = 0; i < 64; i++)
        dsum[i] = din[0][i] + din[1][i] + din[2][i];
    assert_int_equal(bench_wrong(&run, 3, dsum, 0, 64), 0);
    dsum[0] = __builtin_nan("");
    dsum[1] += 1e-9;
    assert_int_equal(bench_wrong(&run, 3, dsum, 0, 64), 2);
}

/* However many ranks: at most 256, which is exact in every type and on every way there, and each rank counts somewhere. */
static void many_ranks_are_judged(void **state)
{
    static const int ranks[] = {63, 64, 65, 128, 200, 520, 1000};
    enum { PLACES = 256 };
    struct bench_opts o = {0};
    uint64_t in[PLACES], all[PLACES];

    (void)state;
    for (size_t k = 0; k < sizeof(ranks) / sizeof(ranks[0]); k++) {
        for (rank_op_t op = RANK_SUM; op <= RANK_PROD; op += RANK_PROD - RANK_SUM) {
            struct bench_run run = {.opts = &o, .dtype = RANK_UINT64, .op = op, .turn = 3};
            uint64_t nothing = op == RANK_PROD;
            for (int i = 0; i < PLACES; i++)
                all[i] = nothing;
            for (int r = 0; r < ranks[k]; r++) {
                int counts = 0;
                bench_fill(&run, ranks[k], r, in, 0, PLACES);
                for (int i = 0; i < PLACES; i++) {
                    all[i] = nothing ? all[i] * in[i] : all[i] + in[i];
                    counts += in[i] != nothing;
                }
                assert_true(counts > 0);
            }
            assert_int_equal(bench_wrong(&run, ranks[k], all, 0, PLACES), 0);
            for (int i = 0; i < PLACES; i++)
                assert_in_range(all[i], 1, 256);
            all[7]++;
            assert_int_equal(bench_wrong(&run, ranks[k], all, 0, PLACES), 1);
        }
    }
}

/* One rank's own input is the result over one rank, whatever the type and operation. */
static void every_type_and_operation_is_judged(void **state)
{
    struct bench_opts o = {0};
    char buf[64 * 16];
    int judged = 0;

    (void)state;
    for (int d = 0; d < BENCH_DTYPES; d++) {
        for (int op = 0; op < BENCH_OPS; op++) {
            struct bench_run run = {.opts = &o, .dtype = bench_dtype(d), .op = bench_op(op)};
            if (!rank_op_defined(run.op, run.dtype))
                continue;
            bench_fill(&run, 1, 0, buf, 0, 64);
            assert_int_equal(bench_wrong(&run, 1, buf, 0, 64), 0);
            memset(buf, 0x55, sizeof(buf));
            assert_true(bench_wrong(&run, 1, buf, 0, 64) > 32);
            judged++;
        }
    }
    assert_true(judged > 90);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stats_of_known_samples),
        cmocka_unit_test(buckets_are_powers_of_two),
        cmocka_unit_test(histogram_as_text),
        cmocka_unit_test(sizes_by_factor_and_step),
        cmocka_unit_test(options_as_nccl_tests),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(words_follow_rank_h),
        cmocka_unit_test(json_is_written_and_quoted),
        cmocka_unit_test(hosts_and_placement_as_text),
        cmocka_unit_test(protocols_out_of_rankinfo),
        cmocka_unit_test(bus_factors_of_nccl_tests),
        cmocka_unit_test(patterns_differ_by_rank_and_place),
        cmocka_unit_test(sums_are_judged),
        cmocka_unit_test(many_ranks_are_judged),
        cmocka_unit_test(every_type_and_operation_is_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
