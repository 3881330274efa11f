# SPDX-License-Identifier: BSD-3-Clause
# cuda_ranks.sh: pass device memory between ranks, with a stand-in for libcuda.
. "$top_srcdir/tests/env.sh"
standin=$top_builddir/tests/standin/.libs
case "${SAN_CFLAGS:-}" in *thread*) echo "ok - standin # SKIP not tried under the thread sanitizer"; exit 77 ;; esac
work=$(mktemp -d "$top_builddir/tests/cuda.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# with WHAT -q SIZES OPTIONS... -- PROGRAM ARGUMENTS...: by mp.sh; a full run has these sizes, too, without -f
with() {
    local what=$1 sizes=$3
    shift
    [[ "standin/$what" =~ ${CASES:-} ]] || return 0
    if bash "$top_srcdir/tests/mp.sh" -1 -c default -f "$sizes" -t 100 -E RANK_CUDA=on -E "LD_LIBRARY_PATH=$libs" -E STANDIN_SEED=1 -E STANDIN_DELAY=20 "$@" >"$work/out" 2>&1 &&
        grep -q '^ok' "$work/out"; then
        echo "ok - standin/$what"
    else
        echo "not ok - standin/$what"
        sed 's/^/    /' "$work/out"
        bad=1
    fi
}

# The same in full runs only.
full() { [ -z "${FULL:-}" ] || with "$@"; }

libs=$standin
buffers=tests/standin/device_buffers.mp
with "one device" -q alone,2 -f alone,1,2,3,4 -E DEVICE_MAPPED=1 -- $buffers
with "two devices" -q 3 -f 2,3,4 -E STANDIN_GPUS=2 -E DEVICE_MAPPED=1 -- $buffers
with "between hosts" -q 2 -f 2,3 -c "tcp${FULL:+,ucx}" -- $buffers
full "two devices without access to each other" -q 2 -f 2,3 -E STANDIN_GPUS=2 -E STANDIN_PEER=off -- $buffers
full "no descriptors of memory, an old driver's handles" -q 2 -f 2,3 -E STANDIN_GPUS=2 -E STANDIN_VMM=off -E DEVICE_MAPPED=1 -- $buffers
full "nothing can be mapped" -q 2 -f 2,3 -E STANDIN_IPC=off -- $buffers
with "no optional call" -q 2 -f 2,3 -E STANDIN_WITHOUT=optional -- $buffers
kernels=$top_builddir/tests/standin/reduce_kernel.so
if [ -s "$kernels" ]; then # there is a C++ compiler
    with "local reductions by kernels" -q 2 -f 2,3 -E STANDIN_KERNELS="$kernels" -E STANDIN_TRACE=1 -o cuLaunchKernel -- $buffers
    device() { with "$@" -E STANDIN_KERNELS="$kernels" -- tests/standin/device_reductions.mp; }
    device "reductions by kernels, one device" -q 3 -f 2,3,4,8 -E RANK_COLL_TRACE=on -o 'bytes, device'
    device "reductions by kernels, two devices" -q 2 -f 2,3,4 -E STANDIN_GPUS=2 -E RANK_COLL_TRACE=on -o 'bytes, device'
    device "reductions, devices without access to each other" -q 3 -f 3 -E STANDIN_GPUS=2 -E STANDIN_PEER=off
    device "reductions, nothing can be mapped" -q 2 -f 2,3 -E STANDIN_IPC=off
    colls=(bcast reduce allreduce gather allgather allgatherv scatter reduce_scatter alltoall gatherv scatterv alltoallv reduce_scatterv)
    every=$(printf '%s:device,' "${colls[@]}")
    every=${every%,}
    mixed() { with "$@" -E STANDIN_KERNELS="$kernels" -- tests/standin/device_collectives.mp; }
    mixed "collectives, one device" -q 3 -f 2,3,4,8
    mixed "collectives of all lengths, one device" -q 4 -f 2,3,4,8 -E RANK_COLL="$every"
    mixed "collectives of all lengths, two devices" -q 3 -f 2,3,4,8 -E STANDIN_GPUS=2 -E RANK_COLL="$every"
    mixed "collectives, devices without access to each other" -q 3 -f 3,4 -E STANDIN_GPUS=2 -E STANDIN_PEER=off -E RANK_COLL="$every"
    mixed "collectives, by a progress thread" -q 3 -f 2,3 -E STANDIN_GPUS=2 -E RANK_PROGRESS_THREAD=yes
    mixed "collectives, nothing can be mapped" -q 2 -f 2,3 -E STANDIN_IPC=off -E RANK_COLL="$every"
    with "collectives, a rank without devices" -q 3 -f 3,4 -E STANDIN_KERNELS="$kernels" -E RANK_COLL="$every" -- tests/standin/device_collectives.mp --without 1
    for i in "${!colls[@]}"; do # from the first call on
        with "${colls[i]} on two devices" -q 3 -f 2,3,4 -E STANDIN_KERNELS="$kernels" -E STANDIN_GPUS=2 -E RANK_COLL="$every" -E RANK_COLL_TRACE=on \
            -o "${colls[i]}, [0-9]+ bytes, device" -O 'bytes, staged' -- tests/standin/device_collectives.mp --only "${colls[i]}"
    done
    for i in 1 2 7 12; do # through scratch memory, in rounds
        with "${colls[i]} of memory that cannot be mapped" -q 3 -f 2,3,4 -E STANDIN_KERNELS="$kernels" -E STANDIN_GPUS=2 -E RANK_COLL="$every" \
            -E RANK_COLL_TRACE=on -o "${colls[i]}, [0-9]+ bytes, device" -O 'bytes, staged' -- tests/standin/device_collectives.mp --only "${colls[i]}" --private
    done
    with "no copies but those that must be, one device" -q 3 -f 2,3,4 -E STANDIN_KERNELS="$kernels" -- tests/standin/device_collectives.mp --copies 1
    with "no copies but those that must be, two devices" -q 3 -f 2,3,4 -E STANDIN_KERNELS="$kernels" -E STANDIN_GPUS=2 -- \
        tests/standin/device_collectives.mp --copies 2
    for n in 20 21 22 23 24 25 26; do # in each of the collectives
        with "copy $n of a rank fails in collectives on devices" -q 2 -f 2,3 -E STANDIN_KERNELS="$kernels" -E BREAK_RANK_0=MemcpyAsync:$n -- \
            tests/standin/device_collectives.mp --fails
    done
    with "a rank that cannot map others' memory in collectives" -q 3 -f 2,3 -E STANDIN_KERNELS="$kernels" -E RANK_LOG=info \
        -E BREAK_RANK_0=IpcOpenMemHandle:1+:CUDA_ERROR_OUT_OF_MEMORY,MemImportFromShareableHandle:1+:CUDA_ERROR_OUT_OF_MEMORY \
        -o 'cannot map device memory of the other ranks' -- tests/standin/device_collectives.mp
    with "a rank dies in collectives on devices" -q 3 -k 1 -e 137 -x '--on-failure continue' -E STANDIN_KERNELS="$kernels" -E STANDIN_GPUS=2 -- \
        tests/standin/device_collectives.mp --die
    with "a kernel of a rank fails" -q 2 -f 2,3 -E STANDIN_KERNELS="$kernels" -E BREAK_RANK_0=LaunchKernel:2 -- \
        tests/standin/device_reductions.mp --fails
    with "a rank dies in reductions by kernels" -q 3 -k 1 -e 137 -x '--on-failure continue' -E STANDIN_KERNELS="$kernels" -- \
        tests/standin/device_reductions.mp --die
fi
with "a progress thread" -q 2 -f 2,3 -c "default${FULL:+,tcp}" -E RANK_PROGRESS_THREAD=yes -- $buffers
with "without CMA" -q 2 -f 2,3 -E RANK_CMA=off -- $buffers
full "rendezvous of all lengths" -q 2 -f 2,3 -E RANK_EAGER_MAX=0 -- $buffers
full "through rings" -q 2 -f 2,3 -E RANK_LARGE=ring -- $buffers
full "collectives of all lengths and forms" -q 2 -- $buffers --full
with "host memory only: messages" -q 2 -f 2,3 -- tests/mp/p2p_recv.mp
with "host memory only: one-sided calls" -q 3 -f 2,3 -- tests/mp/rma/rma_random.mp
with "rank_init again" -q 2 -f 1,2 -- tests/mp/init_again.mp --seconds 5 --growth 1500

messages=tests/standin/device_messages.mp
with "one copy a message" -q 2,3 -- $messages
with "RANK_CUDA=auto, and the first call of CUDA after rank_init" -q 2 -E RANK_CUDA=auto -- $messages
with "one copy a message between two devices" -q 2,3 -E STANDIN_GPUS=2 -- $messages
with "one copy a message, IPC handles only" -q 2 -E STANDIN_GPUS=2 -E STANDIN_VMM=off -- $messages
with "copies through host memory, no access between devices" -q 2,3 -E STANDIN_GPUS=2 -E STANDIN_PEER=off \
    -o "cannot be mapped by this rank" -- $messages --staged
with "copies through host memory, no IPC" -q 2 -E STANDIN_IPC=off -o "cannot be mapped by others" -- $messages --staged
with "out of device memory for a mapping" -q 2 -E BREAK_RANK_1=IpcOpenMemHandle:1:CUDA_ERROR_OUT_OF_MEMORY -- $messages --refuse -3
with "a mapping that breaks the device" -q 2 -E BREAK_RANK_1=IpcOpenMemHandle:1:CUDA_ERROR_ILLEGAL_ADDRESS -- $messages --refuse -25
with "a sender is killed" -q 2,3 -k 1 -e 137 -x '--on-failure continue' -- $messages --die 0
with "a receiver is killed" -q 2,3 -k 1 -e 137 -x '--on-failure continue' -E STANDIN_GPUS=2 -- $messages --die 1

pieces=tests/standin/device_pieces.mp
with "in pieces between hosts" -q 2,3 -f 2,3,4 -c "tcp,ucx" -E STANDIN_GPUS=2 -- $pieces
with "in pieces between hosts, slow copies" -q 2 -f 2,3 -c tcp -E STANDIN_DELAY=2000 -- $pieces --rounds 4
with "in pieces between hosts, copies while others move" -q 2 -c tcp -E RANK_LOG=info -o 'rank 0 .*, [1-9][0-9]* of them while' \
    -o 'rank 1 .*, [1-9][0-9]* of them while' -- $pieces --one-way
with "in pieces between hosts, by threads" -q 2 -c tcp -E STANDIN_GPUS=2 -- $pieces --threads
full "in pieces between hosts, by threads and the progress thread" -q 2 -c tcp,ucx -E RANK_PROGRESS_THREAD=yes -- $pieces --threads
with "in pieces between hosts, behind the default stream" -q 2 -c tcp -E STANDIN_DELAY=30000 -- $pieces --default
for rule in MemcpyAsync:5 MemcpyAsync:12 EventQuery:5 EventRecord:4 EventCreate:3 MemHostRegister:1,MemcpyAsync:2; do
    case $rule in Event*) channels=tcp ;; *) channels=tcp,ucx ;; esac # by UCX no copy goes on beside others
    with "in pieces between hosts, $rule fails" -q 2 -c $channels -E STANDIN_SEED=0 -E BREAK_RANK_0=$rule -- $pieces --fails
