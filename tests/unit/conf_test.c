/* SPDX-License-Identifier: BSD-3-Clause */
/* conf_test.c: parse the configuration table: types, errors, files, origins. */
#include "tests/unit/unit.h"

#include "lib/base/conf.h"
#include "lib/base/log.h"

struct target {
    bool b;
    int64_t i, size, time, maybe;
    int e;
    uint32_t set;
    char *s, *path;
    int64_t guard;
};

#define AT(f) offsetof(struct target, f)
static const struct rk_conf_row rows[] = {
    {"RANK_T_BOOL", RK_CONF_BOOL, "off", "", "a switch", NULL, 0, 0, AT(b)},
    {"RANK_T_INT", RK_CONF_INT, "3", "", "a number", NULL, -5, 100, AT(i)},
    {"RANK_T_SIZE", RK_CONF_SIZE, "16K", "bytes", "a size", NULL, 0, 1 << 20, AT(size)},
    {"RANK_T_TIME", RK_CONF_TIME, "2ms", "", "a time", NULL, 0, 10000000000LL, AT(time)},
    {"RANK_T_MAYBE", RK_CONF_TIME, "auto", "", "a time or not", "auto", 0, 10000000000LL, AT(maybe)},
    {"RANK_T_SOME", RK_CONF_INT, "3", "", "a number or all", "all", 0, 100, AT(i)},
    {"RANK_T_ENUM", RK_CONF_ENUM, "two", "", "one of", "one|two|three", 0, 0, AT(e)},
    {"RANK_T_SET", RK_CONF_SET, "red,blue", "", "some of", "red|green|blue", 0, 0, AT(set)},
    {"RANK_T_TEXT", RK_CONF_STRING, "nothing", "", "a text", NULL, 0, 0, AT(s)},
    {"RANK_T_PATH", RK_CONF_STRING, "auto", "", "a word or a path", "auto|off", 0, 0, AT(path)},
    {NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0},
};
enum { BOOL, INT, SIZE, TIME, MAYBE, SOME, ENUM, SET, TEXT, PATH };

static int setup(void **state)
{
    struct target *t = calloc(1, sizeof(*t));

    *state = t;
    t->guard = 0x1234;
    return rk_conf_set_defaults(rows, t) ? -1 : 0;
}

static int teardown(void **state)
{
    struct target *t = *state;
    bool kept = t->guard == 0x1234;

    free(t->s);
    free(t->path);
    free(t);
    return kept ? 0 : -1;
}

static void good(struct target *t, int row, const char *text)
{
    char err[256] = "";

    if (rk_conf_parse_value(&rows[row], text, t, err, sizeof(err)) != RANK_OK)
        fail_msg("%s=%s refused: %s", rows[row].name, text, err);
}

/* Refused, the value untouched, the message names the variable, the value and what is allowed. */
static void bad(struct target *t, int row, const char *text, const char *allowed)
{
    struct target before = *t;
    char err[512] = "";

    if (rk_conf_parse_value(&rows[row], text, t, err, sizeof(err)) != RANK_ERR_CONFIG)
        fail_msg("%s=%s accepted", rows[row].name, text);
    assert_memory_equal(&before, t, sizeof(before));
    assert_contains(err, rows[row].name);
    assert_contains(err, text);
    assert_contains(err, allowed);
}

static void defaults(void **state)
{
    struct target *t = *state;

    assert_false(t->b);
    assert_int_equal(t->i, 3);
    assert_int_equal(t->size, 16384);
    assert_int_equal(t->time, 2000000);
    assert_int_equal(t->maybe, -1);
    assert_int_equal(t->e, 1);
    assert_int_equal(t->set, 5);
    assert_string_equal(t->s, "nothing");
}

