/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_options.c: parse options, by a configuration table. */
#include "bench/harness_options.h"

#include <stdlib.h>
#include <string.h>

#define DTYPE_WORDS                                                                                \
    "byte|int8|int16|int32|int64|uint8|uint16|uint32|uint64|f16|bf16|f32|f64|c32|c64|"             \
    "pair_int32|pair_int64|pair_f32|pair_f64|all"
#define OP_WORDS                                                                                   \
    "sum|prod|min|max|avg|land|lor|lxor|band|bor|bxor|minloc|maxloc|all"

const char bench_dtype_words[] = DTYPE_WORDS;
const char bench_op_words[] = OP_WORDS;

rank_dtype_t bench_dtype(int i)
{
    static const rank_dtype_t all[BENCH_DTYPES] = {
        RANK_BYTE, RANK_INT8, RANK_INT16, RANK_INT32, RANK_INT64, RANK_UINT8, RANK_UINT16, RANK_UINT32, RANK_UINT64, RANK_F16,
        RANK_BF16, RANK_F32, RANK_F64, RANK_F32_COMPLEX, RANK_F64_COMPLEX, RANK_PAIR_INT32, RANK_PAIR_INT64, RANK_PAIR_F32,
        RANK_PAIR_F64,
    };
    return all[i];
}

/* An operation has no size. */
rank_op_t bench_op(int i)
{
    return RANK_SUM + ((rank_op_t)i << 8);
}

#define AT(field) offsetof(struct bench_opts, field)