done
for rule in MemcpyAsync:9 EventQuery:20; do # of puts and gets
    with "in pieces between hosts, a put or get, $rule fails" -q 2 -c tcp -E STANDIN_SEED=0 -E BREAK_RANK_0=$rule -- $pieces --fails --puts
done
with "in pieces between hosts, a receiver that is busy elsewhere" -q 3 -c tcp,ucx -- $pieces --slow
with "in pieces between hosts, a rank is killed meanwhile" -q 2,3 -c tcp -k 1 -e 137 -x '--on-failure continue' -E STANDIN_DELAY=3000 -- \
    $pieces --die 0
for way in "-c tcp" "-c ucx -E UCX_TLS=tcp,self"; do # by UCX's shared memory the killed rank may block the others (doc/p2p.md)
    with "in pieces between hosts, the other rank is killed, $way" -q 3 $way -k 1 -e 137 -x '--on-failure continue' -E STANDIN_DELAY=3000 -- \
    $pieces --die 1
done

with "by a UCX without CUDA" -q 2 -c ucx -E UCX_TLS=tcp,self -k n -e any -E RANK_CUDA_UCX=on -o 'RANK_CUDA_UCX=on: this UCX .* has no transport' -- $pieces
if [ -e "$standin/libucx_cuda.so" ] && [ -z "${SAN_CFLAGS:-}" ]; then # as if UCX had CUDA; a sanitizer's runtime must come first
    by_ucx() { with "$@" -E LD_PRELOAD="$standin/libucx_cuda.so" -E UCX_CUDA_TRACE=1 -- tests/standin/device_pieces.mp; }
    by_ucx "by UCX between hosts" -q 2,3 -c ucx -E STANDIN_GPUS=2 -E RANK_CUDA_UCX=on -o 'UCX has accessed'
    by_ucx "in pieces, as the network device does no puts" -q 2 -c ucx -E UCX_TLS=tcp,self -O 'UCX has accessed'
    for room in 1000000 10000; do # which UCX has announced whole
        with "by UCX, of which $room bytes that fail are in pieces" -q 2 -c ucx -E UCX_TLS=tcp,self -E LD_PRELOAD="$standin/libucx_cuda.so" -E RANK_CUDA_UCX=on \
            -E STANDIN_SEED=0 -E BREAK_RANK_0=MemcpyAsync:1 -- $pieces --fails --room $room
    done
    by_ucx "in pieces, RANK_CUDA_UCX=off" -q 2 -c ucx -E UCX_TLS=tcp,self -E RANK_CUDA_UCX=off -O 'UCX has accessed'
