#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""broker.py WHAT ...: an MQTT 5 broker.  Prints the port that it listens on,
then what its clients have done.

For one client:

"round CLOCK"   a daemon with QoS 2: its command x comes twice, over two
                connections, and is released on the second; 25 hours later, for
                which it sets the file CLOCK ahead, a third begins, and y has
                the message id that x had: which keys are answered
"slow CLOCK QOS"
                a sender: takes its messages, and acknowledges none before
                it has set CLOCK 1000 s ahead: for how long the next may be kept

For one client after the other; it is to be killed.  It refuses (0x87)

"all"           every client, with a line for each
"subscriptions" every subscription
"each"          each command
"qos"           nothing, but takes QoS 0 alone
"busy"          no command, but answers each that it must wait, with a line
"once"          takes the first client until that publishes; then the next one,
                but not its subscription: what that publishes in a while, or
                nothing"""
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../servers"))
from ahead import set_ahead

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, _, _, PINGREQ, PINGRESP = range(8, 14)
# Properties, and how long the values of those are that have a fixed length
EXPIRY, CORRELATION, RECEIVE_MAXIMUM, USER = 0x02, 0x09, 0x21, 0x26
MAXIMUM_QOS = 0x24
SIZES = {EXPIRY: 4, 0x01: 1, 0x22: 2}
REFUSED = 0x87
COMMANDS = b"pump/panel/command"


def number(at, data):
    """A variable byte integer: its value, and where it ends"""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def text(data):
    return struct.pack(">H", len(data)) + data


def properties(at, data):
    """Those that begin there, and where they end"""
    size, at = number(at, data)
    end, all_of_them = at + size, {}
    while at < end:
        kind = data[at]
        at += 1
        if kind in SIZES:
            size = SIZES[kind]
        else:
            size = 2 + int.from_bytes(data[at:at + 2], "big")
            if kind == USER:
                size += 2 + int.from_bytes(data[at + size:at + size + 2], "big")
        value = data[at:at + size]
        all_of_them[kind] = value if kind in SIZES else value[2:]
        at += size
    return all_of_them, end


class Client:
    """A connection of the client.  It may have one message under way."""

    def __init__(self, listener, session=0, reason=0,
                 given=(RECEIVE_MAXIMUM, 0, 1)):
        self.link, _ = listener.accept()
        self.link.settimeout(10)
        self.wait_for(CONNECT)
        self.send(CONNACK, bytes([session, reason, len(given), *given]))

    def subscribed(self, body, reason):
        self.send(SUBACK, body[:2] + bytes([0, reason]))
        return self

    def subscribe(self):
        body = self.wait_for(SUBSCRIBE)
        return self.subscribed(body, body[-1] & 3)

    def send(self, kind, body, flags=0):
        self.link.sendall(bytes([kind << 4 | flags, len(body)]) + body)

    def receive(self):
        """A packet: kind, flags, body"""
        head = self.link.recv(1)
        if not head:
            raise ConnectionError("the client has closed the connection")
        size = b""
        while not size or size[-1] > 127:
            size += self.link.recv(1)
        size, _ = number(0, size)
        body = self.link.recv(size, socket.MSG_WAITALL) if size else b""
        if head[0] >> 4 == PINGREQ:
            self.send(PINGRESP, b"")
        return head[0] >> 4, head[0] & 15, body

    def wait_for(self, wanted):
        kind = None
        while kind != wanted:
            kind, _, body = self.receive()
        return body

    def take(self):
        """A message: its id, and for how many seconds it may be kept"""
        body = self.wait_for(PUBLISH)
        at = 2 + int.from_bytes(body[:2], "big")
        given, _ = properties(at + 2, body)
        return body[at:at + 2], int.from_bytes(given[EXPIRY], "big")

    def command(self, key, again):
        """With QoS 2 and message id 1, until it is received"""
        given = bytes([CORRELATION]) + text(key)
        self.send(PUBLISH, text(COMMANDS) + b"\0\1" + bytes([len(given)]) +
                  given + b"5", 4 | again << 3)
        self.wait_for(PUBREC)

    def release(self):
        """Until the answer to some command: its key"""
        self.send(PUBREL, b"\0\1", 2)
        return self.answer()

    def answer(self):
        body = self.wait_for(PUBLISH)
        given, _ = properties(2 + int.from_bytes(body[:2], "big"), body)
        return given[CORRELATION].decode()


def come_round(listener, clock):
    client = Client(listener).subscribe()
    client.command(b"x", 0)
    client.link.close()
    client = Client(listener, 1).subscribe()
    client.command(b"x", 1)
    print(client.release())
    set_ahead(clock, 25 * 3600)
    client.link.close()
    client = Client(listener, 1).subscribe()
    client.command(b"y", 0)
    print(client.release())


def slow(listener, clock, qos):
    """The sender has 2000 s, and one message may be under way."""
    client = Client(listener).subscribe()
    taken = [client.take()]
    client.link.settimeout(0.5)
    try:
        while True:
            taken.append(client.take())
    except TimeoutError:
        pass
    set_ahead(clock, 1000)
    client.link.settimeout(10)
    client.send(PUBACK if qos == "1" else PUBREC, taken[0][0])
    if qos == "2":
        client.send(PUBCOMP, client.wait_for(PUBREL))
    _, kept_s = client.take()
    print("kept for as long as there is left" if kept_s <= 1000
          else f"kept for {kept_s} s, {len(taken)} before it")


def busy(client, body):
    """Takes a command with QoS 1, and answers that it must wait: for 10 s"""
    end = 2 + int.from_bytes(body[:2], "big")
    given = body[end + 3:end + 3 + body[end + 2]] + b"".join(
        bytes([USER]) + text(name) + text(value) for name, value in
        ((b"reason", b"0x97"), (b"retry-after-ms", b"10000")))
    client.send(PUBACK, body[end:end + 2])
    client.send(PUBLISH, text(body[2:end].replace(b"command", b"answer")) +
                bytes([len(given)]) + given)


def refuse(listener, what, is_next):
    """A client, until it has gone; or, with "once", has published: True"""
    client = (Client(listener, given=(MAXIMUM_QOS, 0)) if what == "qos" else
              Client(listener, 0, REFUSED if what == "all" else 0))
    client.link.settimeout(None)
    with client.link:
        while what != "all":
            kind, _, body = client.receive()
            if kind == SUBSCRIBE and is_next:
                client.link.settimeout(2)
            elif kind == SUBSCRIBE:
                client.subscribed(body,
                                  REFUSED if what == "subscriptions" else 0)
            elif kind == PUBLISH and what == "once":
                if is_next:
                    print("published", flush=True)
                return True
            elif kind == PUBLISH and what == "busy":
                busy(client, body)
                print("published", flush=True)
            elif kind == PUBLISH:
                end = 2 + int.from_bytes(body[:2], "big")
                client.send(PUBACK, body[end:end + 2] + bytes([REFUSED]))
        print("refused", flush=True)


def refuse_all(listener, what):
    listener.settimeout(None)
    is_next = False
    while True:
        try:
            is_next = refuse(listener, what, is_next) or is_next
        except TimeoutError:
            print("nothing", flush=True)
        except ConnectionError:
            pass


def main(what, *words):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        print(listener.getsockname()[1], flush=True)
        if what in ("round", "slow"):
            {"round": come_round, "slow": slow}[what](listener, *words)
        else:
            refuse_all(listener, what)


main(*sys.argv[1:])
