/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * draw_topology.c: draw a machine and the chosen links of its ranks as SVG.
 *
 * A column is a NUMA node: its cores with the colour of their rank, its GPUs and its NICs. A line leads from the first
 * core of a rank to its GPUs, and from GPU or cores to its NICs.
 */
#include "lib/topo/draw_topology.h"

#include <stdlib.h>
#include <string.h>

/* Sizes in pixels. */
enum { COLUMN = 250, MARGIN = 16, HEAD = 60, CELL = 26, CELLS = 8, BOX = 30, STEP = 44, GAP = 90 };

struct drawing {
    FILE *to;
    const struct rk_machine *m;
    const struct rk_pairing *p;
    uint32_t columns;
    uint32_t *rank_of; /* by core: the first rank there, or RK_TOPO_NONE */
    uint32_t *row;     /* by GPU, then by NIC: place among those of its column */
    uint32_t *placed;  /* by column */
    uint32_t gpus_top, nics_top, height;
};

struct point {
    uint32_t x, y;
};

static uint32_t column_of_core(const struct drawing *d, uint32_t core)
{
    return d->m->core[core].numa == RK_TOPO_NONE ? 0 : d->m->core[core].numa;
}

static uint32_t column_of(const struct drawing *d, const struct rk_device *at)
{
    return at->near.n ? column_of_core(d, at->near.first) : 0;
}

/* Return how many cores of its column precede a core. */
static uint32_t place_in_column(const struct drawing *d, uint32_t core)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < core; i++)
        n += column_of_core(d, i) == column_of_core(d, core);
    return n;
}

static struct point core_corner(const struct drawing *d, uint32_t core)
{
    uint32_t at = place_in_column(d, core);

    return (struct point){MARGIN + column_of_core(d, core) * COLUMN + 12 + at % CELLS * CELL, HEAD + 30 + at / CELLS * CELL};
}

static struct point box_corner(const struct drawing *d, const struct rk_device *at, uint32_t row, uint32_t top)
{
    return (struct point){MARGIN + column_of(d, at) * COLUMN + 12, top + row * STEP};
}

static struct point gpu_corner(const struct drawing *d, uint32_t i)
{
    return box_corner(d, &d->m->gpu[i], d->row[i], d->gpus_top);
}

static struct point nic_corner(const struct drawing *d, uint32_t i)
{
    return box_corner(d, &d->m->nic[i], d->row[d->m->ngpus + i], d->nics_top);
}

/* Neighbouring ranks get distant hues. */
static uint32_t hue(uint32_t rank)
{
    return rank * 137 % 360;
}

static void print_xml_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '&' || *text == '<' || *text == '>' || *text == '"')
            fprintf(to, "&#%d;", *text);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, to);
    }
}

/* ----------------------------------------------------------------- layout */

/* Give each device of a list the next place of its column; returns the most in a column. */
static uint32_t place_devices(struct drawing *d, const struct rk_device *list, uint32_t n, uint32_t *row)
{
    uint32_t most = 0;

    memset(d->placed, 0, d->columns * sizeof(*d->placed));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t column = column_of(d, &list[i]);
        row[i] = d->placed[column]++;
        most = d->placed[column] > most ? d->placed[column] : most;
    }
    return most;
}

static bool make_layout(struct drawing *d)
{
    const struct rk_machine *m = d->m;
    uint32_t most = 0;

    d->columns = m->nnumas ? m->nnumas : 1;
    d->rank_of = malloc(((size_t)m->ncores + 1) * sizeof(*d->rank_of));
    d->row = calloc((size_t)m->ngpus + m->nnics + 1, sizeof(*d->row));
    d->placed = calloc(d->columns, sizeof(*d->placed));
    if (!d->rank_of || !d->row || !d->placed)
        return false;
    memset(d->rank_of, 0xff, m->ncores * sizeof(*d->rank_of));
    for (uint32_t r = d->p->ranks; r-- > 0;) {
        for (uint32_t i = 0; i < d->p->rank[r].ncores; i++)
            d->rank_of[d->p->rank[r].core[i]] = r;
    }
    for (uint32_t i = 0; i < m->ncores; i++) {
        uint32_t at = place_in_column(d, i);
        most = at >= most ? at + 1 : most;
    }
    d->gpus_top = HEAD + 30 + (most + CELLS - 1) / CELLS * CELL + GAP / 2;
    d->nics_top = d->gpus_top + place_devices(d, m->gpu, m->ngpus, d->row) * STEP + (m->ngpus ? GAP : 0);
    d->height = d->nics_top + place_devices(d, m->nic, m->nnics, d->row + m->ngpus) * STEP + MARGIN;
    return true;
}

/* ---------------------------------------------------------------- drawing */

static void draw_columns(const struct drawing *d)
{
    for (uint32_t i = 0; i < d->columns; i++) {
        fprintf(d->to, "<rect class=\"node\" x=\"%u\" y=\"%d\" width=\"%d\" height=\"%u\"/>", MARGIN + i * COLUMN, HEAD,
                COLUMN - 12, d->height - HEAD - 6);
        fprintf(d->to, "<text x=\"%u\" y=\"%d\">NUMA node %u", MARGIN + i * COLUMN + 12, HEAD + 20,
                i < d->m->nnumas ? d->m->numa[i].os : 0);
        if (i < d->m->nnumas && d->m->core[d->m->numa[i].near.first].package != RK_TOPO_NONE)
            fprintf(d->to, ", package %u", d->m->core[d->m->numa[i].near.first].package);
        fprintf(d->to, "</text>\n");
    }
}

