/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake_wire.h: define the messages that open a connection.
 *
 *     client                                server
 *     HELLO     nonce                  ->
 *                                      <-   CHALLENGE  nonce, secret wanted
 *     PROOF     mac, identity, card, hello ->
 *                                      <-   WELCOME    mac, identity, team, segment, card, hello
 *     READY     takes                  ->                          only if WELCOME has a segment or a card
 *     REFUSED in place of any of them, by either side: status and text; the sender closes the connection
 *
 * A message is a head and a body, all integers little-endian:
 *
 *     head       u32 magic "RKCN", u16 version, u16 type, u32 bytes of the body
 *     HELLO      nonce[32]
 *     CHALLENGE  nonce[32], u8 secret wanted (0 or 1)
 *     PROOF      mac[32], u64 context, u64 host, u32 pid, u32 uid, u32 window, name[64], u16 bytes of card,
 *                card, u16 bytes of hello, hello
 *     WELCOME    mac[32], u64 context, u64 host, u32 pid, u32 uid, u32 window, name[64], u64 team, u64 nonce,
 *                u64 bytes, u32 fd of the segment, u16 bytes of card, card, u16 bytes of hello, hello
 *     READY      u8 takes: 0 nothing, 1 the segment, 2 the card
 *     REFUSED    i32 status, text (the rest of the body)
 *
 * The head is the same in all versions. A side of another version is found by its first message, and the reason names
 * both versions. Messages have no padding, and the decoder accepts one encoding of each.
 *
 * No state and no memory of contexts here: the fuzzer calls it directly. Thread-safe.
 */
#ifndef RK_CONN_HANDSHAKE_WIRE_H
#define RK_CONN_HANDSHAKE_WIRE_H

#include "lib/rank.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RK_SHAKE_MAGIC 0x4e434b52u /* "RKCN" */
#define RK_SHAKE_VERSION 2u

/* Bytes. */
enum {
    RK_SHAKE_HEAD = 12,
    RK_SHAKE_BODY_MAX = 4096, /* of any version */
    RK_SHAKE_NONCE = 32,
    RK_SHAKE_MAC = 32,
    RK_SHAKE_NAME = 64,       /* with at least one NUL */
    RK_SHAKE_HELLO_MAX = 1024,
    RK_SHAKE_CARD_MAX = 2560,
    RK_SHAKE_TEXT_MAX = 256,
    RK_SHAKE_IDENTITY = 8 + 8 + 4 + 4 + 4 + RK_SHAKE_NAME + 2 + 2, /* context, host, pid, uid, window, name, bytes of card and hello */
    RK_SHAKE_WELCOME_MORE = 8 + 8 + 8 + 4,                     /* team, segment */
    RK_SHAKE_MAX = RK_SHAKE_HEAD + RK_SHAKE_MAC + RK_SHAKE_IDENTITY + RK_SHAKE_WELCOME_MORE + RK_SHAKE_CARD_MAX +
                   RK_SHAKE_HELLO_MAX, /* of WELCOME */
    RK_SHAKE_SIGNED_MAX = 2 * RK_SHAKE_NONCE + RK_SHAKE_MAX - RK_SHAKE_MAC,
    RK_SHAKE_WHY = 192,       /* text of a reason, with its NUL */
};

enum rk_shake_type {
    RK_SHAKE_HELLO = 1,
    RK_SHAKE_CHALLENGE,
    RK_SHAKE_PROOF,
    RK_SHAKE_WELCOME,
    RK_SHAKE_REFUSED,
    RK_SHAKE_READY,
    RK_SHAKE_TYPE_END
};

/* What carries the frames of the connection; the socket does without both. */
enum rk_shake_takes { RK_SHAKE_TAKES_NONE, RK_SHAKE_TAKES_SEGMENT, RK_SHAKE_TAKES_CARD };

/* A message of any type; fields of other types are zero. */
struct rk_shake {
    enum rk_shake_type type;                 /* 0: not received so far */
    unsigned char nonce[RK_SHAKE_NONCE];     /* HELLO, CHALLENGE */
    bool secret_wanted;                      /* CHALLENGE: the server refuses a PROOF without a valid mac */
    unsigned char mac[RK_SHAKE_MAC];         /* PROOF, WELCOME; zero without a secret */
    uint64_t context, host;                  /* PROOF, WELCOME: ids of the sender's context and host */
    uint32_t pid, uid;                       /* PROOF, WELCOME: uid is the effective user, as the sender states it */
    uint32_t window;                         /* PROOF, WELCOME: unreceived eager bytes that the peer may have at the sender */
    char name[RK_SHAKE_NAME];                /* PROOF, WELCOME: of the sender's context */
    uint64_t team;                           /* WELCOME: id of the connection's team */
    uint64_t segment, segment_bytes;         /* WELCOME: nonce and size of the shared memory; 0: none is offered */
    uint32_t segment_fd;                     /* WELCOME: its descriptor there */
    uint8_t takes;                           /* READY: enum rk_shake_takes */
    uint16_t card_bytes;                     /* PROOF, WELCOME; 0: the sender has no UCX, or does not offer it */
    unsigned char card[RK_SHAKE_CARD_MAX];   /* PROOF, WELCOME: the address of its UCX */
    uint16_t hello_bytes;                    /* PROOF, WELCOME */
    unsigned char hello[RK_SHAKE_HELLO_MAX]; /* PROOF, WELCOME: what the user gave, any bytes */
    rank_status_t status;                    /* REFUSED: RANK_ERR_REFUSED, RANK_ERR_SECRET or RANK_ERR_NO_MEMORY */
    char text[RK_SHAKE_TEXT_MAX + 1];        /* REFUSED: the reason */

    /* Results of rk_shake_next. */
    size_t need;                             /* 0 returned: bytes from the first one on, without which it cannot go on */
    char why[RK_SHAKE_WHY];                  /* negative returned: the reason, one line */
};

/*
 * Encode a message. Returns its bytes.
 * A name, hello or text that is too long is cut. A status that REFUSED does not have becomes RANK_ERR_REFUSED.
 */
size_t rk_shake_encode(const struct rk_shake *in, unsigned char out[RK_SHAKE_MAX]);

/*
 * Decode the message that begins at data.
 *
 * Positive: the bytes of the message.
 * 0: more bytes are needed. Read until len is out->need, which never exceeds the end of the message. The type is set as
 * soon as the head is complete.
 * Negative: the bytes are no message of this version, and out->why is set; more bytes do not change that.
 *
 * Control characters of name and text are replaced by '?': both are safe to print. Never reads past len.
 */
ssize_t rk_shake_next(const void *data, size_t len, struct rk_shake *out);

/*
 * List the bytes that the mac of an encoded PROOF or WELCOME covers: nonce of the client, nonce of the server, head, and
 * body behind the mac. Returns their number, or 0 if the message is of another type or length.
 * The label of the mac is rk_shake_label of its type. The mac is at message + RK_SHAKE_HEAD.
 */
size_t rk_shake_signed(const unsigned char client[RK_SHAKE_NONCE], const unsigned char server[RK_SHAKE_NONCE],
                       const void *message, size_t len, unsigned char out[RK_SHAKE_SIGNED_MAX]);

/* Returns "client" for PROOF, "server" for WELCOME, else NULL. */
const char *rk_shake_label(enum rk_shake_type type);

/* Returns the name of a type in capitals, in static storage; "?" for another number. */
const char *rk_shake_type_text(int type);

#endif
