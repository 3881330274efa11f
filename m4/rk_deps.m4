# RK_CHECK_DEP: find a dependency.
# (NAME, pkg-config module, header, library, function, Debian package, required|optional)
# Finds a dependency through --with-name=DIR or pkg-config; sets NAME_CFLAGS,
# NAME_LIBS, NAME_PC_LIBS (the same for programs that are built after the
# installation), have_NAME and a line for the summary. No other search, so that
# what was found is what was asked for.
AC_DEFUN([RK_CHECK_DEP], [
  m4_pushdef([lname], m4_tolower([$1]))
  AC_ARG_WITH(lname,
    [AS_HELP_STRING([--with-]lname[=DIR], [use $2 from DIR (include/ and lib/ in it)])],
    [], [AS_VAR_SET([with_]lname, [check])])
  have_$1=no
  from_$1=
  AS_CASE([$with_]lname,
    [no], [from_$1="left out by --without-lname"],
    [yes|check], [
      PKG_CHECK_MODULES([$1], [$2], [have_$1=yes
        $1_PC_LIBS="$$1_LIBS"
        from_$1="pkg-config $2 `$PKG_CONFIG --modversion $2`"],
        [from_$1="not found (Debian: $6, or --with-lname=DIR)"])
    ], [
      rk_dir=$with_[]lname
      rk_libdir=$rk_dir/lib
      for rk_try in $rk_dir/lib64 $rk_dir/lib/`$CC -print-multiarch 2>/dev/null`; do
        AS_IF([test ! -e $rk_libdir/lib$4.so && test -e $rk_try/lib$4.so], [rk_libdir=$rk_try])
      done
      AS_IF([test ! -e $rk_dir/include/$3],
        [AC_MSG_ERROR([--with-lname=$rk_dir: there is no $rk_dir/include/$3])])
      rk_linkdir=$rk_libdir
      AS_IF([test -e $rk_libdir/lib$4.la], [
        # libtool would believe the .la file, which names places of the machine that it was built on
        rk_linkdir=`pwd`/deplibs
        mkdir -p deplibs && ln -sf $rk_libdir/lib$4.so deplibs/
      ])
      $1_CFLAGS="-I$rk_dir/include"
      $1_LIBS="-L$rk_linkdir -Wl,-rpath,$rk_libdir -l$4"
      $1_PC_LIBS="-L$rk_libdir -Wl,-rpath,$rk_libdir -l$4"
      AC_SUBST([$1_CFLAGS])
      AC_SUBST([$1_LIBS])
      have_$1=yes
      from_$1="$rk_dir"
    ])
  AS_IF([test $have_$1 = yes], [
    rk_save_CPPFLAGS=$CPPFLAGS; rk_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $$1_CFLAGS"; LIBS="$$1_LIBS $LIBS"
    AC_CHECK_HEADER([$3], [], [have_$1=no; from_$1="$from_$1: $3 does not compile"],
      [[#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>]])
    AC_CHECK_FUNC([$5], [], [have_$1=no; from_$1="$from_$1: $5 does not link"])
    CPPFLAGS=$rk_save_CPPFLAGS; LIBS=$rk_save_LIBS
  ])
  m4_if([$7], [required], [
    AS_IF([test $have_$1 = no],
      [AC_MSG_ERROR([$2 is needed: $from_$1])])])
  AS_IF([test $have_$1 = yes], [AC_DEFINE([HAVE_$1], [1], [$2 is there])])
  AC_DEFINE_UNQUOTED([RK_FROM_$1], ["$from_$1"], [where $2 comes from, for rankinfo])
  m4_popdef([lname])
])

# CUDA: the driver is opened at run time. Only the reduction kernels need nvcc, and a release brings their PTX.
# NVCC_GENCODE, NVCC_HOLDS: the architectures that this nvcc knows.
AC_DEFUN([RK_CHECK_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda[=DIR]], [compile GPU kernels with nvcc of the toolkit in DIR (default: if nvcc is found)])],
    [], [with_cuda=auto])
  NVCC=
  from_CUDA="no nvcc"
  AS_CASE([$with_cuda],
    [no], [from_CUDA="left out by --without-cuda"],
    [auto|yes], [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
    [AS_IF([test -x "$with_cuda/bin/nvcc"], [NVCC=$with_cuda/bin/nvcc],
      [AC_MSG_ERROR([--with-cuda: there is no $with_cuda/bin/nvcc])])])
  AS_IF([test -n "$NVCC"], [
    AC_MSG_CHECKING([whether $NVCC compiles kernels])
    cat >conftest.cu <<RK_EOF
struct args { int *p; };
__global__ void kernel(const __grid_constant__ struct args a) { *a.p = 0; }
RK_EOF
    AS_IF([$NVCC -std=c++17 -arch=compute_80 -ptx conftest.cu -o conftest.ptx >&AS_MESSAGE_LOG_FD 2>&1],
      [from_CUDA=$NVCC], [from_CUDA="$NVCC does not compile (config.log)"; NVCC=])
    AC_MSG_RESULT([$from_CUDA])
    rm -f conftest.cu conftest.ptx
  ])
  AS_IF([test -z "$NVCC" && test "$with_cuda" != no && test "$with_cuda" != auto],
    [AC_MSG_ERROR([--with-cuda: $from_CUDA])])
  NVCC_HOLDS=PTX
  NVCC_GENCODE=compute_80
  AS_IF([test -n "$NVCC"], [
    for rk_sm in sm_100 sm_90 sm_80; do
      AS_IF([$NVCC --list-gpu-code 2>&AS_MESSAGE_LOG_FD | grep -qx $rk_sm],
        [NVCC_GENCODE="$rk_sm,$NVCC_GENCODE"; NVCC_HOLDS="$rk_sm $NVCC_HOLDS"])
    done
  ])
  NVCC_GENCODE="-gencode arch=compute_80,code=@<:@$NVCC_GENCODE@:>@"
  AS_IF([test -n "$NVCC"], [have_CUDA=yes],
    [test -f "$srcdir/collectives/gpu/reduce.ptx"], [have_CUDA=yes; from_CUDA="$from_CUDA; PTX of the release"],
    [have_CUDA=no])
  AC_DEFINE_UNQUOTED([RK_FROM_CUDA], ["$from_CUDA"], [what compiles the GPU kernels, for rankinfo])
  AC_SUBST([NVCC])
  AC_SUBST([NVCC_GENCODE])
  AC_SUBST([NVCC_HOLDS])
  AM_CONDITIONAL([HAVE_NVCC], [test -n "$NVCC"])
  AM_CONDITIONAL([HAVE_REDUCE_PTX], [test -f "$srcdir/collectives/gpu/reduce.ptx"])
])

