/* SPDX-License-Identifier: BSD-3-Clause */
/* text_file.c: see text_file.h. */
#include "launcher/util/text_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_LINE ((ssize_t)64 << 20)

bool xr_text_file_open(const char *path, struct xr_text_file *out, char *why, size_t whylen)
{
    struct stat st;
    int error = 0;

    memset(out, 0, sizeof(*out));
    out->file = fopen(path, "re");
    if (!out->file || fstat(fileno(out->file), &st))
        error = errno;
    else if (S_ISDIR(st.st_mode))
        error = EISDIR;
    if (error)
        snprintf(why, whylen, "%s", strerror(error));
    return !error;
}

char *xr_text_file_line(struct xr_text_file *f)
{
    ssize_t n = getline(&f->line, &f->cap, f->file);

    if (n <= 0 || n > MAX_LINE)
        return NULL;
    f->number++;
    if (f->line[n - 1] == '\n')
        f->line[--n] = '\0';
    f->nul = strlen(f->line) < (size_t)n;
    if (!f->nul && n && f->line[n - 1] == '\r')
        f->line[n - 1] = '\0';
    return f->line;
}

bool xr_text_file_close(struct xr_text_file *f)
{
    bool ok = !f->file || !ferror(f->file);

    if (f->file)
        fclose(f->file);
    free(f->line);
    memset(f, 0, sizeof(*f));
    return ok;
}