/* Long names are those of nccl-tests where it has the option. */
static const struct rk_conf_row rows[] = {
    {"--minbytes", RK_CONF_SIZE, "auto", "bytes",
     "the smallest size; auto: 1 for messages, 8 for collectives", "auto", 0, 1LL << 40, AT(min)},
    {"--maxbytes", RK_CONF_SIZE, "auto", "bytes",
     "the largest size; auto: 4M for messages, 1M for collectives", "auto", 0, 1LL << 40, AT(max)},
    {"--stepfactor", RK_CONF_INT, "2", "", "each size is the one before times this", NULL, 2,
     1 << 20, AT(factor)},
    {"--stepbytes", RK_CONF_SIZE, "0", "bytes", "each size is the one before plus this, if not 0",
     NULL, 0, 1LL << 40, AT(step)},
    {"--iters", RK_CONF_INT, "auto", "", "timed iterations a size; auto: as many as --time holds",
     "auto", 1, 1000000000, AT(iters)},
    {"--warmup", RK_CONF_INT, "auto", "", "iterations before them; auto: a quarter of --time",
     "auto", 0, 1000000000, AT(warmup)},
    {"--check", RK_CONF_INT, "1", "", "iterations after them with every byte verified", NULL, 0,
     1000000, AT(check)},
    {"--datatype", RK_CONF_ENUM, "f32", "", "of the elements of collectives", DTYPE_WORDS, 0, 0,
     AT(dtype)},
    {"--op", RK_CONF_ENUM, "sum", "", "of reductions", OP_WORDS, 0, 0, AT(op)},
    {"--root", RK_CONF_INT, "0", "", "rank, or all", "all", 0, 1 << 30, AT(root)},
    {"--average", RK_CONF_ENUM, "max", "",
     "which rank's time a collective's is; OSU and nccl-tests print avg", "rank0|avg|min|max", 0, 0,
     AT(average)},
    {"--time", RK_CONF_TIME, "100ms", "", "measuring time for each size", NULL, 0,
     3600000000000LL, AT(time)},
    {"--window", RK_CONF_INT, "64", "",
     "messages in flight in bandwidth tests, fewer where they exceed 32 MiB", NULL, 1, 1 << 16,
     AT(window)},
    {"--tx-depth", RK_CONF_INT, "auto", "",
     "messages outstanding in bandwidth tests; the next one starts when the oldest is complete, and --iters counts messages; "
     "fewer where they exceed 32 MiB; auto: by windows",
     "auto", 1, 1 << 16, AT(depth)},
    {"--bidirectional", RK_CONF_BOOL, "off", "", "let both ranks send, put or get at once in bandwidth tests", NULL, 0, 0,
     AT(both)},
    {"--report-gbits", RK_CONF_BOOL, "off", "", "print bandwidths in Gb/s in place of MiB/s", NULL, 0, 0, AT(gbits)},
    {"--limit-bw", RK_CONF_STRING, "", "",
     "end with code 3 if the average bandwidth of a size is below this many GB/s", NULL, 0, 0, AT(limit_bw_text)},
    {"--limit-lat", RK_CONF_STRING, "", "",
     "end with code 3 if the typical latency of a size is above this many us", NULL, 0, 0, AT(limit_lat_text)},
    {"--pairs", RK_CONF_INT, "auto", "", "senders of mrate; auto: half of the ranks", "auto", 1,
     1 << 20, AT(pairs)},
    {"--mem", RK_CONF_STRING, "any", "",
     "buffers from malloc (any or host), from the library (alloc: rank_alloc, MPI_Alloc_mem), shared memory of the "
     "program's, registered (shared), memory of the rank's CUDA device (cuda) or of device N (cuda:N), or managed by "
     "its driver (managed); two with a comma: of what is sent, and of what is received",
     NULL, 0, 0, AT(mem_text)},
    {"--target", RK_CONF_STRING, "auto", "",
     "what one-sided operations reach: memory from the library (alloc), or of the program's, registered, which is "
     "private or shared, or the library's on a CUDA device (cuda, cuda:N); auto: that device if --mem has one for this "
     "side, else alloc",
     NULL, 0, 0, AT(target_text)},
    {"--untouched", RK_CONF_BOOL, "off", "",
     "do not write the buffers before and read them after each iteration", NULL, 0, 0,
     AT(untouched)},
    {"--hist", RK_CONF_BOOL, "off", "",
     "time each iteration by itself and print how the times are spread", NULL, 0, 0, AT(hist)},
    {"--json", RK_CONF_STRING, "", "", "write an array with one record a size to this file", NULL,
     0, 0, AT(json)},
    {"--csv", RK_CONF_STRING, "", "", "write a line of headings and one with the same fields a size to this file", NULL,
     0, 0, AT(csv)},
    {"--listen", RK_CONF_STRING, "", "",
     "without a launcher: wait at this address, such as :7471, for one that is started with --connect, and run what it asks for",
     NULL, 0, 0, AT(listen)},
    {"--connect", RK_CONF_STRING, "", "", "run with the one that listens at this address, such as host:7471", NULL, 0, 0,
     AT(connect)},
    {"--blocks", RK_CONF_INT, "256", "", "blocks of a list in write_list and read_list", NULL, 1, 1 << 20, AT(blocks)},
    {"--block", RK_CONF_SIZE, "1K", "bytes", "size of each block of a list", NULL, 1, 1 << 30, AT(block)},
    {"--list", RK_CONF_BOOL, "off", "", "name the benchmarks", NULL, 0, 0, AT(list)},
    {"--help", RK_CONF_BOOL, "off", "", "this text", NULL, 0, 0, AT(help)},
    {NULL, RK_CONF_BOOL, NULL, NULL, NULL, NULL, 0, 0, 0},
};

/* Letters of the rows, in their order; a blank: none. */
static const char letters[] = "befinwcdora  t     m   j      h";

/* The options of nccl-tests. */
static const char *known_as(const char *row, const char *text)
{
    static const char *const alias[][3] = {
        {"--datatype", "half", "f16"},    {"--datatype", "float", "f32"},
        {"--datatype", "double", "f64"},  {"--datatype", "bfloat16", "bf16"},
        {"--average", "0", "rank0"},      {"--average", "1", "avg"},
        {"--average", "2", "min"},        {"--average", "3", "max"},
    };

    for (size_t i = 0; i < sizeof(alias) / sizeof(alias[0]); i++) {
        if (strcmp(row, alias[i][0]) == 0 && strcmp(text, alias[i][1]) == 0)
            return alias[i][2];
    }
    return text;
}

const char *bench_word(const char *words, int i, char *out, size_t outlen)
{
    for (; i > 0; i--)
        words += strcspn(words, "|") + 1;
    snprintf(out, outlen, "%.*s", (int)strcspn(words, "|"), words);
    return out;
}