static void bools(void **state)
{
    static const char *const yes[] = {"on", "yes", "true", "1", "ON", "Yes", "TRUE"};
    static const char *const no[] = {"off", "no", "false", "0", "OFF", "No", "FALSE"};
    static const char *const wrong[] = {"o", "onn", "2", "-1", "truee", " on", "off "};
    struct target *t = *state;

    for (size_t i = 0; i < 7; i++) {
        good(t, BOOL, yes[i]);
        assert_true(t->b);
        good(t, BOOL, no[i]);
        assert_false(t->b);
        bad(t, BOOL, wrong[i], "on and off");
    }
    bad(t, BOOL, "", "on and off");
}

static void ints(void **state)
{
    struct target *t = *state;

    good(t, INT, "-5");
    assert_int_equal(t->i, -5);
    good(t, INT, "100");
    assert_int_equal(t->i, 100);
    bad(t, INT, "-6", "-5 to 100");
    bad(t, INT, "101", "-5 to 100");
    bad(t, INT, "x", "-5 to 100");
    bad(t, INT, "", "-5 to 100");
    bad(t, INT, "1x", "-5 to 100");
    bad(t, INT, "1k", "-5 to 100");
    bad(t, INT, "99999999999999999999", "-5 to 100");
    bad(t, INT, "-99999999999999999999", "-5 to 100");
    bad(t, INT, "0x10", "-5 to 100");
}

static void sizes(void **state)
{
    struct target *t = *state;
    static const struct {
        const char *text;
        int64_t bytes;
    } ok[] = {{"0", 0},      {"4096", 4096}, {"7b", 7},         {"1k", 1024},
              {"1K", 1024},  {"1kB", 1024},  {"1KiB", 1024},    {"64 K", 65536},
              {"1m", 1 << 20}, {"1MiB", 1 << 20}, {"1048576", 1 << 20}};

    for (size_t i = 0; i < sizeof(ok) / sizeof(ok[0]); i++) {
        good(t, SIZE, ok[i].text);
        assert_int_equal(t->size, ok[i].bytes);
    }
    bad(t, SIZE, "1048577", "0 to 1048576");
    bad(t, SIZE, "2M", "0 to 1048576");
    bad(t, SIZE, "-1", "a size");
    bad(t, SIZE, "1.5K", "a size");
    bad(t, SIZE, "1KK", "a size");
    bad(t, SIZE, "K", "a size");
    bad(t, SIZE, "1 x", "a size");
    bad(t, SIZE, "9223372036854775807T", "a size"); /* would wrap round */
    bad(t, SIZE, "16777216T", "a size");            /* 2^64 */
    bad(t, SIZE, "auto", "a size");
}

static void times(void **state)
{
    struct target *t = *state;
    static const struct {
        const char *text;
        int64_t ns;
    } ok[] = {{"0", 0},         {"5", 5000},      {"7ns", 7}, {"50us", 50000},
              {"2ms", 2000000}, {"1s", 1000000000}, {"10s", 10000000000LL}};

    for (size_t i = 0; i < sizeof(ok) / sizeof(ok[0]); i++) {
        good(t, TIME, ok[i].text);
        assert_int_equal(t->time, ok[i].ns);
    }
    bad(t, TIME, "11s", "up to 10s");
    bad(t, TIME, "1min", "up to 10s");
    bad(t, TIME, "-1", "up to 10s");
    bad(t, TIME, "1h", "up to 10s");
    bad(t, TIME, "auto", "up to 10s");
    good(t, MAYBE, "1us");
    assert_int_equal(t->maybe, 1000);
    good(t, MAYBE, "AUTO");
    assert_int_equal(t->maybe, -1);
    bad(t, MAYBE, "automatic", "or auto");
    bad(t, MAYBE, "-1", "or auto");
    good(t, SOME, "all");
    assert_int_equal(t->i, -1);
    good(t, SOME, "3");
    bad(t, SOME, "-1", "from 0 to 100, or all");
}

