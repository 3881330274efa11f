# SPDX-License-Identifier: BSD-3-Clause
"""nixl_peer: run the cases of peer_link on NIXL, in host memory by UCX.

Transfers are prepared once (initialize_xfer), and posted and polled in the timed part. Notices carry the words and pings.
NIXL_PEER_THREAD=1 gives the agent its progress thread; without it, waiting calls poll.
NIXL_UCX_SGL_ENABLE=1 is NIXL's own switch for lists of many blocks.
"""
import os, struct, sys, time

os.environ.setdefault('NIXL_LOG_LEVEL', 'ERROR')
import numpy
from nixl_cu13._api import nixl_agent, nixl_agent_config

import peer_link

THREAD = os.environ.get('NIXL_PEER_THREAD', '0') == '1'


def agent_new(name):
    return nixl_agent(name, nixl_agent_config(enable_prog_thread=THREAD))


class NixlPeer(peer_link.Peer):
    def __init__(self, *args):
        super().__init__(*args)
        self.agent = agent_new('initiator' if self.first else 'target')
        self.registered = [self.agent.register_memory([(a.ctypes.data, a.nbytes, 0, '')], 'DRAM') for a in (self.local, self.target)]
        self.link.put(struct.pack('<q', self.target.ctypes.data) + self.agent.get_agent_metadata())
        theirs = self.link.get()
        self.remote, = struct.unpack('<q', theirs[:8])
        self.name = self.agent.add_remote_agent(theirs[8:])
        if isinstance(self.name, bytes):
            self.name = self.name.decode()
        self.waiting = []
        self.handle = None

    def put_word(self, word):
        self.agent.send_notif(self.name, struct.pack('<q', word))

    def notice(self):
        while not self.waiting:
            for messages in self.agent.get_new_notifs().values():
                self.waiting.extend(messages)
        return self.waiting.pop(0)

    def get_word(self):
        return struct.unpack('<q', self.notice())[0]

    def prepare(self, case):
        index = numpy.arange(case.blocks, dtype=numpy.uint64)
        size, device = numpy.full(case.blocks, case.bytes, numpy.uint64), numpy.zeros(case.blocks, numpy.uint64)
        here = numpy.stack([self.local.ctypes.data + index * case.bytes, size, device], axis=1).astype(numpy.uint64)
        there = numpy.stack([self.remote + case.place.astype(numpy.uint64) * (2 * case.bytes), size, device], axis=1).astype(numpy.uint64)
        agent = self.agent
        if self.handle:
            agent.release_xfer_handle(self.handle)
        handle = self.handle = agent.initialize_xfer(
            case.op.upper(), agent.get_xfer_descs(here, 'DRAM'), agent.get_xfer_descs(there, 'DRAM'), self.name)

        def act():
            state = agent.transfer(handle)
            while state == 'PROC':
                state = agent.check_xfer_state(handle)
            if state != 'DONE':
                sys.exit('nixl: a transfer ended with ' + state)
        return act

    def ping_round(self, messages):
        wrong, send, name, notice = 0, self.agent.send_notif, self.name, self.notice
        for message in messages:
            send(name, message)
            wrong += notice() != message
        return wrong

    def echo_round(self, n, _):
        send, name, notice = self.agent.send_notif, self.name, self.notice
        for _ in range(n):
            send(name, notice())

    # Memories of which the other side learns later.
    def keys_first(self, case):
        t = time.perf_counter()
        self.put_word(1)
        self.agent.add_remote_agent(self.link.get())
        t = time.perf_counter() - t
        where = struct.unpack('<q', self.link.get())[0]
        act = self.prepare_one(where, case.bytes)
        act()
        self.put_word(2)
        return t, int((self.local[:case.bytes] != 77).any())

    def prepare_one(self, where, size):
        agent = self.agent
        handle = agent.initialize_xfer('READ', agent.get_xfer_descs([(self.local.ctypes.data, size, 0)], 'DRAM'),
                                       agent.get_xfer_descs([(where, size, 0)], 'DRAM'), self.name)

        def act():
            state = agent.transfer(handle)
            while state == 'PROC':
                state = agent.check_xfer_state(handle)
            agent.release_xfer_handle(handle)
        return act

    def keys_second(self, case):
        # Pages between them: neighbours would merge.
        all_ = numpy.full((case.blocks, 2 * case.bytes), 77, dtype=numpy.uint8)
        rows = [(all_[i].ctypes.data, case.bytes, 0, '') for i in range(case.blocks)]
        self.get_word()
        descs = self.agent.register_memory(rows, 'DRAM')
        self.link.put(self.agent.get_partial_agent_metadata(descs, True, ['UCX']))
        self.link.put(struct.pack('<q', all_[case.blocks - 1].ctypes.data))
        self.get_word()
        self.agent.deregister_memory(descs)

    # Two more agents, until a notice has come back.
    def connect_first(self, case):
        t = time.perf_counter()
        self.link.put(b'')
        agent = agent_new('second initiator')
        self.link.put(agent.get_agent_metadata())
        name = agent.add_remote_agent(self.link.get())
        agent.send_notif(name, b'x')
        while not agent.get_new_notifs():
            pass
        t = time.perf_counter() - t
        self.link.put(b'')
        self.link.get()
        agent.remove_remote_agent(name)
        return t, 0

    def connect_second(self, case):
        self.link.get()
        agent = agent_new('second target')
        self.link.put(agent.get_agent_metadata())
        name = agent.add_remote_agent(self.link.get())
        while not agent.get_new_notifs():
            pass
        agent.send_notif(name, b'x')
        self.link.get()
        self.link.put(b'')
        agent.remove_remote_agent(name)


peer_link.main(NixlPeer)
sys.stdout.flush()
os._exit(0)  # the agent's end is not part of a case
