#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""network.py tcp|udp ONE_IN SEED TARGET: a bad network between clients and a
server, in both directions.  Prints the port that it listens on; at SIGTERM, how
much harm of each kind it has done."""
import asyncio
import random
import signal
import sys
import time

PEACE_S = 0.25
LATE_S = (0.05, 0.6)


class TcpNetwork:
    """One piece in ONE_IN is lost, or half of it is; then the connection breaks.
    After that all pieces pass for a while, so that a client that connects
    again, and gets everything that has queued up, makes progress."""

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

    async def listen(self):
        server = await asyncio.start_server(self.connect, "127.0.0.1", 0)
        return server.sockets[0]

    def harm(self):
        return f"swallowed {self.swallowed} torn {self.torn}"


class UdpNetwork(asyncio.DatagramProtocol):
    """Of the datagrams one in ONE_IN is lost, as many arrive twice, and as many
    late, when later ones have overtaken them.  Makes a socket to the server for
    each client, so that the server can tell them apart."""

    def __init__(self, one_in, seed, target):
        self.chance = random.Random(seed)
        self.target, self.one_in = ("127.0.0.1", target), one_in
        self.lost = self.repeated = self.delayed = 0
        self.ways = {}

    def suffer(self, send, datagram):
        """Has a datagram sent: now, later, twice or never."""
        luck = self.chance.randrange(self.one_in)
        if luck == 0:
            self.lost += 1
            return
        delays = [0]
        if luck == 1:
            self.repeated += 1
            delays.append(self.chance.uniform(*LATE_S))
        elif luck == 2:
            self.delayed += 1
            delays = [self.chance.uniform(*LATE_S)]
        for delay in delays:
            asyncio.get_running_loop().call_later(delay, send, datagram)

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, datagram, client):
        asyncio.ensure_future(self.to_server(datagram, client))

    async def to_server(self, datagram, client):
        if client not in self.ways:
            self.ways[client] = asyncio.ensure_future(
                asyncio.get_running_loop().create_datagram_endpoint(
                    lambda: Way(self, client), remote_addr=self.target,
                    local_addr=(client[0], 0)))
        way, _ = await self.ways[client]
        self.suffer(way.sendto, datagram)

    def to_client(self, datagram, client):
        self.suffer(lambda d: self.transport.sendto(d, client), datagram)

    async def listen(self):
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: self, local_addr=("127.0.0.1", 0))
        return transport.get_extra_info("socket")

    def harm(self):
        return (f"lost {self.lost} repeated {self.repeated} "
                f"delayed {self.delayed}")


class Way(asyncio.DatagramProtocol):
    """A client's socket to the server"""

    def __init__(self, network, client):
        self.network, self.client = network, client

    def datagram_received(self, datagram, _):
        self.network.to_client(datagram, self.client)

    def error_received(self, error):
        """The server is down: what was sent is lost."""


async def main(network, *numbers):
    network = {"tcp": TcpNetwork, "udp": UdpNetwork}[network](
        *map(int, numbers))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    link = await network.listen()
    print(link.getsockname()[1], flush=True)
    await stop.wait()
    print(network.harm())


asyncio.run(main(*sys.argv[1:]))
