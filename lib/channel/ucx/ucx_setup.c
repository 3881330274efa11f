/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_setup.c: create UCP's context and worker, and the address blob.
 *
 * The user's UCX_* variables are obeyed. Without them two defaults differ from UCX's: shared memory is left to the
 * shm channel, unless ucx was forced within the node, and RANK_NICS names the network devices. The environment is not
 * changed.
 */
#include "lib/channel/module.h"
#include "lib/channel/ucx/devices.h"
#include "lib/channel/ucx/ucx.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/debug/log_def.h>

/* Not part of UCP's interface: used if present. */
#pragma weak ucs_log_push_handler
#pragma weak ucs_log_pop_handler

static uint32_t ucx_version(void)
{
    unsigned major, minor, patch;

    ucp_get_version(&major, &minor, &patch);
    return major << 16 | minor;
}

rank_status_t rk_ucx_status(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return RANK_OK;
    case UCS_ERR_NO_MEMORY:
        return RANK_ERR_NO_MEMORY;
    case UCS_ERR_UNREACHABLE:
        return RANK_ERR_UNREACHABLE;
    case UCS_ERR_CANCELED:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_IO_ERROR:
        return RANK_ERR_PEER_DEAD;
    default:
        return RANK_ERR_CHANNEL;
    }
}

static atomic_bool log_dropped; /* UCX's threads outlive what the logger needs */

/* UCX would print on the application's stdout. Runs on any thread of UCX. */
static ucs_log_func_rc_t take_log(const char *file, unsigned line, const char *function,
                                  ucs_log_level_t level, const ucs_log_component_config_t *conf,
                                  const char *message, va_list ap)
{
    char text[768];

    (void)file;
    (void)line;
    (void)function;
    (void)conf;
    if (atomic_load(&log_dropped))
        return UCS_LOG_FUNC_RC_STOP;
    vsnprintf(text, sizeof(text), message, ap);
    /* A broken connection is an error for UCX; here it is a report of a death, logged elsewhere. */
    rk_log(level == UCS_LOG_LEVEL_FATAL   ? RK_LOG_ERROR
           : level <= UCS_LOG_LEVEL_WARN ? RK_LOG_INFO
                                         : RK_LOG_DEBUG,
           "UCX: %s", text);
    return UCS_LOG_FUNC_RC_STOP;
}

static void log_begin(struct rk_ucx *ucx)
{
    if (!ucs_log_push_handler || rk_env("UCX_LOG_LEVEL") || rk_env("UCX_LOG_FILE"))
        return;
    atomic_store(&log_dropped, false);
    ucs_log_push_handler(take_log);
    ucx->log_taken = true;
}

static void log_end(struct rk_ucx *ucx)
{
    if (ucx->log_taken && ucs_log_pop_handler)
        ucs_log_pop_handler();
    ucx->log_taken = false;
}

/* Does the user's UCX_TLS include a shared-memory transport? */
static bool names_shm(const char *tls)
{
    static const char *const names[] = {"all",   "shm",   "sm",   "mm",   "posix",
                                        "sysv", "xpmem", "knem", "cma", "^"};

    for (size_t i = 0; i < RK_ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i]);
        for (const char *s = tls; (s = strstr(s, names[i])) != NULL; s += len) {
            bool begins = s == tls || s[-1] == ',' || s[-1] == '\\';
            if (begins && (names[i][0] == '^' || strchr(",:", s[len]) || !s[len]))
                return true;
        }
    }
    return false;
}

/* Network devices that the context or RANK_NICS names; NULL: none. *from: where they are named. */
static const char *named_nics(const struct rk_ucx *ucx, const char **from)
{
    const char *own = ucx->ctx ? ucx->ctx->net_devices : NULL, *nics = own ? own : rk_ucx_conf()->nics;

    *from = own ? "opts->net_devices" : "RANK_NICS";
    return own || (nics && *nics && !rk_env("UCX_NET_DEVICES")) ? nics : NULL;
}

