#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Read a paged cache of keys and values from another process, in lists.

    python3 kv_cache.py                          # prefill here, two decode processes; one of them is killed
    python3 kv_cache.py --listen :7471           # prefill, which waits for decode processes of any host
    python3 kv_cache.py --connect hosta:7471     # decode

The prefill process has one memory a layer, in pages. For a prompt it takes free pages, fills them in all layers and sends
their numbers to a decode process. The decode process reads them in one list. The notice of the list frees the pages at the
prefill process. When a decode process dies, its pages are free at once, and its prompts go to the others. Between hosts both
sides need the file RANK_SECRET_FILE.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
from array import array
from collections import deque
from dataclasses import dataclass

import rank

LAYERS = 64
PAGES = 48  # of each layer
PAGE = 4096  # bytes
PROMPT_PAGES = 8  # at most
LENT = 3  # prompts with pages that one decode process reads at a time
TIMEOUT = 20

KEYS, READY, FREED, DONE, END = range(5)  # tags


def block(prompt: int, layer: int, place: int) -> bytes:
    """Compute the keys and values of one page in one layer."""
    digest = hashlib.blake2b(array("q", [prompt, layer, place])).digest()
    return digest * (PAGE // len(digest))


def prompt_pages(prompt: int) -> int:
    return 1 + prompt % PROMPT_PAGES


# --------------------------------------------------------------------------------------------------------- prefill


@dataclass
class Row:
    """A line of the table: what one decode process did."""

    pid: int | None
    prompts: int = 0
    pages: int = 0
    freed: int = 0
    end: str = "connected"


class Prefill:
    def __init__(self, context: rank.Context, prompts: int) -> None:
        self.layers = [context.alloc(PAGES * PAGE, access=rank.ACCESS_READ) for _ in range(LAYERS)]
        self.keys = context.keys(self.layers)
        self.free = random.Random(1).sample(range(PAGES), PAGES)
        self.queue = deque(range(prompts))
        self.unfinished = prompts
        self.changed = threading.Condition()  # guards what is above
        self.rows: list[Row] = []

    def admit(self, wait: bool) -> tuple[int, list[int]] | None:
        """Take the next prompt, and pages for it. Returns None if there is none; with wait: if all are finished."""
        with self.changed:
            while not self.queue or len(self.free) < prompt_pages(self.queue[0]):
                if not wait or not self.unfinished:
                    return None
                self.changed.wait()
            prompt = self.queue.popleft()
            return prompt, [self.free.pop() for _ in range(prompt_pages(prompt))]

    def give_back(self, pages: list[int], prompts: set[int] | None = None, finished: int = 0) -> None:
        with self.changed:
            self.free += pages
            self.queue.extend(prompts or ())
            self.unfinished -= finished
            self.changed.notify_all()

    def fill(self, prompt: int, pages: list[int]) -> None:
        for layer, memory in enumerate(self.layers):
            with memoryview(memory) as view:
                for place, page in enumerate(pages):
                    view[page * PAGE : (page + 1) * PAGE] = block(prompt, layer, place)

    def serve(self, conn: rank.Connection) -> None:
        """Serve one decode process until all prompts are finished, or it dies."""
        row = Row(conn.info()["pid"])
        self.rows.append(row)
        lent: dict[int, list[int]] = {}  # pages that the decode process reads, by prompt
        open_prompts: set[int] = set()
        try:
            conn.send(self.keys, tag=KEYS)
            while self.serve_step(conn, row, lent, open_prompts):
                pass
            conn.send(b"", tag=END)
            conn.disconnect(timeout=TIMEOUT)
            row.end = "done"
        except (rank.PeerDeadError, rank.ClosedError):  # it no longer reads
            row.end = "died"
        self.give_back([page for pages in lent.values() for page in pages], open_prompts)

    def serve_step(self, conn: rank.Connection, row: Row, lent: dict[int, list[int]], open_prompts: set[int]) -> bool:
        while len(lent) < LENT and (admitted := self.admit(wait=not open_prompts)):
            prompt, lent[prompt] = admitted
            open_prompts.add(prompt)
            self.fill(prompt, lent[prompt])
            conn.send(array("q", [prompt, *lent[prompt]]), tag=READY)
        if not open_prompts:
            return False
        word = array("q", [0])
        envelope = conn.recv(word)
        if envelope.tag == FREED:
            pages = lent.pop(word[0])
            row.pages += len(pages)
            row.freed += 1
            self.give_back(pages)
        else:
            open_prompts.remove(word[0])
            row.prompts += 1
            self.give_back([], finished=1)
        return True

    def table(self) -> None:
        print(f"{'decode':>8} {'prompts':>8} {'pages':>8} {'blocks':>8} {'MiB':>8} {'notices':>8}  end")
        for row in self.rows:
            print(f"{row.pid or '-':>8} {row.prompts:8} {row.pages:8} {row.pages * LAYERS:8} "
                  f"{row.pages * LAYERS * PAGE / 2**20:8.1f} {row.freed:8}  {row.end}")


def accept_all(state: Prefill, listener: rank.Listener, children: list[subprocess.Popen[bytes]]) -> list[threading.Thread]:
    """Accept decode processes until all prompts are finished. Returns the threads that serve them."""
    conns = [listener.accept(timeout=TIMEOUT) for _ in children]  # the first one does not start before they all are here
    threads = [threading.Thread(target=state.serve, args=(conn,)) for conn in conns]
    for thread in threads:
        thread.start()
    while state.unfinished:
        try:
            conn = listener.accept(timeout=0.1)
        except rank.TimedOutError:
            if children and not any(thread.is_alive() for thread in threads) and state.unfinished:
                sys.exit(f"kv_cache.py: no decode process is left, and {state.unfinished} prompts")
            continue
        threads.append(threading.Thread(target=state.serve, args=(conn,)))
        threads[-1].start()
    return threads


def prefill(address: str, prompts: int, demo: bool) -> None:
    with rank.Context("prefill", progress_thread=True) as context:
        listener = context.listen(address)
        print("listening on", listener.address, flush=True)
        children = []
        if demo:
            command = [sys.executable, __file__, "--connect", listener.address]
            children = [subprocess.Popen([*command, *options]) for options in ([], ["--die", "3"])]
        state = Prefill(context, prompts)
        threads = accept_all(state, listener, children)
        for thread in threads:
            thread.join()
        state.table()
        ends = [child.wait(TIMEOUT) for child in children]
        if demo:
            assert ends == [0, -signal.SIGKILL], ends
            assert sorted(row.end for row in state.rows) == ["died", "done"]
        assert sum(row.prompts for row in state.rows) == prompts
        assert sorted(state.free) == list(range(PAGES))
        print(f"{prompts} prompts are decoded, and all pages are free")


# ---------------------------------------------------------------------------------------------------------- decode


class Decode:
    def __init__(self, conn: rank.Connection) -> None:
        self.conn = conn
        self.layers = conn.open_keys(conn.recv_bytes(tag=KEYS, timeout=TIMEOUT))
        self.cache = [bytearray(PROMPT_PAGES * PAGE) for _ in self.layers]

    def read(self, prompt: int, pages: list[int]) -> rank.Request:
        """Start to read pages of all layers. The notice frees them at the other side."""
        rows = array("q")
        for layer in range(len(self.layers)):
            for place, page in enumerate(pages):
                rows.extend((place * PAGE, PAGE, page * PAGE, layer))
        blocks = memoryview(rows).cast("B").cast("q", (len(rows) // 4, 4))
        return self.conn.iread(blocks, notice=(FREED, array("q", [prompt])), local=self.cache, remote=self.layers)

    def check(self, prompt: int, pages: list[int]) -> None:
        for layer, cache in enumerate(self.cache):
            for place in range(len(pages)):
                if cache[place * PAGE : (place + 1) * PAGE] != block(prompt, layer, place):
                    sys.exit(f"kv_cache.py: prompt {prompt}: page {place} of layer {layer} is damaged")

    def run(self, die: int) -> None:
        """Decode prompts until the other side ends, or kill this process in the die-th read."""
        count = 0
        words = array("q", [0] * (1 + PROMPT_PAGES))
        while (envelope := self.conn.recv(words)).tag == READY:
            prompt, *pages = words[: envelope.bytes // words.itemsize]
            request = self.read(prompt, pages)
            count += 1
            if count == die:
                os.kill(os.getpid(), signal.SIGKILL)
            request.wait(timeout=TIMEOUT)
            self.check(prompt, pages)
            self.conn.send(array("q", [prompt]), tag=DONE)


def decode(address: str, die: int) -> None:
    with rank.Context("decode", progress_thread=True) as context, context.connect(address) as conn:
        Decode(conn).run(die)


def main() -> None:
    parser = argparse.ArgumentParser(description="A paged cache of keys and values between processes.")
    parser.add_argument("--listen", metavar="ADDRESS", help="prefill, and wait for decode processes")
    parser.add_argument("--connect", metavar="ADDRESS", help="decode, for the prefill process at ADDRESS")
    parser.add_argument("--prompts", type=int, default=40, help="number of prompts (default: 40)")
    parser.add_argument("--die", type=int, default=0, metavar="N", help="kill this decode process in its Nth read")
    options = parser.parse_args()
    if options.connect:
        decode(options.connect, options.die)
    else:
        prefill(options.listen or "127.0.0.1:0", options.prompts, demo=not options.listen)


if __name__ == "__main__":
    main()
