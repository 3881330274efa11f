/* SPDX-License-Identifier: BSD-3-Clause */
/* address.c: parse, resolve and print addresses of listeners. */
#include "lib/conn/address.h"
#include "lib/base/compiler.h"
#include "lib/base/fnv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static RK_PRINTF(3, 4) rank_status_t address_wrong(char *why, size_t len, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, len, fmt, args);
    va_end(args);
    return RANK_ERR_ARG;
}

/* Are all characters fit for a host and for a line of the log? */
static bool is_plain_host(const char *host)
{
    for (; *host; host++)
        if ((unsigned char)*host <= ' ' || *host == 0x7f || strchr("/@[]\"'\\*?", *host))
            return false;
    return true;
}

/* "10.0.1" and "7" are IPv4 addresses for getaddrinfo, though hardly what was meant. */
static bool is_part_of_ipv4(const char *host)
{
    struct in_addr parsed;

    return host[strspn(host, "0123456789.")] == '\0' && inet_pton(AF_INET, host, &parsed) != 1;
}

/* IPv6 with or without an interface: fe80::1%eth0. */
static bool is_ipv6(const char *host)
{
    const char *zone = strchr(host, '%');
    size_t bytes = zone ? (size_t)(zone - host) : strlen(host);
    char text[INET6_ADDRSTRLEN];
    struct in6_addr parsed;

    if (bytes >= sizeof(text) || (zone && !zone[1]))
        return false;
    memcpy(text, host, bytes);
    text[bytes] = '\0';
    return inet_pton(AF_INET6, text, &parsed) == 1;
}

/* Returns -1 if the text is no number from 0 to 65535. */
static int parse_port(const char *text)
{
    int port = 0;
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 5 || text[digits])
        return -1;
    for (; *text; text++)
        port = port * 10 + (*text - '0');
    return port <= UINT16_MAX ? port : -1;
}

/* Copy the host, which ends before colon. */
static rank_status_t parse_host(const char *text, const char *colon, struct rk_address *out, char *why, size_t len)
{
    bool brackets = *text == '[';
    size_t bytes = (size_t)(colon - text);

    if (brackets) {
        if (bytes < 2 || colon[-1] != ']')
            return address_wrong(why, len, "the address has '[' without ']' before its port; write \"[::1]:7471\"");
        text++;
        bytes -= 2;
    }
    if (bytes >= sizeof(out->host))
        return address_wrong(why, len, "the host of the address has %zu characters; it may have %zu", bytes,
                             sizeof(out->host) - 1);
    memcpy(out->host, text, bytes);
    out->host[bytes] = '\0';
    if (!is_plain_host(out->host))
        return address_wrong(why, len, "the host of the address has characters that no host has; write \"host:7471\", "
                                       "without a scheme or a path");
    if (brackets && !is_ipv6(out->host))
        return address_wrong(why, len, "\"%s\" is not an IPv6 address; brackets are for those only", out->host);
    if (!brackets && strchr(out->host, ':'))
        return address_wrong(why, len, "the address has several colons; write an IPv6 address in brackets: \"[::1]:7471\"");
    if (is_part_of_ipv4(out->host) && bytes)
        return address_wrong(why, len, "\"%s\" is not an IPv4 address; write four numbers, as 10.0.0.1", out->host);
    return RANK_OK;
}

rank_status_t rk_address_parse(const char *text, bool listens, struct rk_address *out, char *why, size_t len)
{
    const char *colon = strrchr(text, ':');
    rank_status_t status;
    int port;

    memset(out, 0, sizeof(*out));
    if (!colon || strchr(colon, ']'))
        return address_wrong(why, len, "the address has no port; write \"host:7471\"%s", listens ? " or \":7471\"" : "");
    status = parse_host(text, colon, out, why, len);
    if (status != RANK_OK)
        return status;
    port = parse_port(colon + 1);
    if (port < 0)
        return address_wrong(why, len, "the port of the address is not a number from %d to 65535", listens ? 0 : 1);
    if (!listens && port == 0)
        return address_wrong(why, len, "port 0 is for listening only; connect to the port that rank_listener_address returns");
    if (!listens && !out->host[0])
        return address_wrong(why, len, "the address has no host, which is for listening only; write \"host:%d\"", port);
    out->port = (uint16_t)port;
    return RANK_OK;
}

