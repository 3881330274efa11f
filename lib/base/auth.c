/* SPDX-License-Identifier: BSD-3-Clause */
/* auth.c: see auth.h. */
#include "lib/base/auth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/*
 * crypto_auth_hmacsha256_state has 208 bytes, crypto_generichash_state 384 and an alignment of 64; sodium_open checks that
 * those of a later version fit.
 */
union sodium_state {
    unsigned char bytes[512];
    _Alignas(64) uint64_t align;
};

/* As in <sodium.h>, which is not needed for building. */
static struct {
    bool open;
    int (*initialize)(void);
    size_t (*mac_state_bytes)(void);
    int (*mac_begin)(union sodium_state *state, const unsigned char *key, size_t bytes);
    int (*mac_update)(union sodium_state *state, const unsigned char *data, unsigned long long bytes);
    int (*mac_end)(union sodium_state *state, unsigned char *mac);
    size_t (*hash_state_bytes)(void);
    int (*hash_begin)(union sodium_state *state, const unsigned char *key, size_t key_bytes, size_t out_bytes);
    int (*hash_update)(union sodium_state *state, const unsigned char *data, unsigned long long bytes);
    int (*hash_end)(union sodium_state *state, unsigned char *out, size_t out_bytes);
} sodium;

static pthread_once_t sodium_once = PTHREAD_ONCE_INIT;

static void sodium_open(void)
{
    static const char *const names[] = {"libsodium.so.23", "libsodium.so.26"};
    static const struct {
        const char *name;
        void *call;
    } calls[] = {
        {"sodium_init", &sodium.initialize},
        {"crypto_auth_hmacsha256_statebytes", &sodium.mac_state_bytes},
        {"crypto_auth_hmacsha256_init", &sodium.mac_begin},
        {"crypto_auth_hmacsha256_update", &sodium.mac_update},
        {"crypto_auth_hmacsha256_final", &sodium.mac_end},
        {"crypto_generichash_statebytes", &sodium.hash_state_bytes},
        {"crypto_generichash_init", &sodium.hash_begin},
        {"crypto_generichash_update", &sodium.hash_update},
        {"crypto_generichash_final", &sodium.hash_end},
    };
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof(names) / sizeof(*names); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        void *found = dlsym(library, calls[i].name);

        if (!found)
            return;
        memcpy(calls[i].call, &found, sizeof(found));
    }
    sodium.open = sodium.initialize() >= 0 && sodium.mac_state_bytes() <= sizeof(union sodium_state) &&
                  sodium.hash_state_bytes() <= sizeof(union sodium_state);
}

bool rk_auth_open(void)
{
    pthread_once(&sodium_once, sodium_open);
    return sodium.open;
}

void rk_auth_mac(const void *key, size_t key_bytes, const char *label, const void *data, size_t len,
                 unsigned char mac[RK_AUTH_MAC])
{
    union sodium_state state;

    sodium.mac_begin(&state, key, key_bytes);
    if (label)
        sodium.mac_update(&state, (const unsigned char *)label, strlen(label) + 1);
    if (len)
        sodium.mac_update(&state, data, len);
    sodium.mac_end(&state, mac);
    explicit_bzero(&state, sizeof(state));
}

bool rk_auth_equal(const void *a, const void *b, size_t len)
{
    const unsigned char *one = a, *other = b;
    volatile unsigned char differ = 0; /* keeps the compiler from ending the loop early */

    for (size_t i = 0; i < len; i++)
        differ |= (unsigned char)(one[i] ^ other[i]);
    return differ == 0;
}

void rk_seal_next(struct rk_seal *seal, const void *head, size_t head_bytes, const void *data, size_t len,
                  unsigned char mac[RK_SEAL_MAC])
{
    union sodium_state state;
    unsigned char count[8];

    for (int i = 0; i < 8; i++)
        count[i] = (unsigned char)(seal->count >> (8 * i));
    seal->count++;
    sodium.hash_begin(&state, seal->key, sizeof(seal->key), RK_SEAL_MAC);
    sodium.hash_update(&state, count, sizeof(count));
    sodium.hash_update(&state, head, head_bytes);
    if (len)
        sodium.hash_update(&state, data, len);
    sodium.hash_end(&state, mac, RK_SEAL_MAC);
}

bool rk_seal_check(struct rk_seal *seal, const void *head, size_t head_bytes, const void *data, size_t len,
                   const unsigned char mac[RK_SEAL_MAC])
{
    unsigned char expected[RK_SEAL_MAC];

    rk_seal_next(seal, head, head_bytes, data, len, expected);
    return rk_auth_equal(mac, expected, sizeof(expected));
}
