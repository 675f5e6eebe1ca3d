#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""refusing.py [all]: an MQTT 5 broker that takes every client and refuses every
subscription (0x87); or every client, a line for each.  Prints its port."""
import socketserver
import sys


class Client(socketserver.StreamRequestHandler):
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
            kind, body = self.packet()
            if not kind:
                return
            if kind == 1:                                   # CONNECT
                if sys.argv[1:]:
                    self.wfile.write(b"\x20\x03\x00\x87\x00")
                    print("refused", flush=True)
                    return
                self.wfile.write(b"\x20\x03\x00\x00\x00")
            elif kind == 8:                                 # SUBSCRIBE
                self.wfile.write(b"\x90\x04" + body[:2] + b"\x00\x87")
            elif kind == 12:                                # PINGREQ
                self.wfile.write(b"\xd0\x00")


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Client) as broker:
    broker.daemon_threads = True
    print(broker.server_address[1], flush=True)
    broker.serve_forever()
