/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_channel_test.c: run the ucx module on several transports and sizes. */
#include "tests/ucx/ucx_fixture.h"

static const struct {
    const char *name;
    void (*body)(struct rig *);
    int n, victim;
    bool rma; /* UCX does puts and gets whatever carries them: RANK_UCX_RMA=on */
} tests[] = {
    {"frames and messages in order", storm_body, 2, -1, false},
    {"frames and messages in order, 4 ranks", storm_body, 4, -1, false},
    {"one-sided", onesided_body, 2, -1, true},
    {"one-sided, 3 ranks", onesided_body, 3, -1, true},
    {"frames that name what is not theirs", hostile_body, 3, -1, false},
    {"sleep and wake", sleep_body, 2, -1, false},
    {"hostile one-sided calls", hostile_rma_body, 3, -1, false},
    {"hostile messages", hostile_p2p_body, 3, -1, false},
    {"packets of noise", noise_body, 3, -1, false},
    {"too many messages", hostile_much_body, 4, -1, false},
    {"death", death_body, 3, 1, false},
    {"death in a one-sided call", death_onesided_body, 3, 1, true},
    {"death during puts", death_flush_body, 3, 1, true},
    {"death in a receive", death_receive_body, 2, 1, false},
    {"a rank leaves while another one connects", late_body, 12, -1, false},
    {"a goodbye over another connection than the one that broke", goodbye_body, 2, -1, false},
    {"an unauthenticated put and get", unauthenticated_body, 2, -1, false},
    {"an unauthenticated put and get, where UCX may", unauthenticated_rma_body, 2, -1, true},
};

static const struct rig_way ways[] = {
    {"as between nodes", NULL, false},
    {"UCX_TLS=tcp", "tcp", false},
    {"forced", NULL, true},
    {"UCX_TLS=shm,self", "shm,self", true},
};

int main(int argc, char **argv)
{
    int n = 0, failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t w = 0; w < RK_ARRAY_LEN(ways); w++) {
        for (size_t t = 0; t < RK_ARRAY_LEN(tests); t++) {
            bool good;
            /* Of a death over UCX's shared memory only the node segment reports. */
            if (rig_by_shm(&ways[w]) && tests[t].victim >= 0 && tests[t].body != death_body)
                continue;
            if (rig_by_shm(&ways[w]) && (tests[t].body == unauthenticated_body || tests[t].body == unauthenticated_rma_body || tests[t].body == hostile_much_body))
                continue;
            /* The same over the network, and not by memory. */
            if ((tests[t].body == late_body || tests[t].body == goodbye_body) && !(ways[w].tls && strcmp(ways[w].tls, "tcp") == 0))
                continue;
            if (argc > 1 && !strstr(tests[t].name, argv[1]))
                continue;
            if (argc > 2 && !strstr(ways[w].name, argv[2]))
                continue;
            good = rig_run(&ways[w], tests[t].n, tests[t].victim, tests[t].rma, tests[t].body);
            printf("%sok %d - %s: %s\n", good ? "" : "not ", ++n, ways[w].name, tests[t].name);
            failed += !good;
        }
    }
    printf("1..%d\n", n);
    return failed != 0;
}
