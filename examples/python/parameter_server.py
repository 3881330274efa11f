#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Train a linear model with a parameter server, in NumPy. Workers come and go.

    python3 parameter_server.py                        # server here and three workers: one leaves, one is killed
    python3 parameter_server.py --listen :7471         # server, for workers of any host
    python3 parameter_server.py --connect hosta:7471   # worker

The server has three memories: the weights, which workers read; the number of the next step, which they increase; and a slot
for the gradient of each worker. A worker takes a step by an atomic addition, reads the weights, writes its gradient into its
slot, and a notice makes the server apply it. Between hosts both sides need the file RANK_SECRET_FILE.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import rank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

WEIGHTS = 1024
BATCH = 128
RATE = 0.1
SLOTS = 64  # workers at a time
ERROR_MAX = 1e-3
TIMEOUT = 20

KEYS, SLOT, GRADIENT, APPLIED = range(4)  # tags


def truth() -> Vector:
    """Get the weights that the training finds."""
    return np.random.default_rng(1).standard_normal(WEIGHTS)


def batch_gradient(step: int, weights: Vector) -> Vector:
    inputs = np.random.default_rng(1000 + step).standard_normal((BATCH, WEIGHTS))
    gradient: Vector = inputs.T @ (inputs @ (weights - truth())) / BATCH
    return gradient


# ---------------------------------------------------------------------------------------------------------- server


@dataclass
class Row:
    """A line of the table: what one worker did."""

    pid: int | None
    steps: int = 0
    end: str = "connected"


class Server:
    def __init__(self, context: rank.Context, steps: int) -> None:
        self.steps = steps
        self.weights = np.zeros(WEIGHTS)
        self.counter = np.zeros(1, np.int64)
        self.slots = np.zeros((SLOTS, WEIGHTS))
        self.memories = [
            context.register(self.weights, access=rank.ACCESS_READ),
            context.register(self.counter),
            context.register(self.slots, access=rank.ACCESS_WRITE),
        ]
        self.keys = context.keys(self.memories)
        self.free = list(range(SLOTS))
        self.lock = threading.Lock()  # guards weights and free
        self.rows: list[Row] = []
        self.threads: list[threading.Thread] = []

    def add(self, conn: rank.Connection) -> None:
        self.threads.append(threading.Thread(target=self.serve, args=(conn,)))
        self.threads[-1].start()

    def serve(self, conn: rank.Connection) -> None:
        """Apply the gradients of one worker until it leaves or dies."""
        row = Row(conn.info()["pid"])
        with self.lock:
            self.rows.append(row)
            slot = self.free.pop()
        try:
            conn.send(self.keys, tag=KEYS)
            conn.send(np.array([slot, self.steps]), tag=SLOT)
            step = np.zeros(1, np.int64)
            while True:
                conn.recv(step, tag=GRADIENT)
                with self.lock:
                    self.weights -= RATE * self.slots[slot]
                row.steps += 1
                conn.send(step, tag=APPLIED)
        except rank.ClosedError:
            row.end = "left"
        except rank.PeerDeadError:
            row.end = "died"
        with self.lock:
            self.free.append(slot)

    def running(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)

    def finished(self) -> bool:
        return bool(self.counter[0] >= self.steps) and not self.running()

    def table(self) -> None:
        print(f"{'worker':>8} {'steps':>8}  end")
        for row in self.rows:
            print(f"{row.pid or '-':>8} {row.steps:8}  {row.end}")


def accept_until(server: Server, listener: rank.Listener) -> None:
    while not server.finished():
        try:
            server.add(listener.accept(timeout=0.05))  # its thread alone keeps the connection, and ends it
        except rank.TimedOutError:
            pass


def demonstrate(server: Server, listener: rank.Listener) -> list[int]:
    """Start three workers, of which the last one gets its slot late. Returns how they ended."""
    command = [sys.executable, __file__, "--connect", listener.address]
    workers, conns = [], []
    for options in ([], ["--leave", "20"], ["--die", "10"]):
        workers.append(subprocess.Popen([*command, *options]))
        conns.append(listener.accept(timeout=TIMEOUT))
    server.add(conns[0])
    server.add(conns[1])
    while server.counter[0] < server.steps // 4 and server.running():
        server.threads[0].join(0.01)
    server.add(conns[2])
    for thread in server.threads:
        thread.join()
    return [worker.wait(TIMEOUT) for worker in workers]


def serve(address: str, steps: int, demo: bool) -> None:
    with rank.Context("server", progress_thread=True) as context:
        listener = context.listen(address, max_conns=SLOTS)
        print("listening on", listener.address, flush=True)
        server = Server(context, steps)
        if demo:
            ends = demonstrate(server, listener)
            assert ends == [0, 0, -signal.SIGKILL], ends
            assert [row.end for row in server.rows] == ["left", "left", "died"]
        else:
            accept_until(server, listener)
        server.table()
        applied = sum(row.steps for row in server.rows)
        lost = sum(row.end == "died" for row in server.rows)
        assert steps - lost <= applied <= steps, (steps, applied, lost)
        error = float(np.linalg.norm(server.weights - truth()) / np.linalg.norm(truth()))
        print(f"{applied} of {steps} steps are applied; the relative error of the weights is {error:.1e}")
        if not error < ERROR_MAX:
            sys.exit("parameter_server.py: the weights are wrong")


# ---------------------------------------------------------------------------------------------------------- worker


def work(address: str, leave: int, die: int) -> None:
    with rank.Context("worker", progress_thread=True) as context, context.connect(address) as conn:
        weights_there, counter, slots = conn.open_keys(conn.recv_bytes(tag=KEYS))
        place = np.zeros(2, np.int64)
        conn.recv(place, tag=SLOT)
        slot, steps = place.tolist()
        weights, gradient = np.zeros(WEIGHTS), np.zeros(WEIGHTS)
        number = np.zeros(1, np.int64)
        count = 0
        while (leave == 0 or count < leave) and (step := counter.fetch_add(1)) < steps:
            count += 1
            if count == die:
                os.kill(os.getpid(), signal.SIGKILL)
            weights_there.get(weights)
            gradient[:] = batch_gradient(step, weights)
            number[0] = step
            conn.write([(gradient, slots, slot * gradient.nbytes)], notice=(GRADIENT, number), timeout=TIMEOUT)
            conn.recv(number, tag=APPLIED, timeout=TIMEOUT)


def main() -> None:
    parser = argparse.ArgumentParser(description="A parameter server. Workers come and go.")
    parser.add_argument("--listen", metavar="ADDRESS", help="serve, and wait for workers")
    parser.add_argument("--connect", metavar="ADDRESS", help="work for the server at ADDRESS")
    parser.add_argument("--steps", type=int, default=400, help="number of steps (default: 400)")
    parser.add_argument("--leave", type=int, default=0, metavar="N", help="leave after N steps")
    parser.add_argument("--die", type=int, default=0, metavar="N", help="kill this worker in its Nth step")
    options = parser.parse_args()
    if options.connect:
        work(options.connect, options.leave, options.die)
    else:
        serve(options.listen or "127.0.0.1:0", options.steps, demo=not options.listen)


if __name__ == "__main__":
    main()