fi

faults=tests/standin/device_faults.mp
with "copies of a rank fail" -q 2,3 -E BREAK_RANK_0=MemcpyAsync:1+ -- $faults --copies --mapped
with "copies of a rank fail, the owner serves" -q 2 -E STANDIN_IPC=off -E BREAK_RANK_0=MemcpyAsync:1+ -- $faults --copies
with "copies of a rank fail, between hosts" -q 2 -c tcp,ucx -E BREAK_RANK_0=MemcpyAsync:1+ -- $faults --copies
with "an error that stays" -q 2 -E BREAK_RANK_0=MemcpyAsync:3:CUDA_ERROR_ILLEGAL_ADDRESS -E STANDIN_LEAKS=off \
    -o 'cuMemcpyAsync failed: CUDA_ERROR_ILLEGAL_ADDRESS' -- $faults --sticky
for call in DevicePrimaryCtxRetain CtxPushCurrent StreamCreateWithPriority MemGetAllocationGranularity MemCreate MemAddressReserve \
    MemMap MemSetAccess MemExportToShareableHandle MemImportFromShareableHandle MemsetD8Async StreamSynchronize PointerGetAttributes; do
    with "an allocation in which $call fails" -q 2 -E "BREAK_RANK_0=$call:1,$call:4,$call:6:CUDA_ERROR_OUT_OF_MEMORY" -- $faults --alloc
