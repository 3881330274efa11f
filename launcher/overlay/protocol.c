/* SPDX-License-Identifier: BSD-3-Clause */
/* protocol.c: name messages for logs. See protocol.h. */
#include "launcher/overlay/protocol.h"

const char *xr_message_name(uint32_t kind)
{
    switch (kind) {
#define X(name, number, direction, payload, handlers) \
    case number: return #name;
        XR_MESSAGES(X)
#undef X
    default: return "unknown";
    }
}
