/* SPDX-License-Identifier: BSD-3-Clause */
/* harness_setting.h: describe where a run measures. */
/* Date, hosts, placement of ranks, transport and device. */
#ifndef RK_BENCH_HARNESS_SETTING_H
#define RK_BENCH_HARNESS_SETTING_H

#include <stddef.h>

/* Text for people and for records. Only rank 0 has hosts, placement, gpus, channel and device. */
struct bench_setting {
    char date[32];   /* UTC, as 2026-01-31T12:00:00Z */
    char *hosts;     /* "a: ranks 0-3; b: ranks 4-7" */
    int nhosts;
    char *placement; /* "rank 0: cpus 0; ranks 1-3: cpus 4-7" */
    char channel[32]; /* of rank 0 to the others: "shm", "ucx" or "shm+ucx"; "" if the library does not report it */
    char *nics;      /* "rank 0: mlx5_0 PIX from cuda:0"; "": no GPU is used, or there is no NIC */
    char *gpus;      /* "rank 0: cuda:0 NVIDIA H100 0000:18:00.0 NODE"; "": none is used */
    char *device;    /* "shm: eager up to 16K, cma above 16K, cma2 from 64K; cuda: one copy; ucx: tcp/eth0"; "" if unknown */
};

/* Collective. mapped: messages lie in memory from rank_alloc; far: in device memory. Returns 0, or -1: out of memory. */
int bench_setting_collect(struct bench_setting *s, int mapped, int far);
void bench_setting_free(struct bench_setting *s);

/* What a rank reports of itself. */
struct bench_place {
    char host[64], cpus[64], gpus[256], nics[256];
};
/* The texts of n ranks' places, made with malloc; NULL: out of memory. */
char *bench_setting_hosts(const struct bench_place *place, int n);
char *bench_setting_placement(const struct bench_place *place, int n);
char *bench_setting_gpus(const struct bench_place *place, int n);
char *bench_setting_nics(const struct bench_place *place, int n);
/* Describe the protocols of shm from the output of rankinfo --paths --conf; caller frees. NULL: there are none in it. */
char *bench_setting_shm(const char *rankinfo, int mapped);
/* The way of device memory on a host, from the output of rankinfo --paths: "" if that has none. */
void bench_setting_far(const char *rankinfo, char *out, size_t room);

#endif