done
for call in MemAlloc IpcGetMemHandle IpcOpenMemHandle; do
    with "an allocation in which $call fails" -q 2 -E STANDIN_VMM=off -E "BREAK_RANK_0=$call:1,$call:3" -- $faults --alloc
done
with "a rank is killed while its memory is mapped" -q 3 -k 1 -e 137 -x '--on-failure continue' -- $faults --die
with "the same, and its memory is not mapped" -q 2 -k 1 -e 137 -x '--on-failure continue' -E STANDIN_IPC=off -- $faults --die
with "out of device memory" -q 1,3 -E STANDIN_MEMORY=33554432 -- $faults --memory
with "a forked child" -q 2 -- $faults --fork
with "no device" -q alone -E STANDIN_GPUS=0 -o 'finds no device' -- $faults --init -7
with "a driver that cannot be initialized" -q alone -E STANDIN_FAIL=Init:1+ -o 'cannot be initialized: CUDA_ERROR_UNKNOWN' -- $faults --init -25
with "a driver without a required call" -q alone -E STANDIN_WITHOUT=MemcpyAsync -o 'version 13.0. has no call cuMemcpyAsync of version 4.0' -- \
    $faults --init -7
with "without RANK_CUDA" -q 2 -E RANK_CUDA=auto -- $faults --without
with "RANK_CUDA=off" -q 2 -E RANK_CUDA=off -- $faults --without

