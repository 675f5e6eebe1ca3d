#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""tcp.py N SEED TARGET: a bad network between MQTT clients and a broker.

One piece in N, in both directions, is lost, or half of it is; then the
connection breaks.  After that all pieces pass for a while, so that a client
that connects again, and gets everything that has queued up, makes progress.
Prints the port that it listens on; at SIGTERM, how many pieces it has swallowed
(lost) and torn (half lost)."""
import asyncio
import random
import signal
import sys
import time

PEACE_S = 0.25


class Network:
    def __init__(self, one_in, seed, target):
        self.one_in, self.target = one_in, target
        self.chance = random.Random(seed)
        self.swallowed = self.torn = 0
        self.peace_until = 0

    def suffer(self, piece):
        """What of it gets through."""
        now = time.monotonic()
        if now < self.peace_until or self.chance.randrange(self.one_in):
            return piece
        self.peace_until = now + PEACE_S
        if self.chance.randrange(2):
            self.torn += 1
            return piece[:len(piece) // 2]
        self.swallowed += 1
        return b""

    async def pump(self, reader, writer):
        """One direction of a connection, until it breaks."""
        try:
            while piece := await reader.read(65536):
                through = self.suffer(piece)
                writer.write(through)
                await writer.drain()
                if through != piece:
                    break
        except OSError:
            pass

    async def connect(self, reader, writer):
        try:
            broker = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        ways = [asyncio.ensure_future(self.pump(reader, broker[1])),
                asyncio.ensure_future(self.pump(broker[0], writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        writer.close()
        broker[1].close()


async def main(one_in, seed, target):
    network = Network(one_in, seed, target)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(network.connect, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    print("swallowed", network.swallowed, "torn", network.torn)


asyncio.run(main(*map(int, sys.argv[1:4])))
