#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""refusing.py [all | once]: an MQTT 5 broker that takes every client and
refuses every subscription (0x87); or every client, a line for each; or takes
the first alone, until that publishes, and listens for a while to what the next
one publishes without a subscription: prints "nothing" if that is nothing.
Prints its port first."""
import socketserver
import sys


MODE = "".join(sys.argv[1:])


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
                self.wfile.write(b"\x90\x04" + body[:2] + b"\x00\x87")
            elif kind == 3 and MODE == "once":              # PUBLISH
                if Client.served:
                    print("published", flush=True)
                Client.served = True
                return
            elif kind == 12:                                # PINGREQ
                self.wfile.write(b"\xd0\x00")


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Client) as broker:
    broker.daemon_threads = True
    print(broker.server_address[1], flush=True)
    broker.serve_forever()
