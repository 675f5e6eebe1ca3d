#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""refusing.py [all | once | busy | each]: an MQTT 5 broker that refuses.
Prints its port first.

    (none)   takes every client, and refuses every subscription (0x87)
    all      refuses every client, and prints a line for each
    once     takes the first client until that publishes; then the next one, but
             not its subscription: prints what that publishes in a while, or
             "nothing"
    busy     takes every client, and answers each command that it must wait;
             prints a line for each
    each     takes every client, and refuses each command (0x87)
"""
import socketserver
import sys


MODE = "".join(sys.argv[1:])


def text(words):
    return len(words).to_bytes(2, "big") + words


def busy(body):
    """The PUBACK of a command with QoS 1, and an answer: in 10 s"""
    end = 2 + int.from_bytes(body[:2], "big")
    properties = body[end + 3:end + 3 + body[end + 2]] + b"".join(
        b"\x26" + text(name) + text(value) for name, value in
        ((b"reason", b"0x97"), (b"retry-after-ms", b"10000")))
    answer = (text(body[2:end].replace(b"command", b"answer")) +
              bytes([len(properties)]) + properties)
    return (b"\x40\x02" + body[end:end + 2] +
            b"\x30" + bytes([len(answer)]) + answer)


class Client(socketserver.StreamRequestHandler):
    served = False

    def packet(self):
        """Type and body of the next one"""
        kind, size, shift = self.rfile.read(1), 0, 0
        while kind:
            byte = self.rfile.read(1)[0]
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        return kind and kind[0] >> 4, self.rfile.read(size)

    def handle(self):
        while True:
            try:
                kind, body = self.packet()
            except TimeoutError:
                print("nothing", flush=True)
                return
            if not kind:
                return
            if kind == 1:                                   # CONNECT
                if MODE == "all":
                    self.wfile.write(b"\x20\x03\x00\x87\x00")
                    print("refused", flush=True)
                    return
                self.wfile.write(b"\x20\x03\x00\x00\x00")
            elif kind == 8 and MODE == "once":              # SUBSCRIBE
                if Client.served:
                    self.connection.settimeout(2)
                else:
                    self.wfile.write(b"\x90\x04" + body[:2] + b"\x00\x00")
            elif kind == 8:
                self.wfile.write(b"\x90\x04" + body[:2] + b"\x00" +
                                 (b"\x00" if MODE in ("busy", "each")
                                  else b"\x87"))
            elif kind == 3 and MODE == "once":              # PUBLISH
                if Client.served:
                    print("published", flush=True)
                Client.served = True
                return
            elif kind == 3 and MODE == "busy":
                self.wfile.write(busy(body))
                print("published", flush=True)
            elif kind == 3 and MODE == "each":
                end = 2 + int.from_bytes(body[:2], "big")
                self.wfile.write(b"\x40\x03" + body[end:end + 2] + b"\x87")
            elif kind == 12:                                # PINGREQ
                self.wfile.write(b"\xd0\x00")


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Client) as broker:
    broker.daemon_threads = True
    print(broker.server_address[1], flush=True)
    broker.serve_forever()
