#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""udp.py ONE_IN SEED TARGET: a bad network between UDP clients and a server.

Of the datagrams in each direction one in ONE_IN is lost, as many arrive twice,
and as many late, when later ones have overtaken them.  Prints the port that
it listens at; at SIGTERM, how many it has lost, repeated and delayed."""
import asyncio
import random
import signal
import sys

LATE_S = (0.05, 0.6)


class Network(asyncio.DatagramProtocol):
    """What clients send to; makes a socket to the server for each of them, so
    that the server can tell them apart."""

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
                    lambda: Way(self, client), remote_addr=self.target))
        way, _ = await self.ways[client]
        self.suffer(way.sendto, datagram)

    def to_client(self, datagram, client):
        self.suffer(lambda d: self.transport.sendto(d, client), datagram)


class Way(asyncio.DatagramProtocol):
    """A client's socket to the server"""

    def __init__(self, network, client):
        self.network, self.client = network, client

    def datagram_received(self, datagram, _):
        self.network.to_client(datagram, self.client)

    def error_received(self, error):
        """The server is down: what was sent is lost."""


async def main(one_in, seed, target):
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    transport, network = await loop.create_datagram_endpoint(
        lambda: Network(one_in, seed, target), local_addr=("127.0.0.1", 0))
    print(transport.get_extra_info("sockname")[1], flush=True)
    await stop.wait()
    print("lost", network.lost, "repeated", network.repeated, "delayed",
          network.delayed)


asyncio.run(main(*map(int, sys.argv[1:4])))
