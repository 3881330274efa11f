/* SPDX-License-Identifier: BSD-3-Clause */
/* conf_table.c: list every configuration variable of the library. */
#include "lib/base/conf.h"

#define AT(field) offsetof(struct rk_conf, field)

struct rk_conf rk_conf;

const struct rk_conf_row rk_conf_rows[] = {
    {"RANK_LOG", RK_CONF_ENUM, "warn", "", "How much the library says on stderr.",
     "error|warn|info|debug", 0, 0, AT(log)},
    {"RANK_ERRORS", RK_CONF_ENUM, "report", "",
     "What a wrong argument of a call does beside the status that it returns. report: one line on stderr for each "
     "function and kind of error, at most 8 a process; quiet: nothing; abort: print and end the job.",
     "report|quiet|abort", 0, 0, AT(errors)},
    {"RANK_CRASH_STACK", RK_CONF_BOOL, "on", "",
     "A rank that ends by SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT prints its stack by gdb or eu-stack, if one is "
     "installed and the program has no handler of its own.",
     NULL, 0, 0, AT(crash_stack)},
    {"RANK_CHANNELS", RK_CONF_SET, "self,shm,ucx", "",
     "Channels that may carry messages. Without shm, ranks of one node use ucx, by UCX's shared "
     "memory unless UCX_TLS says otherwise (tcp,self); in that, a rank that is killed while it "
     "writes can block what others send to the same receiver.",
     "self|shm|ucx", 0, 0, AT(channels)},
    {"RANK_EAGER_MAX", RK_CONF_SIZE, "16K", "bytes",
     "Longest message that is sent at once, copied on the way; a channel may allow less. Longer "
     "ones are fetched by the receiver.",
     NULL, 0, 1 << 20, AT(eager_max)},
    {"RANK_EAGER_WINDOW", RK_CONF_SIZE, "256K", "bytes",
     "Bytes that a peer may have sent here before a receive was posted for them, over what "
     "RANK_UNEXPECTED_MAX allows; past that it sends envelopes only.",
     NULL, 0, 1LL << 30, AT(eager_window)},
    {"RANK_UNEXPECTED_MAX", RK_CONF_SIZE, "8M", "bytes",
     "Bytes of messages without a receive, of all peers together, that do not count against their "
     "windows: up to so many a burst of small messages goes on at full speed.",
     NULL, 0, 1LL << 40, AT(unexpected_max)},
    {"RANK_AHEAD_MAX", RK_CONF_SIZE, "256M", "bytes",
     "Memory for large messages that a rank which waits fetches before it has asked for them: ranks that all send "
     "before they receive do not wait for each other for ever. 0: none is fetched.",
     NULL, 0, 1LL << 40, AT(ahead_max)},
    {"RANK_SPIN", RK_CONF_TIME, "auto", "time",
     "How long a waiting rank polls before it sleeps. auto: 1 ms, or 200 us where ranks are "
     "more than the cores that they may use.",
     "auto", 0, 3600LL * 1000000000LL, AT(spin)},
    {"RANK_PROGRESS_THREAD", RK_CONF_BOOL, "off", "",
     "A thread of the library's own makes progress while the program computes. It sleeps when nothing comes; every "
     "call is locked then, as with RANK_THREAD_MULTIPLE.",
     NULL, 0, 0, AT(progress_thread)},
    {"RANK_CMA", RK_CONF_ENUM, "auto", "",
     "Copy large messages straight between processes of a node (process_vm_readv). auto: where "
     "the kernel lets it; on: complain if not.",
     "auto|on|off", 0, 0, AT(cma)},
    {"RANK_XPMEM", RK_CONF_STRING, "auto", "",
     "Attach the memory of processes of a node for large messages and for puts and gets to registered memory, where the "
     "kernel has the module XPMEM (/dev/xpmem and libxpmem.so.0). off: not; a path: of another library with its calls.",
     "auto|off", 0, 0, AT(xpmem)},
    {"RANK_LARGE", RK_CONF_ENUM, "auto", "",
     "How large messages go between processes of a node. From rank_alloc memory: mapped: the receiver copies; mboth: "
     "the sender a share. From other memory: cma: the receiver "
     "copies; both: the sender copies a share; ring: two copies through shared memory; streamed: the "
     "same, the first copy past the caches; xpmem: the receiver copies from memory that it has attached; xboth: and "
     "the sender a share (both like cma and both where there is no XPMEM); auto, and what is said of the other memory only: as rankinfo --paths says.",
     "auto|cma|both|ring|streamed|xpmem|xboth|mapped|mboth", 0, 0, AT(large)},
    {"RANK_PATHS", RK_CONF_STRING, "", "path",
     "File with what rankinfo --calibrate has measured of this machine. Empty: one in "
     "$XDG_CACHE_HOME/librank or ~/.cache/librank; none: what is built in.",
     NULL, 0, 0, AT(paths)},
    {"RANK_SHM_BOX", RK_CONF_SIZE, "0", "bytes",
     "Shared memory for messages from one rank of the node to another. 0: by the number of ranks "
     "on the node, 256K for 4 down to 16K for more than 64, and deeper where one of up to 128 ranks is found "
     "too shallow.",
     NULL, 0, 64 << 20, AT(shm_box)},
    /* Names of collectives/table.c, a room above this one; a unit test compares them. */
    {"RANK_COLL", RK_CONF_PICKS, "", "",
     "Choose the algorithm of collectives: allreduce:ring,bcast:binomial. rankinfo --coll says "
     "when each is chosen by itself.",
     "barrier:shm|dissemination,"
     "bcast:shm|binomial|scatter_ring|chain,"
     "reduce:shm|binomial|rabenseifner,"
     "allreduce:shm|recursive_doubling|rabenseifner|ring,"
     "gather:shm|binomial|linear,"
     "allgather:shm|bruck|recursive_doubling|ring,"
     "allgatherv:linear|ring,"
     "scatter:shm|binomial|linear,"
     "reduce_scatter:shm|recursive_halving|pairwise|ring,"
     "alltoall:shm|bruck|pairwise",
     0, 0, AT(coll)},
    {"RANK_COLL_SHM", RK_CONF_BOOL, "on", "",
     "Run small collectives of one node through shared memory.", NULL, 0, 0, AT(coll_shm)},
    {"RANK_SPAWN_TIMEOUT", RK_CONF_TIME, "120s", "time",
     "How long rank_spawn waits for the launcher's word that the new job has been started; then it "
     "fails. 0: for ever.",
     NULL, 0, 24 * 3600LL * 1000000000LL, AT(spawn_timeout)},
    {"RANK_HEARTBEAT", RK_CONF_TIME, "1s", "time",
     "Under launchers other than xrun: how long a rank waits before it watches ranks of other hosts "
     "itself, and how often the kernel then asks for theirs; after five times that they are dead. "
     "Jobs of more than 2048 ranks are not watched. 0: never.",
     NULL, 0, 60 * 1000000000LL, AT(heartbeat)},
    {"RANK_UNANSWERED", RK_CONF_TIME, "7s", "time",
     "A connection of UCX's over tcp whose data the peer's kernel has not acknowledged for so long is given up, "
     "and the peer is dead: a cable is pulled, or the host is gone. A peer that computes is not meant, for its "
     "kernel answers. It takes a second or two longer, and 3 s at the least. 0: never.",
     NULL, 0, 3600LL * 1000000000LL, AT(unanswered)},
    {"RANK_UCX_RMA", RK_CONF_ENUM, "auto", "",
     "Who carries out puts and gets between hosts: UCX, or frames that the memory's owner checks. auto: UCX where a "
     "network device does it by itself (InfiniBand, RoCE) or none leads out; else frames, for over tcp UCX reads "
     "and writes at any address that whoever reaches its port names. With such a device beside tcp it does so, too: "
     "UCX_TLS=^tcp, or off.",
     "auto|on|off", 0, 0, AT(ucx_rma)},
    {"RANK_MODULES", RK_CONF_STRING, "", "path",
     "Directory of the library's modules; empty: beside the library.", NULL, 0, 0, AT(modules)},
    {NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0},
};