AC_DEFUN([RK_ARG_SANITIZERS], [
  AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [build with the address and undefined-behaviour sanitizers])])
  AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with the thread sanitizer])])
  AC_ARG_ENABLE([fuzz], [AS_HELP_STRING([--enable-fuzz], [build the fuzz targets (clang)])])
  SAN_CFLAGS=
  AS_IF([test "x$enable_asan" = xyes],
    [SAN_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"])
  AS_IF([test "x$enable_tsan" = xyes], [
    SAN_CFLAGS="-fsanitize=thread -fno-omit-frame-pointer"
    # gcc says of each fence that the sanitizer does not know it. Ours are between processes, which it does not see
    # either; between threads there are locks.
    AS_IF([echo 'int x;' | $CC -Werror -Wno-tsan -c -x c -o /dev/null - 2>/dev/null], [SAN_CFLAGS="$SAN_CFLAGS -Wno-tsan"])
  ])
  # The sources ask for a sanitizer by gcc's macros; clang defines none of them.
  AS_IF([test "x$enable_asan$enable_tsan" != x && echo 'int x = __clang_major__;' | $CC -c -x c -o /dev/null - 2>/dev/null],
    [AS_IF([test "x$enable_asan" = xyes], [SAN_CFLAGS="$SAN_CFLAGS -D__SANITIZE_ADDRESS__=1"])
     AS_IF([test "x$enable_tsan" = xyes], [SAN_CFLAGS="$SAN_CFLAGS -D__SANITIZE_THREAD__=1"])])
  AC_SUBST([SAN_CFLAGS])
  AM_CONDITIONAL([SANITIZED], [test -n "$SAN_CFLAGS"])
  AM_CONDITIONAL([FUZZ], [test "x$enable_fuzz" = xyes])
])

dnl Before AC_PROG_CC, which has CFLAGS of its own.
AC_DEFUN([RK_ARG_DEBUG], [
  AC_ARG_ENABLE([debug], [AS_HELP_STRING([--enable-debug], [check for overlapping buffers; CFLAGS are -g -O0 unless given])])
  DEBUG_CPPFLAGS=
  AS_IF([test "x$enable_debug" = xyes], [: ${CFLAGS="-g -O0"}
     DEBUG_CPPFLAGS=-DRK_CHECK_OVERLAP=1])
  AC_SUBST([DEBUG_CPPFLAGS])
])