static void enums(void **state)
{
    struct target *t = *state;

    good(t, ENUM, "one");
    assert_int_equal(t->e, 0);
    good(t, ENUM, "THREE");
    assert_int_equal(t->e, 2);
    bad(t, ENUM, "four", "one|two|three");
    bad(t, ENUM, "thre", "one|two|three");
    bad(t, ENUM, "threee", "one|two|three");
    bad(t, ENUM, "one|two", "one|two|three");
    bad(t, ENUM, "", "one|two|three");
    assert_string_equal(t->path, "auto");
    good(t, PATH, "OFF");
    assert_string_equal(t->path, "off");
    good(t, PATH, "/Off/x");
    assert_string_equal(t->path, "/Off/x");
    bad(t, PATH, "on", "one of auto|off, or a path");
    bad(t, PATH, "libx.so", "one of auto|off, or a path");
    bad(t, PATH, "", "one of auto|off, or a path");
}

static void sets(void **state)
{
    struct target *t = *state;

    good(t, SET, "green");
    assert_int_equal(t->set, 2);
    good(t, SET, "blue,RED");
    assert_int_equal(t->set, 5);
    good(t, SET, "red,red");
    assert_int_equal(t->set, 1);
    bad(t, SET, "red,", "red|green|blue");
    bad(t, SET, ",red", "red|green|blue");
    bad(t, SET, "red,pink", "red|green|blue");
    bad(t, SET, "red green", "red|green|blue");
    bad(t, SET, "", "red|green|blue");
}

static void texts(void **state)
{
    struct target *t = *state;

    good(t, TEXT, "");
    assert_string_equal(t->s, "");
    good(t, TEXT, "a=b, c");
    assert_string_equal(t->s, "a=b, c");
}

/* Whatever is printed is read back as the same value. */
static void round_trip(void **state)
{
    static const char *const values[][4] = {{"on", "off"}, {"-5", "0", "77"}, {"0", "1000", "16K", "1M"},
                                            {"0", "7ns", "50us", "1s"}, {"auto", "3ns", "0"}, {"all", "5"},
                                            {"one", "three"}, {"red", "red,blue", "red,green,blue"},
                                            {"", "some text"}, {"auto", "off", "a/b"}};
    struct target *t = *state, u = {.s = NULL};
    char out[128], again[128];

    for (int r = 0; rows[r].name; r++) {
        for (int i = 0; i < 4 && values[r][i]; i++) {
            good(t, r, values[r][i]);
            rk_conf_format(&rows[r], t, out, sizeof(out));
            good(&u, r, out);
            rk_conf_format(&rows[r], &u, again, sizeof(again));
            assert_string_equal(out, again);
        }
    }
    assert_int_equal(t->time, u.time);
    assert_int_equal(t->size, u.size);
    assert_int_equal(t->set, u.set);
    free(u.s);
    free(u.path);
    /* Too little room is cut, not overrun. */
    good(t, SET, "red,green,blue");
    memset(out, 'x', sizeof(out));
    rk_conf_format(&rows[SET], t, out, 5);
    assert_int_equal(out[5], 'x');
    assert_true(strlen(out) < 5);
}

/* --------------------------------------------------------------------- files */

static rank_status_t parse(struct target *t, const char *text, size_t len, struct unit_stderr *said)
{
    /* Exactly len bytes, so that a sanitizer sees a read behind them. */
    char *copy = malloc(len ? len : 1);
    rank_status_t st;

    memcpy(copy, text, len);
    unit_stderr_begin(said);
    st = rk_conf_parse_text(rows, t, "the.conf", copy, len);
    unit_stderr_end(said);
    free(copy);
    return st;
}

static void file_good(void **state)
{
    static const char text[] = "# a comment\n"
                               "\n"
                               "   \t\n"
                               "RANK_T_INT = 42\n"
                               "\tRANK_T_TEXT=  two words  \r\n"
                               "  # another\n"
                               "RANK_T_SET=green"; /* no newline at the end */
    struct target *t = *state;
    struct unit_stderr said;

    assert_int_equal(parse(t, text, sizeof(text) - 1, &said), RANK_OK);
    assert_string_equal(said.text, "");
    assert_int_equal(t->i, 42);
    assert_string_equal(t->s, "two words");
    assert_int_equal(t->set, 2);
    assert_int_equal(parse(t, "", 0, &said), RANK_OK);
    assert_int_equal(parse(t, "\n\n", 2, &said), RANK_OK);
    assert_int_equal(parse(t, "RANK_T_TEXT=", 12, &said), RANK_OK);
    assert_string_equal(t->s, "");
}

