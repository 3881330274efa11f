/* SPDX-License-Identifier: BSD-3-Clause */
/* conf_table.c: list every configuration variable of the library. */
#include "lib/base/conf.h"

#define AT(field) offsetof(struct rk_conf, field)

struct rk_conf rk_conf;

const struct rk_conf_row rk_conf_rows[] = {
    {"RANK_LOG", RK_CONF_ENUM, "warn", "", "Amount of messages on stderr.",
     "error|warn|info|debug", 0, 0, AT(log)},
    {"RANK_ERRORS", RK_CONF_ENUM, "auto", "",
     "Reaction to an error that a call returns. report: one line on stderr, one for each kind of error of invalid "
     "arguments and truncated receives. quiet: nothing. abort: print and end the job, except at time-outs, "
     "cancellations, failed peers and closed connections. auto: quiet if a binding raises errors (Python, Go), else "
     "report.",
     "auto|report|quiet|abort", 0, 0, AT(errors)},
    {"RANK_CRASH_STACK", RK_CONF_BOOL, "on", "",
     "A rank that ends by SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT prints its stack by gdb or eu-stack, if one is "
     "installed and the program has no handler of its own.",
     NULL, 0, 0, AT(crash_stack)},
    {"RANK_CHANNELS", RK_CONF_SET, "self,shm,ucx,tcp", "",
     "Channels that may carry messages. Between hosts ucx does it where there are RDMA devices, and where "
     "UCX_TLS, UCX_NET_DEVICES, UCX_MAX_EAGER_RAILS or UCX_TCP_PORT_RANGE is set, or RANK_CUDA_UCX is on; tcp does "
     "everywhere else. Without shm, ranks of one node use ucx or tcp.",
     "self|shm|ucx|tcp", 0, 0, AT(channels)},
    {"RANK_EAGER_MAX", RK_CONF_SIZE, "16K", "bytes",
     "Maximum size of an eager message, which is sent at once and copied; a channel may allow less. "
     "Longer ones are fetched by the receiver (rendezvous).",
     NULL, 0, 1 << 20, AT(eager_max)},
    {"RANK_EAGER_WINDOW", RK_CONF_SIZE, "256K", "bytes",
     "Eager bytes of a peer without a posted receive, beyond RANK_UNEXPECTED_MAX. Above that the peer "
     "sends envelopes only.",
     NULL, 0, 1LL << 30, AT(eager_window)},
    {"RANK_UNEXPECTED_MAX", RK_CONF_SIZE, "8M", "bytes",
     "Bytes of unexpected messages, of all peers together, that do not count against their windows: "
     "up to that a burst of small messages runs at full speed.",
     NULL, 0, 1LL << 40, AT(unexpected_max)},
    {"RANK_RNDV_UNEXPECTED_MAX", RK_CONF_SIZE, "256M", "bytes",
     "Memory for large unexpected messages, which a blocked rank fetches early, so that ranks that all send before "
     "they receive do not deadlock. 0: none.",
     NULL, 0, 1LL << 40, AT(rndv_unexpected_max)},
    {"RANK_CONN_MEMORY", RK_CONF_SIZE, "256M", "bytes",
     "Memory that peers of all connections of a context may make it keep: messages without a receive, and replies that "
     "wait for the peer. Above that, peers that keep more than their share are disconnected.",
     NULL, 1 << 16, 1LL << 40, AT(conn_memory)},
    {"RANK_SPIN", RK_CONF_TIME, "auto", "time",
     "Time that a waiting rank polls before it sleeps. auto: 1 ms, or 200 us with fewer cores than ranks.",
     "auto", 0, 3600LL * 1000000000LL, AT(spin)},
    {"RANK_PROGRESS_THREAD", RK_CONF_BOOL, "off", "",
     "Make progress in a thread of the library while the program computes. It sleeps when nothing comes. Every call "
     "takes a lock then, as with RANK_THREAD_MULTIPLE.",
     NULL, 0, 0, AT(progress_thread)},
    {"RANK_CMA", RK_CONF_ENUM, "auto", "",
     "Copy large messages straight between processes of a node (process_vm_readv). auto: where "
     "the kernel permits it; on: warn if it does not.",
     "auto|on|off", 0, 0, AT(cma)},
    {"RANK_LARGE", RK_CONF_ENUM, "auto", "",
     "Protocol of large messages between processes of a node. From rank_alloc memory: mapped: the receiver copies; "
     "mapped2: the sender copies a share. From other memory: cma: the receiver copies by CMA; cma2: the sender copies "
     "a share; ring: two copies through shared memory; ring_nt: the same, the first copy with nontemporal stores. "
     "auto, and for the kind of memory not named: as rankinfo --paths shows.",
     "auto|mapped|cma|cma2|ring|ring_nt|mapped2", 0, 0, AT(large)},
    {"RANK_PATHS", RK_CONF_STRING, "", "path",
     "File with the rates that rankinfo --calibrate has measured. Empty: one in "
     "$XDG_CACHE_HOME/librank or ~/.cache/librank; none: the built-in rates.",
     NULL, 0, 0, AT(paths)},
    {"RANK_SHM_BOX", RK_CONF_SIZE, "0", "bytes",
     "Shared memory for messages from one rank of the node to another. 0: by the number of ranks on "
     "the node, 256K for 4 down to 16K for more than 64; with up to 128 ranks, rings that are often full grow.",
     NULL, 0, 64 << 20, AT(shm_box)},
    /* Names of collectives/table.c, a room above this one; a unit test compares them. */
    {"RANK_COLL", RK_CONF_PICKS, "", "",
     "Choose the algorithm of collectives: allreduce:ring,bcast:binomial. For some blocks only, in bytes: "
     "allreduce:ring@64K-1M, ring@1M-, ring@-4K. The first word that covers a call decides. rankinfo --coll NAME "
     "--ranks N shows the choice.",
     "barrier:shm|dissemination|two_level|lines|slices,"
     "bcast:shm|binomial|scatter_ring|chain|two_level|lines|slices|direct|device,"
     "reduce:shm|binomial|rabenseifner|two_level|lines|slices|direct|device,"
     "allreduce:shm|recursive_doubling|rabenseifner|ring|two_level|lines|slices|direct|device,"
     "gather:shm|binomial|linear|lines|slices|direct|device,"
     "allgather:shm|bruck|recursive_doubling|ring|two_level|lines|slices|direct|device,"
     "allgatherv:linear|ring|slices|direct|device,"
     "scatter:shm|binomial|linear|slices|direct|device,"
     "reduce_scatter:shm|recursive_halving|pairwise|ring|two_level|slices|direct|device,"
     "alltoall:shm|bruck|pairwise|two_level|slices|direct|device,"
     "gatherv:linear|slices|direct|device|by_length,"
     "scatterv:linear|slices|direct|device|by_length,"
     "alltoallv:pairwise|slices|direct|device|by_length,"
     "reduce_scatterv:recursive_halving|pairwise|slices|direct|device,"
     "scan:shm|recursive_doubling|chain|lines|slices|direct,"
     "exscan:shm|recursive_doubling|chain|lines|slices|direct",
     0, 0, AT(coll)},
    {"RANK_COLL_SHM", RK_CONF_BOOL, "on", "",
     "Run small collectives of one node through shared memory.", NULL, 0, 0, AT(coll_shm)},
    {"RANK_COLL_REPRODUCIBLE", RK_CONF_BOOL, "off", "",
     "Sum each element of reductions and scans by one tree over ranks: the same bits wherever "
     "the ranks are, and whatever RANK_COLL is. Small ones take longer, since they use messages.",
     NULL, 0, 0, AT(coll_reproducible)},
    {"RANK_COLL_TRACE", RK_CONF_BOOL, "off", "",
     "Print a line on stderr for each collective call: its number in the team, the team, the bytes of a block, the "
     "algorithm and the time from its start to its end.",
     NULL, 0, 0, AT(coll_trace)},
    {"RANK_SPAWN_TIMEOUT", RK_CONF_TIME, "120s", "time",
     "Time limit for the launcher's answer to rank_spawn, which then fails. 0: none.",
     NULL, 0, 24 * 3600LL * 1000000000LL, AT(spawn_timeout)},
    {"RANK_UCX_RMA", RK_CONF_ENUM, "auto", "",
     "Puts and gets between hosts by UCX (on), or by frames that the memory's owner checks (off). auto: UCX if a network "
     "device does them itself (InfiniBand, RoCE); else frames, since over tcp UCX lets any process that reaches its port "
     "read and write any address. Beside such a device tcp stays open to that: use UCX_TLS=^tcp, or off.",
     "auto|on|off", 0, 0, AT(ucx_rma)},
    {"RANK_NICS", RK_CONF_STRING, "", "",
     "NICs for messages between hosts: a comma list of RDMA devices and interfaces, as mlx5_0,ib0. xrun --nics-per-rank sets "
     "it. UCX gets these devices only, unless UCX_NET_DEVICES is set. Empty: UCX chooses among all.",
     NULL, 0, 0, AT(nics)},
    {"RANK_SECRET_FILE", RK_CONF_STRING, "", "path",
     "File with the secret of connections that get none from the program: 16 to 4096 bytes. A newline at its end is not part "
     "of it. The file must be yours, and closed to others (chmod 600). Needs libsodium. Empty: none.",
     NULL, 0, 0, AT(secret_file)},
    {"RANK_MODULES", RK_CONF_STRING, "", "path",
     "Directory of the library's modules; empty: beside the library.", NULL, 0, 0, AT(modules)},
    {"RANK_CUDA", RK_CONF_ENUM, "auto", "",
     "Accept buffers in memory of CUDA devices. auto: if the process has loaded CUDA before rank_init; on: load and "
     "initialize the driver, and end rank_init with an error without one. All ranks of a job need the same.",
     "auto|on|off", 0, 0, AT(cuda)},
    {"RANK_CUDA_UCX", RK_CONF_ENUM, "auto", "",
     "Let UCX read and write device memory of messages between hosts above 16 KiB itself (on), or move them through host "
     "memory (off). auto: UCX, if it has CUDA and a network device that does puts and gets. on without CUDA in UCX ends "
     "rank_init with an error.",
     "auto|on|off", 0, 0, AT(cuda_ucx)},
    {NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0},
};