/* The row of an argument that begins with '-'; *value points behind "=" or the letter, or is NULL. */
static const struct rk_conf_row *harness_options_find(const char *arg, const char **value, char *name,
                                      size_t namelen)
{
    const char *letter, *eq = strchr(arg, '=');
    size_t len = eq ? (size_t)(eq - arg) : strlen(arg);

    *value = NULL;
    snprintf(name, namelen, "%.*s", (int)len, arg);
    if (arg[1] != '-') {
        letter = arg[1] == ' ' || !arg[1] ? NULL : strchr(letters, arg[1]);
        if (!letter)
            return NULL;
        if (arg[2])
            *value = arg + 2;
        return &rows[letter - letters];
    }
    for (const struct rk_conf_row *row = rows; row->name; row++) {
        if (strcmp(row->name, name) == 0) {
            if (eq)
                *value = eq + 1;
            return row;
        }
    }
    return NULL;
}

static int parse_option(struct bench_opts *opts, const char *arg, const char *next, int *used,
                        char *err, size_t errlen)
{
    char name[128];
    const char *value;
    const struct rk_conf_row *row = harness_options_find(arg, &value, name, sizeof(name));

    *used = 1;
    if (!row) {
        row = rk_conf_nearest(rows, name);
        if (row)
            snprintf(err, errlen, "unknown option %s; did you mean %s?", name, row->name);
        else
            snprintf(err, errlen, "unknown option %s; --help lists them", name);
        return -1;
    }
    if (row->type == RK_CONF_BOOL) {
        if (value && arg[1] != '-') {
            snprintf(err, errlen, "%s: %s takes no value", arg, row->name);
            return -1;
        }
        value = value ? value : "on";
    } else if (!value) {
        if (!next) {
            snprintf(err, errlen, "%s needs a value", arg);
            return -1;
        }
        value = next;
        *used = 2;
    }
    return rk_conf_parse_value(row, known_as(row->name, value), opts, err, errlen) ? -1 : 0;
}

static const struct mem_word {
    const char *name;
    enum be_sort sort;
    bool buffer, target; /* of which option */
} mem_words[] = {
    {"any", BE_MALLOC, true, false},     {"host", BE_MALLOC, true, false}, {"alloc", BE_ALLOC, true, true},
    {"private", BE_PRIVATE, false, true}, {"shared", BE_SHARED, true, true}, {"cuda", BE_CUDA, true, true},
    {"managed", BE_MANAGED, true, false},
};

/* Of len characters: a word, or cuda:N. */
static bool parse_mem(const char *text, size_t len, bool target, struct be_mem *out)
{
    size_t word = strcspn(text, ":,");
    char *end;
    long device;

    for (size_t i = 0; i < sizeof(mem_words) / sizeof(mem_words[0]); i++) {
        const struct mem_word *w = &mem_words[i];

        if (strlen(w->name) != word || strncmp(w->name, text, word) != 0 || !(target ? w->target : w->buffer))
            continue;
        *out = (struct be_mem){w->sort, -1};
        if (word == len)
            return true;
        device = strtol(text + word + 1, &end, 10);
        out->device = (int)device;
        return w->sort == BE_CUDA && text[word + 1] >= '0' && text[word + 1] <= '9' && end == text + len && device <= 1023;
    }
    return false;
}

static int parse_mems(struct bench_opts *opts, char *err, size_t errlen)
{
    const char *text = opts->mem_text, *comma = strchr(text, ',');
    size_t first = comma ? (size_t)(comma - text) : strlen(text);

    if (!parse_mem(text, first, false, &opts->mem[0]) ||
        (comma && !parse_mem(comma + 1, strlen(comma + 1), false, &opts->mem[1]))) {
        snprintf(err, errlen, "--mem %s: there are any, host, alloc, shared, cuda, cuda:N and managed, or two of them with a comma", text);
        return -1;
    }
    if (!comma)
        opts->mem[1] = opts->mem[0];
    opts->target_auto = strcmp(opts->target_text, "auto") == 0;
    opts->target = (struct be_mem){BE_ALLOC, -1};
    if (!opts->target_auto && !parse_mem(opts->target_text, strlen(opts->target_text), true, &opts->target)) {
        snprintf(err, errlen, "--target %s: there are auto, alloc, private, shared, cuda and cuda:N", opts->target_text);
        return -1;
    }
    return 0;
}

