#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""proxy.py N SEED TARGET: a bad network between MQTT clients and a broker.

Of the acknowledgements that pass (PUBACK, PUBREC, PUBREL, PUBCOMP, in both
directions) one in N is swallowed, of the messages one in 2 N is torn; then the
connection breaks.  After that there is peace for a while, so that who connects
again, and gets all at once what has piled up, gets somewhere.  Prints the port
that it listens at; at SIGTERM, how much it has swallowed and torn."""
import asyncio
import random
import signal
import sys
import time

PUBLISH, PUBACK, PUBCOMP = 3, 4, 7
PEACE_S = 0.25


async def read_packet(reader):
    packet = await reader.readexactly(2)
    while packet[-1] & 128:
        packet += await reader.readexactly(1)
    size = sum((b & 127) << 7 * i for i, b in enumerate(packet[1:]))
    return packet + await reader.readexactly(size)


class Network:
    def __init__(self, one_in, seed, target):
        self.one_in, self.target = one_in, target
        self.chance = random.Random(seed)
        self.swallowed = self.torn = 0
        self.peace_until = 0

    def strikes(self, one_in):
        return self.chance.randrange(one_in) == 0

    def suffer(self, packet):
        """What of a packet gets through."""
        kind = packet[0] >> 4
        if time.monotonic() < self.peace_until:
            return packet
        if PUBACK <= kind <= PUBCOMP and self.strikes(self.one_in):
            self.swallowed += 1
            through = b""
        elif kind == PUBLISH and self.strikes(2 * self.one_in):
            self.torn += 1
            through = packet[:len(packet) // 2]
        else:
            return packet
        self.peace_until = time.monotonic() + PEACE_S
        return through

    async def pump(self, reader, writer):
        """One direction of a connection, until it breaks."""
        try:
            packet = through = b""
            while through == packet:
                packet = await read_packet(reader)
                through = self.suffer(packet)
                writer.write(through)
                await writer.drain()
        except (EOFError, OSError):
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
