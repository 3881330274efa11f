/*
 * plain.h: can it be known that a program will never be an MPI program?
 */
#ifndef RK_LAUNCHER_PLAIN_H
#define RK_LAUNCHER_PLAIN_H

#include <stdbool.h>

/*
 * True for a program that uses no library but the C library, holds no word of
 * PMI, and nothing by which it could execute another program or load another
 * library. Many tools are so (true, hostname, sleep, cat), and are started in
 * large numbers; they are spared what only MPI libraries need. In doubt, false.
 * env: what it will be started with.
 */
bool rk_plain(const char *program, char *const *env);

#endif
