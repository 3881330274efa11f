/* SPDX-License-Identifier: BSD-3-Clause */
/* compiler.h: define compiler attributes and CPU hints for hot code. */
#ifndef RK_BASE_COMPILER_H
#define RK_BASE_COMPILER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define rk_likely(x) __builtin_expect(!!(x), 1)
#define rk_unlikely(x) __builtin_expect(!!(x), 0)
#define RK_INLINE static inline __attribute__((always_inline))
/* The caller must use the result. */
#define RK_CHECKED __attribute__((warn_unused_result))
#define RK_COLD __attribute__((cold, noinline))
#define RK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/*
 * Define the public name of a function of this file: rank_X is a weak alias of prank_X. The header that the build makes
 * from rank.sym gives the definition of rank_X that symbol, so that the library's own calls are never intercepted.
 * Tests that compile files of the library without that header have rank_X only.
 */
#ifdef RK_RENAMED
#define RK_PUBLIC(name)                                                                                                 \
    extern __typeof__(name) name##_weak __asm__(#name) __attribute__((weak, alias("p" #name), visibility("default")))
#else
#define RK_PUBLIC(name) extern __typeof__(name) name
#endif

#define RK_CACHE_LINE 64
#define RK_ALIGNED_LINE __attribute__((aligned(RK_CACHE_LINE)))

/* Hint that this is a spin loop. */
RK_INLINE void rk_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#else
    __asm__ __volatile__("" ::: "memory");
#endif
}

RK_INLINE size_t rk_round_up(size_t n, size_t align)
{
    return (n + align - 1) / align * align;
}

/* Check for overlapping buffers of a call, in builds where speed does not matter; configure --enable-debug sets it. */
#ifndef RK_CHECK_OVERLAP
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
#define RK_CHECK_OVERLAP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RK_CHECK_OVERLAP 1
#endif
#endif
#endif
#ifndef RK_CHECK_OVERLAP
#define RK_CHECK_OVERLAP 0
#endif

/* Do two blocks share a byte? Both lie within the address space. */
RK_INLINE int rk_overlap(const void *a, size_t abytes, const void *b, size_t bbytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return abytes && bbytes && x < y + bbytes && y < x + abytes;
}

#define rk_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define RK_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