/* Give UCX the network devices that are named. *names: UCX's names of them; NULL: it chooses. Caller frees. */
static rank_status_t configure_nics(const struct rk_ucx *ucx, ucp_config_t *config, char **names)
{
    const char *from, *nics = named_nics(ucx, &from);
    ucs_status_t st;

    if (!nics)
        return RANK_OK;
    *names = rk_ucx_net_devices(nics, "/sys");
    if (!*names)
        return RANK_ERR_NO_MEMORY;
    st = ucp_config_modify(config, "NET_DEVICES", *names);
    if (st == UCS_OK)
        return RANK_OK;
    return rk_fail(RANK_ERR_CONFIG, "UCX refuses the network devices %s of %s: %s", nics, from, ucs_status_string(st));
}

/* UCX drops devices that it does not have. Check that at least one is left. */
static rank_status_t check_nics(struct rk_ucx *ucx, const char *nics)
{
    const char *from;
    bool found;

    if (!nics)
        return RANK_OK;
    if (!rk_ucx_has_nic(ucx, nics, &found))
        return RANK_ERR_NO_MEMORY;
    if (found)
        return RANK_OK;
    named_nics(ucx, &from);
    return rk_fail(RANK_ERR_CONFIG, "UCX has none of the network devices %s of %s; "
                   "rankinfo --channels --load prints those it has without it", nics, from);
}

static bool is_for_conns(const struct rk_ucx *ucx)
{
    return ucx->ctx && ucx->ctx->ucx_for_conns;
}

/*
 * Leave out tcp: it believes any address that a process names which reaches its port. Shared memory is the pair channel's,
 * unless the user names it.
 */
static rank_status_t configure_for_conns(struct rk_ucx *ucx, ucp_config_t *config)
{
    const char *tls = rk_env("UCX_TLS");
    char *without = rk_ucx_tls_without_tcp(tls ? tls : "^shm");
    ucs_status_t st;

    if (!without)
        return RANK_ERR_NO_MEMORY;
    if (!*without) {
        rk_warn("connections do not use UCX: UCX_TLS=%s names its tcp only, which has no protection from strangers", tls);
        free(without);
        return RANK_ERR_CONFIG;
    }
    ucx->shm_transports = tls && names_shm(tls);
    st = ucp_config_modify(config, "TLS", without);
    if (st != UCS_OK)
        rk_fail(RANK_ERR_CONFIG, "UCX refuses the transports %s: %s", without, ucs_status_string(st));
    free(without);
    return st == UCS_OK ? RANK_OK : RANK_ERR_CONFIG;
}

/* Is UCX's tcp shut? */
static rank_status_t check_for_conns(struct rk_ucx *ucx)
{
    bool found;

    if (!is_for_conns(ucx))
        return RANK_OK;
    if (!rk_ucx_has_tcp(ucx, &found))
        return RANK_ERR_NO_MEMORY;
    if (found)
        rk_warn("connections do not use UCX: its tcp cannot be left out (UCX_TLS)");
    return found ? RANK_ERR_CONFIG : RANK_OK;
}

static rank_status_t configure(struct rk_ucx *ucx, ucp_config_t **out)
{
    const char *tls = rk_env("UCX_TLS");
    bool forced = !(rk_ucx_conf()->channels & RK_CONF_SHM);
    ucs_status_t st = ucp_config_read(NULL, NULL, out);
    rank_status_t rst;

    if (st != UCS_OK) {
        return rk_fail(RANK_ERR_CONFIG, "UCX refuses its configuration: %s (see the UCX_* variables)", ucs_status_string(st));
    }
    if (is_for_conns(ucx)) {
        rst = configure_for_conns(ucx, *out);
        if (rst)
            ucp_config_release(*out);
        return rst;
    }
    ucx->shm_transports = tls ? names_shm(tls) : forced;
    if (!tls && !forced)
        st = ucp_config_modify(*out, "TLS", "^shm");
    if (st != UCS_OK) {
        rk_fail(RANK_ERR_CHANNEL, "UCX refuses a setting: %s", ucs_status_string(st));
        ucp_config_release(*out);
        return RANK_ERR_CHANNEL;
    }
    return RANK_OK;
}