static void draw_cores(const struct drawing *d)
{
    for (uint32_t i = 0; i < d->m->ncores; i++) {
        struct point at = core_corner(d, i);
        uint32_t rank = d->rank_of[i];
        fprintf(d->to, "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" ", at.x, at.y, CELL - 2, CELL - 2);
        if (rank == RK_TOPO_NONE)
            fprintf(d->to, "fill=\"#%s\"/>\n", d->m->core[i].allowed ? "e4e4e4" : "ffffff");
        else
            fprintf(d->to, "fill=\"hsl(%u,60%%,75%%)\"/><text class=\"cell\" x=\"%u\" y=\"%u\">%u</text>\n", hue(rank),
                    at.x + CELL / 2 - 1, at.y + CELL / 2 + 3, rank);
    }
}

static void draw_device(const struct drawing *d, const char *kind, uint32_t i, const struct rk_device *at, struct point p)
{
    fprintf(d->to, "<rect class=\"%s\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"4\"/><text x=\"%u\" y=\"%u\">%s %u ",
            kind, p.x, p.y, COLUMN - 36, BOX, p.x + 8, p.y + 19, kind, i);
    print_xml_text(d->to, *at->name ? at->name : at->pci);
    if (at->link_gbs > 0)
        fprintf(d->to, ", %.1f GB/s", at->link_gbs);
    fprintf(d->to, "<title>%s ", at->pci);
    print_xml_text(d->to, at->model);
    fprintf(d->to, "</title></text>\n");
}

static void draw_line(const struct drawing *d, uint32_t rank, struct point a, struct point b, const struct rk_pair_link *link)
{
    fprintf(d->to, "<line x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\" stroke=\"hsl(%u,70%%,42%%)\"%s><title>rank %u: %s, %s</title></line>\n",
            a.x, a.y, b.x, b.y, hue(rank), link->path == RK_PATH_SYS ? " stroke-dasharray=\"5 3\"" : "", rank,
            rk_path_name(link->path), rk_pair_reason_text(link->reason));
}

/* Spread the ends of lines over a box, so that ranks that share a device stay apart. */
static struct point on_box(struct point corner, uint32_t rank, uint32_t below)
{
    return (struct point){corner.x + 16 + rank * 23 % (COLUMN - 68), corner.y + below};
}

static void draw_links(const struct drawing *d)
{
    for (uint32_t r = 0; r < d->p->ranks; r++) {
        const struct rk_pair_rank *rank = &d->p->rank[r];
        struct point from = core_corner(d, rank->ncores ? rank->core[0] : 0);
        from = (struct point){from.x + CELL / 2, from.y + CELL - 2};
        for (uint32_t i = 0; i < rank->ngpus; i++)
            draw_line(d, r, from, on_box(gpu_corner(d, rank->gpu[i].device), r, 0), &rank->gpu[i]);
        for (uint32_t i = 0; i < rank->nnics; i++) {
            struct point start = from;
            if (rank->ngpus)
                start = on_box(gpu_corner(d, rank->gpu[i % rank->ngpus].device), r, BOX);
            draw_line(d, r, start, on_box(nic_corner(d, rank->nic[i].device), r, 0), &rank->nic[i]);
        }
    }
}

bool rk_topo_draw(FILE *to, const struct rk_machine *m, const struct rk_pairing *p, const char *title)
{
    struct drawing d = {.to = to, .m = m, .p = p};
    bool ok = make_layout(&d);

    if (ok) {
        fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" font-family=\"sans-serif\" "
                    "font-size=\"12\">\n<style>.node{fill:#f8f8f8;stroke:#888}.GPU{fill:#d7ecd0;stroke:#575}"
                    ".NIC{fill:#d6e4f5;stroke:#557}.cell{font-size:9px;text-anchor:middle}line{stroke-width:1.5}</style>\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"24\" font-size=\"15\">",
                2 * MARGIN + d.columns * COLUMN, d.height, MARGIN);
        print_xml_text(to, title);
        fprintf(to, ", %u rank%s</text>\n<text x=\"%d\" y=\"44\">Cores, GPUs and NICs; a line is a rank's choice, dashed "
                    "between NUMA nodes (SYS).</text>\n", p->ranks, p->ranks == 1 ? "" : "s", MARGIN);
        draw_columns(&d);
        draw_links(&d); /* below the boxes, so that their text stays legible */
        draw_cores(&d);
        for (uint32_t i = 0; i < m->ngpus; i++)
            draw_device(&d, "GPU", i, &m->gpu[i], gpu_corner(&d, i));
        for (uint32_t i = 0; i < m->nnics; i++)
            draw_device(&d, "NIC", i, &m->nic[i], nic_corner(&d, i));
        fprintf(to, "</svg>\n");
    }
    free(d.rank_of);
    free(d.row);
    free(d.placed);
    return ok;
}
