/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_shake.h: exchange messages of a handshake by a blocking socket. */
#ifndef TESTS_CONN_RAW_SHAKE_H
#define TESTS_CONN_RAW_SHAKE_H

#include "lib/conn/handshake_wire.h"

/* Returns false if the peer has closed the socket. */
bool raw_sends(int fd, const void *data, size_t len);
/* Returns false at the end of the stream. */
bool raw_message(int fd, struct rk_shake *m);
void raw_say(int fd, const struct rk_shake *m);

#endif