rank_status_t rk_ucx_create_type(const ucp_generic_dt_ops_t *ops, ucp_datatype_t *type, bool *made)
{
    ucs_status_t st = ucp_dt_create_generic(ops, NULL, type);

    *made = st == UCS_OK;
    if (!*made)
        rk_fail(rk_ucx_status(st), "UCX does not take a datatype: %s", ucs_status_string(st));
    return rk_ucx_status(st);
}

static rank_status_t ucx_setup_init(struct rk_ucx *ucx, int peers, const ucp_config_t *config)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP | (ucx->rma ? UCP_FEATURE_RMA : 0),
        .estimated_num_eps = (size_t)peers,
    };
    ucs_status_t ust = ucp_init(&params, config, &ucx->context);

    if (ust == UCS_OK)
        return RANK_OK;
    ucx->context = NULL;
    return rk_fail(RANK_ERR_CHANNEL, "UCX does not start: %s%s", ucs_status_string(ust), ust == UCS_ERR_NO_DEVICE ? " (no "
                   "transport is left; look at UCX_TLS, UCX_NET_DEVICES and RANK_NICS)" : "");
}

/* Find out whether UCX moves device memory itself. An error, if RANK_CUDA_UCX requires it and UCX was built without CUDA. */
static rank_status_t check_cuda(struct rk_ucx *ucx)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    int wish = rk_ucx_conf()->cuda_ucx;

    if (wish == RK_CONF_CUDA_UCX_OFF || rk_ucx_conf()->cuda == RK_CONF_CUDA_OFF)
        return RANK_OK;
    ucx->cuda = ucp_context_query(ucx->context, &attr) == UCS_OK && attr.memory_types & (1u << UCS_MEMORY_TYPE_CUDA);
    if (wish == RK_CONF_CUDA_UCX_ON && !ucx->cuda) {
        return rk_fail(RANK_ERR_CONFIG, "RANK_CUDA_UCX=on: this UCX %s has no transport for CUDA memory; install its CUDA "
                       "modules (and see UCX_TLS), or leave it at auto", ucp_get_version_string());
    }
    if (wish == RK_CONF_CUDA_UCX_AUTO && ucx->cuda && !rk_ucx_has_rdma(ucx, &ucx->cuda))
        return RANK_ERR_NO_MEMORY;
    return RANK_OK;
}

/*
 * Without a capable device UCX emulates puts and gets by messages, and trusts the addresses in them: any process that
 * reaches its port could read and write all memory of this one. So puts and gets stay disabled without such a
 * device; UCX rejects the messages, and frames of lib/rma, with ids and ranges checked by the owner, take
 * their place. Whether UCX may use the device shows only in a context, after its features were set: without it the
 * context is created again.
 */
static rank_status_t init_as_allowed(struct rk_ucx *ucx, int peers, const ucp_config_t *config)
{
    int wish = is_for_conns(ucx) ? RK_CONF_UCX_RMA_OFF : rk_ucx_conf()->ucx_rma;
    rank_status_t st;
    bool found;

    ucx->rma = wish == RK_CONF_UCX_RMA_ON || (wish == RK_CONF_UCX_RMA_AUTO && rk_rdma_devices());
    st = ucx_setup_init(ucx, peers, config);
    if (st || !ucx->rma || wish == RK_CONF_UCX_RMA_ON)
        return st;
    if (!rk_ucx_has_rdma(ucx, &found))
        return RANK_ERR_NO_MEMORY;
    if (found)
        return RANK_OK;
    ucp_cleanup(ucx->context);
    ucx->rma = false;
    return ucx_setup_init(ucx, peers, config);
}

rank_status_t rk_ucx_open_context(struct rk_ucx *ucx, int peers, ucp_config_t **kept)
{
    ucp_config_t *config;
    char *nics = NULL;
    rank_status_t st;

    log_begin(ucx);
    st = configure(ucx, &config);
    if (st)
        return st;
    st = configure_nics(ucx, config, &nics);
    if (!st)
        st = init_as_allowed(ucx, peers, config);
    if (!st)
        st = check_nics(ucx, nics);
    if (!st)
        st = check_cuda(ucx);
    if (!st)
        st = check_for_conns(ucx);
    free(nics);
    if (kept)
        *kept = config;
    else
        ucp_config_release(config);
    return st;
}

