/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_conf.c: parse configuration text and values by the library's own table. */
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void release(struct rk_conf *c)
{
    for (const struct rk_conf_row *r = rk_conf_rows; r->name; r++) {
        if (r->type == RK_CONF_STRING || r->type == RK_CONF_PICKS)
            free(*(char **)(void *)((char *)c + r->offset));
    }
}

/* The value after the first line's '=' for the row that the first byte chooses: whatever is taken
 * must be printed in a form that is taken again and means the same. */
static void one_value(struct rk_conf *c, const uint8_t *data, size_t len)
{
    char text[256], err[128], out[512], again[512];
    int rows = 0, i;

    while (rk_conf_rows[rows].name)
        rows++;
    if (len < 1 || len > sizeof(text))
        return;
    i = data[0] % rows;
    memcpy(text, data + 1, len - 1);
    text[len - 1] = '\0';
    if (rk_conf_parse_value(&rk_conf_rows[i], text, c, err, sizeof(err)) != RANK_OK)
        return;
    rk_conf_format(&rk_conf_rows[i], c, out, sizeof(out));
    if (rk_conf_parse_value(&rk_conf_rows[i], out, c, err, sizeof(err)) != RANK_OK)
        abort();
    rk_conf_format(&rk_conf_rows[i], c, again, sizeof(again));
    if (strcmp(out, again) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct rk_conf c;
    char out[8]; /* short on purpose */

    rk_log_threshold = -1;
    memset(&c, 0, sizeof(c));
    if (rk_conf_set_defaults(rk_conf_rows, &c) != RANK_OK)
        abort();
    rk_conf_parse_text(rk_conf_rows, &c, "fuzz", (const char *)data, len);
    one_value(&c, data, len);
    for (const struct rk_conf_row *r = rk_conf_rows; r->name; r++)
        rk_conf_format(r, &c, out, sizeof(out));
    release(&c);
    return 0;
}