AC_DEFUN([RK_ARG_WERROR], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make warnings errors])])
  WARN_CFLAGS="-Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes"
  AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
  AC_SUBST([WARN_CFLAGS])
  AC_DEFINE_UNQUOTED([RK_COMPILER], ["$CC $CFLAGS $SAN_CFLAGS"], [for rankinfo])
])

AC_DEFUN([RK_SUMMARY], [
  rk_ucx_means="no ucx channel: one node only"
  AS_IF([test $have_UCX = yes], [rk_ucx_means="channel ucx (a module)"])
  rk_tests="no unit tests (make check runs the multi-process ones)"
  AS_IF([test $have_CMOCKA = yes], [rk_tests="unit tests"])
  rk_cuda="device memory without reduction kernels"
  AS_IF([test $have_CUDA = yes], [rk_cuda="reduction kernels for device memory"])
  rk_verbs="NICs are found by PCI only"
  AS_IF([test $have_VERBS = yes], [rk_verbs="NICs are named by verbs"])
  cat <<RK_EOF

  $PACKAGE_NAME $PACKAGE_VERSION, to be installed in $prefix

  what        found                                             what follows
  ----        -----                                             ------------
`printf '  %-10s  %-48s  %s\n' \
    pmix "$from_PMIX" "xrun, start under any PMIx server" \
    hwloc "$from_HWLOC" "mapping and binding" \
    libevent "$from_EVENT" "xrun's loop" \
    ucx "$from_UCX" "$rk_ucx_means" \
    verbs "$from_VERBS" "$rk_verbs" \
    cuda "$from_CUDA" "$rk_cuda" \
    cmocka "$from_CMOCKA" "$rk_tests"`

  compiler    $CC $CFLAGS $SAN_CFLAGS

RK_EOF
])

# How programs are linked with the installed library: RANK_RPATH for rank.pc, CXX for xcc++, and
# RANK_EXPORTS, the linker's option that limits and versions the exported functions.
AC_DEFUN([RK_CHECK_LINKING], [
  AS_IF([test "x$enable_shared" = xno && test $have_UCX = yes],
    [AC_MSG_ERROR([--disable-shared leaves out the ucx channel, which is a module: add --without-ucx, or leave out --disable-shared])])

  rk_prefix=$prefix
  AS_IF([test "x$rk_prefix" = xNONE], [rk_prefix=$ac_default_prefix])
  rk_exec_prefix=$exec_prefix
  AS_IF([test "x$rk_exec_prefix" = xNONE], [rk_exec_prefix=$rk_prefix])
  rk_libdir=`prefix=$rk_prefix; exec_prefix=$rk_exec_prefix; eval echo "$libdir"`
  # The dynamic linker searches these by itself.
  RANK_RPATH='-Wl,-rpath,${libdir}'
  for rk_dir in /lib /lib64 /usr/lib /usr/lib64 /usr/lib/`$CC -print-multiarch 2>/dev/null`; do
    AS_IF([test "x$rk_libdir" = "x$rk_dir"], [RANK_RPATH=])
  done
  AC_SUBST([RANK_RPATH])
  # The build folder is no place to link with later.
  RANK_PC_PRIVATE="$PMIX_PC_LIBS $LIBS -ldl -lpthread -lm"
  AC_SUBST([RANK_PC_PRIVATE])
  # With librank.a alone, every program needs them.
  RANK_PC_ALWAYS=
  AS_IF([test "x$enable_shared" = xno], [RANK_PC_ALWAYS=$RANK_PC_PRIVATE])
  AC_SUBST([RANK_PC_ALWAYS])

  AS_CASE([$CC], [*clang*], [AC_CHECK_TOOLS([CXX], [clang++ g++ c++], [c++])],
    [AC_CHECK_TOOLS([CXX], [g++ c++ clang++], [c++])])

  AC_CACHE_CHECK([whether the linker takes a version script], [rk_cv_version_script], [
    rk_save_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -shared -fPIC -Wl,--version-script=conftest.map"
    echo 'RANK_0.1 { global: rk_one; local: *; };' >conftest.map
    AC_LINK_IFELSE([AC_LANG_SOURCE([[int rk_one(void); int rk_one(void) { return 1; }]])],
      [rk_cv_version_script=yes], [rk_cv_version_script=no])
    rm -f conftest.map
    LDFLAGS=$rk_save_LDFLAGS
  ])
  RANK_EXPORTS='-export-symbols-regex ^p?rank_'
  AS_IF([test $rk_cv_version_script = yes], [RANK_EXPORTS='-Wl,--version-script=lib/rank.map'])
  AC_SUBST([RANK_EXPORTS])
])