static rank_status_t open_worker(struct rk_ucx *ucx)
{
    ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        /* calls are serialized by rank.h's contract or by the context's lock */
        .thread_mode = ucx->ctx->engine->threads ? UCS_THREAD_MODE_SERIALIZED : UCS_THREAD_MODE_SINGLE,
    };
    ucs_status_t ust;

    ust = ucp_worker_create(ucx->context, &params, &ucx->worker);
    if (ust != UCS_OK) {
        ucx->worker = NULL;
        rk_fail(rk_ucx_status(ust), "UCX cannot make a worker: %s", ucs_status_string(ust));
        return rk_ucx_status(ust);
    }
    ust = ucp_worker_get_efd(ucx->worker, &ucx->fd);
    if (ust != UCS_OK) {
        return rk_fail(RANK_ERR_CHANNEL, "UCX has no descriptor to wait on: %s (a transport of UCX_TLS cannot wake)",
                       ucs_status_string(ust));
    }
    return RANK_OK;
}

static rank_status_t write_card(struct rk_ucx *ucx, void *card, size_t *len)
{
    struct rk_ucx_card c = {RK_UCX_CARD_MAGIC, ucx_version()};
    ucs_status_t ust = ucp_worker_get_address(ucx->worker, &ucx->address, &ucx->address_len);

    if (ust != UCS_OK) {
        ucx->address = NULL;
        return rk_fail(RANK_ERR_CHANNEL, "UCX does not give its address: %s", ucs_status_string(ust));
    }
    if (sizeof(c) + ucx->address_len > *len) {
        return rk_fail(RANK_ERR_CHANNEL, "the address of UCX's worker takes %zu bytes and a card has %zu: name fewer network "
                       "devices in UCX_NET_DEVICES or RANK_NICS, or transports in UCX_TLS", ucx->address_len, *len - sizeof(c));
    }
    memcpy(card, &c, sizeof(c));
    memcpy((char *)card + sizeof(c), ucx->address, ucx->address_len);
    *len = sizeof(c) + ucx->address_len;
    return RANK_OK;
}

bool rk_ucx_card_fits(const struct rk_ucx_card *card, char *text, size_t len)
{
    uint32_t mine = ucx_version();

    snprintf(text, len, "%u.%u, and this one %u.%u", card->ucx >> 16, card->ucx & 0xffff, mine >> 16, mine & 0xffff);
    return card->ucx == mine;
}

rank_status_t rk_ucx_setup(struct rk_ucx *ucx, void *card, size_t *len)
{
    unsigned major, minor, patch;
    rank_status_t st;

    ucp_get_version(&major, &minor, &patch);
    st = rk_ucx_open_context(ucx, ucx->ctx->boot->size, NULL);
    if (!st)
        st = open_worker(ucx);
    if (!st)
        st = rk_ucx_view_type(ucx);
    if (!st)
        st = rk_ucx_packet_type(ucx);
    if (!st)
        st = rk_ucx_listen(ucx);
    if (!st)
        st = write_card(ucx, card, len);
    if (!st)
        rk_debug("UCX %u.%u.%u: address of %zu bytes, shared memory %s, puts and gets by %s", major, minor, patch,
                 ucx->address_len, ucx->shm_transports ? "allowed" : "left to shm", ucx->rma ? "UCX" : "frames");
    return st;
}

void rk_ucx_teardown(struct rk_ucx *ucx)
{
    if (ucx->address)
        ucp_worker_release_address(ucx->worker, ucx->address);
    if (ucx->worker)
        ucp_worker_destroy(ucx->worker);
    if (ucx->has_view_type)
        ucp_dt_destroy(ucx->view_type);
    if (ucx->has_packet_type)
        ucp_dt_destroy(ucx->packet_type);
    if (ucx->context)
        ucp_cleanup(ucx->context);
    log_end(ucx);
}

void rk_ucx_abandon(struct rk_ucx *ucx)
{
    static volatile ucp_worker_h kept __attribute__((unused)); /* so that no tool reports it as a leak */

    rk_info("UCX is still busy with a peer: it stays until the process ends");
    atomic_store(&log_dropped, true);
    ucp_worker_release_address(ucx->worker, ucx->address);
    kept = ucx->worker;
}
