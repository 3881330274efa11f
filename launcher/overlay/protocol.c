/* SPDX-License-Identifier: BSD-3-Clause */
/* protocol.c: see protocol.h. */
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

bool xr_message_is_routed(uint32_t kind)
{
    enum { UP, DOWN, ROUTED, STEP };

    switch (kind) {
#define X(name, number, direction, payload, handlers) \
    case number: return direction == ROUTED;
        XR_MESSAGES(X)
#undef X
    default: return false;
    }
}