/* All interfaces come with IPv4 first. */
static struct addrinfo *ipv6_first(struct addrinfo *list)
{
    struct addrinfo *before = list;

    while (before->ai_next && before->ai_next->ai_family != AF_INET6)
        before = before->ai_next;
    if (list->ai_family != AF_INET6 && before->ai_next) {
        struct addrinfo *found = before->ai_next;

        before->ai_next = found->ai_next;
        found->ai_next = list;
        return found;
    }
    return list;
}

rank_status_t rk_address_resolve(const struct rk_address *address, bool listens, struct addrinfo **out, char *why,
                                 size_t len)
{
    bool all = listens && !address->host[0];
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP,
                             .ai_flags = AI_NUMERICSERV | (all ? AI_PASSIVE : 0)};
    char port[8];
    int err, code;

    *out = NULL;
    snprintf(port, sizeof(port), "%u", (unsigned)address->port);
    err = getaddrinfo(all ? NULL : address->host, port, &hints, out);
    code = errno;
    if (err == 0) {
        if (all)
            *out = ipv6_first(*out);
        return RANK_OK;
    }
    *out = NULL;
    if (err == EAI_SYSTEM || err == EAI_MEMORY) {
        address_wrong(why, len, "host \"%s\" cannot be resolved: %s", address->host,
                      err == EAI_SYSTEM ? strerror(code) : gai_strerror(err));
        return err == EAI_SYSTEM ? RANK_ERR_SYSTEM : RANK_ERR_NO_MEMORY;
    }
    address_wrong(why, len, "host \"%s\" cannot be resolved: %s; %s", address->host, gai_strerror(err),
                  err == EAI_AGAIN ? "try again, or write its address" : "check the name, or write its address");
    return RANK_ERR_UNREACHABLE;
}

int rk_address_connect(const struct sockaddr *address)
{
    bool four = address->sa_family == AF_INET;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

    if (fd < 0 || connect(fd, address, four ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) == 0 || errno == EINPROGRESS)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* The IPv4 address within an IPv6 one, as sockets of both families have it. */
static bool mapped_ipv4(const struct sockaddr *address, struct in_addr *out)
{
    const struct sockaddr_in6 *six = (const void *)address;

    if (address->sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        return false;
    memcpy(out, &six->sin6_addr.s6_addr[12], sizeof(*out));
    return true;
}

void rk_address_text(const struct sockaddr *address, char *text, size_t len)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    char host[RK_ADDRESS_TEXT];
    bool mapped = mapped_ipv4(address, &four.sin_addr);

    snprintf(text, len, "?");
    if (mapped)
        four.sin_port = ((const struct sockaddr_in6 *)(const void *)address)->sin6_port;
    else if (address->sa_family == AF_INET)
        memcpy(&four, address, sizeof(four));
    if (mapped || address->sa_family == AF_INET) {
        if (inet_ntop(AF_INET, &four.sin_addr, host, sizeof(host)))
            snprintf(text, len, "%s:%u", host, (unsigned)ntohs(four.sin_port));
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 six;

        memcpy(&six, address, sizeof(six));
        if (getnameinfo((const void *)&six, sizeof(six), host, sizeof(host), NULL, 0, NI_NUMERICHOST) == 0)
            snprintf(text, len, "[%s]:%u", host, (unsigned)ntohs(six.sin6_port));
    }
}

bool rk_address_is_loopback(const struct sockaddr *address)
{
    struct in_addr four;

    if (address->sa_family == AF_INET)
        memcpy(&four, &((const struct sockaddr_in *)(const void *)address)->sin_addr, sizeof(four));
    else if (!mapped_ipv4(address, &four))
        return address->sa_family == AF_INET6 &&
               IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
}

uint64_t rk_address_host_id(void)
{
    char text[64];
    ssize_t bytes;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    bytes = read(fd, text, sizeof(text));
    close(fd);
    return bytes > 0 ? rk_fnv64(RK_FNV64_START, text, (size_t)bytes) : 0;
}