queue=tests/standin/device_queue.mp
with "operations in streams" -q alone,3 -f alone,1,2,3,4 -E STANDIN_SEED=1 -- $queue --random 3
with "operations in streams, two devices, a thread a stream" -q 2 -f 2,3,4 -E STANDIN_GPUS=2 -E STANDIN_SEED=2 -- $queue --random 3 --threads
with "operations in streams, one hardware queue a priority" -q 2 -f 2,3 -E STANDIN_QUEUES=1 -E STANDIN_SEED=3 -- $queue --random 3
with "operations in streams, by RANK_PROGRESS_THREAD" -q 2 -E RANK_PROGRESS_THREAD=yes -- $queue --level 0 --random 2
with "operations in streams, between hosts" -q 2 -f 2,3 -c tcp -E STANDIN_SEED=4 -- $queue --random 2
with "rules of queues" -q alone,2 -f alone,1,2,3 -- $queue --rules
with "a queue without threads" -q alone -o 'pass RANK_THREAD_MULTIPLE to rank_init, or set RANK_PROGRESS_THREAD' -- $queue --level 2 --create -2
with "a driver without memory operations" -q alone -E STANDIN_DRIVER=11060 -o 'install one of CUDA 11.7 or newer' -- $queue --create -7
with "a device without memory operations" -q alone -E STANDIN_MEMOPS=off -o 'the device has no 64-bit memory operations' -- $queue --create -7
with "queues left at the end" -q 2 -E STANDIN_LEAKS=off -- $queue --left
with "a driver that refuses starts" -q alone -E STANDIN_LEAKS=off -E STANDIN_FAIL=StreamWriteValue64:2,StreamWaitValue64:4 -- $queue --refuse
with "a stream fails" -q 2,3 -o 'cuStreamQuery failed: CUDA_ERROR_ILLEGAL_ADDRESS' -- $queue --broken
with "a rank dies while streams wait for it" -q 2,3 -f 2,3,4 -k 1 -e 137 -x '--on-failure continue' -- $queue --kill

echo broken >"$work/libcuda.so.1"
libs=$work
with "a libcuda that cannot be loaded" -q alone -o 'cannot load the CUDA driver: .*libcuda.so.1' -- $faults --init -7

if [[ "standin/rankinfo" =~ ${CASES:-} ]]; then
    RANK_MODULES=$top_builddir/.libs LD_LIBRARY_PATH=$standin STANDIN_GPUS=2 "$top_builddir/rankinfo" --channels --load >"$work/out" 2>&1
    "$top_builddir/rankinfo" --coll allreduce --ranks 4 --mem cuda >>"$work/out" 2>&1
    grep -q 'driver 13.0, 2 devices, reduction kernels: ' "$work/out" && grep -q '^64K- *device' "$work/out" && echo "ok - standin/rankinfo" || { echo "not ok - standin/rankinfo"; sed 's/^/    /' "$work/out"; bad=1; }
fi

# paths TEXT SETTINGS...: rankinfo finds how device memory goes.
paths() {
    local text=$1
    shift
    [[ "standin/rankinfo --paths, $*" =~ ${CASES:-} ]] || return 0
    env RANK_MODULES="$top_builddir/.libs" LD_LIBRARY_PATH="$standin" RANK_PATHS=none "$@" "$top_builddir/rankinfo" --paths >"$work/out" 2>&1 &&
        grep -q "^  cuda     $text" "$work/out" && echo "ok - standin/rankinfo --paths, $*" && return
    echo "not ok - standin/rankinfo --paths, $*"
    sed 's/^/    /' "$work/out"
    bad=1
}
paths 'one copy; mapped by IPC handles and descriptors$' STANDIN_GPUS=2
paths 'one copy; mapped by IPC handles and descriptors; not between devices 0-1$' STANDIN_GPUS=2 STANDIN_PEER=off
paths 'one copy; mapped by descriptors only$' STANDIN_IPC=fd
paths 'one copy; mapped by IPC handles only$' STANDIN_VMM=off
paths 'through host memory' STANDIN_IPC=off
paths 'in chunks of 256 KiB through host memory, which is pinned$' STANDIN_GPUS=2
paths 'not used: RANK_CUDA=off' RANK_CUDA=off
[ ! -e "$standin/libucx_cuda.so" ] || paths 'by UCX (RANK_CUDA_UCX)' LD_PRELOAD="$standin/libucx_cuda.so" RANK_CUDA_UCX=on
exit $bad