/* The line's number, and the lines behind a bad one still count. */
static void file_bad(void **state)
{
    static const char text[] = "RANK_T_INT = 1\nRANK_T_INT = many\nRANK_T_BOOL = on\n";
    struct target *t = *state;
    struct unit_stderr said;

    assert_int_equal(parse(t, text, sizeof(text) - 1, &said), RANK_ERR_CONFIG);
    assert_contains(said.text, "the.conf:2");
    assert_contains(said.text, "RANK_T_INT is 'many'");
    assert_int_equal(t->i, 1);
    assert_true(t->b);
    assert_int_equal(parse(t, "\njust words\n", 12, &said), RANK_ERR_CONFIG);
    assert_contains(said.text, "the.conf:2");
    assert_contains(said.text, "NAME = value");
    assert_int_equal(parse(t, "=5\n", 3, &said), RANK_OK); /* an unknown, empty name: warned about */
}

static void file_nul(void **state)
{
    static const char inside[] = "RANK_T_TEXT = a\0b\n", end[] = "RANK_T_TEXT = a\0\n",
                      start[] = "\0RANK_T_TEXT = a\n";
    struct target *t = *state;
    struct unit_stderr said;

    assert_int_equal(parse(t, inside, sizeof(inside) - 1, &said), RANK_ERR_CONFIG);
    assert_contains(said.text, "NUL");
    assert_int_equal(parse(t, end, sizeof(end) - 1, &said), RANK_ERR_CONFIG);
    assert_int_equal(parse(t, start, sizeof(start) - 1, &said), RANK_ERR_CONFIG);
    assert_string_equal(t->s, "nothing");
}

static void file_long(void **state)
{
    struct target *t = *state;
    struct unit_stderr said;
    char text[4000];
    int n = snprintf(text, sizeof(text), "RANK_T_TEXT=");

    memset(text + n, 'y', sizeof(text) - (size_t)n);
    assert_int_equal(parse(t, text, sizeof(text), &said), RANK_ERR_CONFIG);
    assert_contains(said.text, "the.conf:1");
    assert_contains(said.text, "too long");
    assert_string_equal(t->s, "nothing");
    memset(text, 'y', sizeof(text)); /* one name without end */
    text[3000] = '=';
    assert_int_equal(parse(t, text, sizeof(text), &said), RANK_ERR_CONFIG);
}

static void file_unknown(void **state)
{
    struct target *t = *state;
    struct unit_stderr said;

    assert_int_equal(parse(t, "RANK_T_IMT = 4\n", 15, &said), RANK_OK);
    assert_contains(said.text, "the.conf:1");
    assert_contains(said.text, "RANK_T_IMT");
    assert_contains(said.text, "did you mean RANK_T_INT?");
    assert_int_equal(t->i, 3);
    assert_int_equal(parse(t, "SOMETHING_ELSE_ALTOGETHER = 4\n", 30, &said), RANK_OK);
    assert_contains(said.text, "SOMETHING_ELSE_ALTOGETHER");
    assert_null(strstr(said.text, "did you mean"));
}

/* --------------------------------------------------------------------- names */