/* A number above 0, of a unit; "": 0. */
static int parse_limit(const char *option, const char *text, const char *unit, double *out, char *err, size_t errlen)
{
    char *end;

    *out = strtod(text, &end);
    if (!*text || (end != text && !*end && *out > 0 && *out <= 1e12))
        return 0;
    snprintf(err, errlen, "%s %s: a number of %s above 0 is needed", option, text, unit);
    return -1;
}

bool bench_opts_need_device(const struct bench_opts *opts)
{
    return be_needs_device(opts->mem[0]) || be_needs_device(opts->mem[1]) || be_needs_device(opts->target);
}

int bench_opts_parse(struct bench_opts *opts, int argc, char **argv, char *err, size_t errlen)
{
    bool only_names = false;

    memset(opts, 0, sizeof(*opts));
    if (rk_conf_set_defaults(rows, opts)) {
        snprintf(err, errlen, "out of memory");
        return -1;
    }
    for (int i = 1, used; i < argc; i += used) {
        used = 1;
        if (!only_names && strcmp(argv[i], "--") == 0) {
            only_names = true;
        } else if (!only_names && argv[i][0] == '-') {
            if (parse_option(opts, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used, err, errlen))
                return -1;
        } else if (opts->names_n == BENCH_MAX_NAMES) {
            snprintf(err, errlen, "more than %d benchmarks", BENCH_MAX_NAMES);
            return -1;
        } else {
            opts->names[opts->names_n++] = argv[i];
        }
    }
    if (opts->min >= 0 && opts->max >= 0 && opts->min > opts->max) {
        snprintf(err, errlen, "--minbytes %lld is more than --maxbytes %lld", (long long)opts->min,
                 (long long)opts->max);
        return -1;
    }
    if (parse_limit("--limit-bw", opts->limit_bw_text, "GB/s", &opts->limit_bw, err, errlen) ||
        parse_limit("--limit-lat", opts->limit_lat_text, "us", &opts->limit_lat, err, errlen))
        return -1;
    return parse_mems(opts, err, errlen);
}

void bench_opts_free(struct bench_opts *opts)
{
    free((char *)opts->json);
    free((char *)opts->csv);
    free((char *)opts->listen);
    free((char *)opts->connect);
    free((char *)opts->mem_text);
    free((char *)opts->target_text);
    free((char *)opts->limit_bw_text);
    free((char *)opts->limit_lat_text);
    opts->json = opts->csv = opts->listen = opts->connect = opts->mem_text = opts->target_text = opts->limit_bw_text = opts->limit_lat_text = NULL;
}

/* Text in lines of at most width characters, each after the first behind indent blanks. */
static void harness_options_print_wrapped(FILE *out, const char *text, int indent, int width)
{
    size_t room = (size_t)(width - indent);

    while (strlen(text) > room) {
        size_t n = room;
        while (n && text[n] != ' ' && text[n - 1] != '|')
            n--;
        if (!n)
            n = room;
        fprintf(out, "%.*s\n%*s", (int)n, text, indent, "");
        text += n + (text[n] == ' ');
    }
    fprintf(out, "%s\n", text);
}

void bench_opts_print(FILE *out)
{
    char text[1024];

    for (int i = 0; rows[i].name; i++) {
        const struct rk_conf_row *row = &rows[i];
        const char *dflt = row->type == RK_CONF_BOOL || !row->dflt[0] ? NULL : row->dflt;

        fprintf(out, "  %c%c %-15s ", letters[i] == ' ' ? ' ' : '-', letters[i], row->name);
        snprintf(text, sizeof(text), "%s%s%s%s%s%s%s", row->doc, dflt ? " (" : "", dflt ? dflt : "",
                 dflt ? ")" : "", row->type == RK_CONF_ENUM ? ": " : "",
                 row->type == RK_CONF_ENUM ? row->allowed : "", "");
        harness_options_print_wrapped(out, text, 21, 100);
    }
}

int64_t bench_next_size(int64_t size, int64_t max, int64_t step, int64_t factor)
{
    if (step ? __builtin_add_overflow(size, step, &size) : __builtin_mul_overflow(size ? size : 1, size ? factor : 1, &size))
        return -1;
    return size <= max ? size : -1;
}