static void nearest(void **state)
{
    (void)state;
    assert_int_equal(rk_edit_distance("", ""), 0);
    assert_int_equal(rk_edit_distance("abc", ""), 3);
    assert_int_equal(rk_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(rk_edit_distance("Same", "sAME"), 0);
    assert_int_equal(rk_edit_distance("ab", "ba"), 2);
    assert_int_equal(rk_edit_distance("flaw", "lawn"), 2);
    assert_string_equal(rk_conf_nearest(rows, "RANK_T_SIZ")->name, "RANK_T_SIZE");
    assert_string_equal(rk_conf_nearest(rows, "RANK_T_TIMES")->name, "RANK_T_TIME");
    assert_string_equal(rk_conf_nearest(rk_conf_rows, "RANK_CHANELS")->name, "RANK_CHANNELS");
    assert_null(rk_conf_nearest(rows, "PATH"));
    assert_null(rk_conf_nearest(rows, ""));
    {
        char name[300];
        memset(name, 'R', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        assert_null(rk_conf_nearest(rows, name));
        assert_true(rk_edit_distance(name, "RANK_LOG") > 50);
    }
}

/* The library's own table: names, docs, defaults that parse and print. */
static void own_table(void **state)
{
    (void)state;
    for (const struct rk_conf_row *r = rk_conf_rows; r->name; r++) {
        struct rk_conf c;
        char err[256] = "", out[256], again[256];
        memset(&c, 0, sizeof(c));
        assert_int_equal(strncmp(r->name, "RANK_", 5), 0);
        assert_true(strlen(r->doc) > 10);
        assert_int_equal(r->doc[strlen(r->doc) - 1], '.');
        assert_non_null(r->unit);
        if (rk_conf_parse_value(r, r->dflt, &c, err, sizeof(err)) != RANK_OK)
            fail_msg("default of %s: %s", r->name, err);
        rk_conf_format(r, &c, out, sizeof(out)); /* what rankinfo shows can be written in a file */
        if (rk_conf_parse_value(r, out, &c, err, sizeof(err)) != RANK_OK)
            fail_msg("%s is printed as '%s': %s", r->name, out, err);
        rk_conf_format(r, &c, again, sizeof(again));
        assert_string_equal(out, again);
        for (const struct rk_conf_row *q = rk_conf_rows; q != r; q++) {
            assert_string_not_equal(q->name, r->name);
            assert_int_not_equal(q->offset, r->offset);
        }
        if (r->type == RK_CONF_STRING || r->type == RK_CONF_PICKS)
            free(*(char **)(void *)((char *)&c + r->offset));
    }
}

/* ------------------------------------------------------------------- loading */

static int index_of(const char *name)
{
    for (int i = 0; rk_conf_rows[i].name; i++) {
        if (strcmp(rk_conf_rows[i].name, name) == 0)
            return i;
    }
    return -1;
}

static char path[64];

static void write_file(const char *text)
{
    int fd;

    strcpy(path, "/tmp/rk-conf-test-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void clean_environment(void)
{
    for (int i = 0; rk_conf_rows[i].name; i++)
        unsetenv(rk_conf_rows[i].name);
    setenv("RANK_CONF", "/dev/null", 1);
    unsetenv("PMIX_RANK");
    unsetenv("XRUN_JOB");
}

static void load_origins(void **state)
{
    struct unit_stderr said;

    (void)state;
    clean_environment();
    write_file("RANK_EAGER_MAX = 4K\nRANK_COLL = bcast:chain\nRANK_CMA = off\n");
    setenv("RANK_CONF", path, 1);
    setenv("RANK_CMA", "on", 1);
    unit_stderr_begin(&said);
    assert_int_equal(rk_conf_load(), RANK_OK);
    unit_stderr_end(&said);
    assert_string_equal(said.text, "");
    assert_int_equal(rk_conf.eager_max, 4096);
    assert_string_equal(rk_conf.coll, "bcast:chain");
    assert_int_equal(rk_conf.cma, RK_CONF_CMA_ON); /* the environment wins */
    assert_string_equal(rk_conf_origin(index_of("RANK_EAGER_MAX")), path);
    assert_string_equal(rk_conf_origin(index_of("RANK_CMA")), "environment");
    assert_string_equal(rk_conf_origin(index_of("RANK_SPIN")), "default");
    unlink(path);

    /* Loading again resets what is no longer set. */
    clean_environment();
    assert_int_equal(rk_conf_load(), RANK_OK);
    assert_int_equal(rk_conf.eager_max, 16384);
    assert_string_equal(rk_conf.coll, "");
    assert_string_equal(rk_conf_origin(index_of("RANK_EAGER_MAX")), "default");
    rk_conf_unload();
    rk_conf_unload(); /* twice is fine */
}

static void load_bad(void **state)
{
    struct unit_stderr said;

    (void)state;
    clean_environment();
    setenv("RANK_CHANNELS", "self,shm,ugx", 1);
    setenv("RANK_CMA", "perhaps", 1);
    unit_stderr_begin(&said);
    assert_int_equal(rk_conf_load(), RANK_ERR_CONFIG);
    unit_stderr_end(&said);
    /* both are named, not just the first */
    assert_contains(said.text, "RANK_CHANNELS is 'self,shm,ugx'");
    assert_contains(said.text, "self|shm|ucx");
    assert_contains(said.text, "RANK_CMA is 'perhaps'");
    clean_environment();
    setenv("RANK_CONF", "/nonexistent/rank.conf", 1);
    unit_stderr_begin(&said);
    assert_int_equal(rk_conf_load(), RANK_ERR_CONFIG);
    unit_stderr_end(&said);
    assert_contains(said.text, "/nonexistent/rank.conf");
    assert_contains(said.text, "No such file");
    rk_conf_unload();
}

static void load_unknown(void **state)
{
    struct unit_stderr said;

    (void)state;
    clean_environment();
    setenv("RANK_CHANELS", "ucx", 1);
    unit_stderr_begin(&said);
    assert_int_equal(rk_conf_load(), RANK_OK);
    unit_stderr_end(&said);
    assert_contains(said.text, "RANK_CHANELS");
    assert_contains(said.text, "did you mean RANK_CHANNELS?");
    /* One report a job: rank 1 prints nothing, and so do all under xrun, which has printed it. */
    setenv("PMIX_RANK", "1", 1);
    unit_stderr_begin(&said);
    assert_int_equal(rk_conf_load(), RANK_OK);
    assert_string_equal(unit_stderr_end(&said), "");
    setenv("PMIX_RANK", "0", 1);
    unit_stderr_begin(&said);
    assert_int_equal(rk_conf_load(), RANK_OK);
    assert_contains(unit_stderr_end(&said), "RANK_CHANELS");
    setenv("XRUN_JOB", "x", 1);
    unit_stderr_begin(&said);
    assert_int_equal(rk_conf_load(), RANK_OK);
    assert_string_equal(unit_stderr_end(&said), "");
    unsetenv("RANK_CHANELS");
    clean_environment();
    rk_conf_unload();
}

/* A file larger than we read, a directory: reported, not half taken. */
static void load_odd_files(void **state)
{
    struct unit_stderr said;

    (void)state;
    clean_environment();
    setenv("RANK_CONF", "/", 1);
    unit_stderr_begin(&said);
    assert_int_equal(rk_conf_load(), RANK_ERR_CONFIG);
    unit_stderr_end(&said);
    assert_contains(said.text, "/: Is a directory");
    write_file("# nothing much\n");
    {
        FILE *f = fopen(path, "a");
        assert_non_null(f);
        for (int i = 0; i < 70000; i++)
            fputs("# a line of a comment\n", f);
        fputs("RANK_EAGER_MAX = 2K\n", f);
        fclose(f);
    }
    setenv("RANK_CONF", path, 1);
    unit_stderr_begin(&said);
    rank_status_t st = rk_conf_load();
    unit_stderr_end(&said);
    unlink(path);
    /* Either all of it counts or it is an error. */
    if (st == RANK_OK)
        assert_int_equal(rk_conf.eager_max, 2048);
    else
        assert_contains(said.text, path);
    clean_environment();
    rk_conf_unload();
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(defaults),
        WITH(bools),
        WITH(ints),
        WITH(sizes),
        WITH(times),
        WITH(enums),
        WITH(sets),
        WITH(texts),
        WITH(round_trip),
        WITH(file_good),
        WITH(file_bad),
        WITH(file_nul),
        WITH(file_long),
        WITH(file_unknown),
        cmocka_unit_test(nearest),
        cmocka_unit_test(own_table),
        cmocka_unit_test(load_origins),
        cmocka_unit_test(load_bad),
        cmocka_unit_test(load_unknown),
        cmocka_unit_test(load_odd_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
