#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""messages.py PORT LINE...: CoAP messages as they are, one after the other.

A line is the port to send from (0: any) or ADDRESS:PORT, the message id, the
path, options as NUMBER=VALUE, and a payload, "-" for none.  Each message is sent
until something comes that is not an empty acknowledgement.  Prints code, option
Max-Age if there is one, and payload of each answer."""
import socket
import sys
import time

TOKEN = b"\xb4"


def option(delta, value):
    def nibble(n):
        if n < 13:
            return n, b""
        if n < 269:
            return 13, bytes([n - 13])
        return 14, (n - 269).to_bytes(2, "big")
    first, more = nibble(delta)
    second, longer = nibble(len(value))
    return bytes([first << 4 | second]) + more + longer + value


def encode(mid, path, options, payload):
    options = [(11, part) for part in path.split("/")] + options
    message, last = bytes([0x40 | len(TOKEN), 2]) + mid.to_bytes(2, "big"), 0
    message += TOKEN
    for number, value in sorted(options, key=lambda o: o[0]):
        message += option(number - last, value.encode())
        last = number
    return message + (b"\xff" + payload.encode() if payload != "-" else b"")


def decode(message):
    """Code, Max-Age and payload"""
    at, number, age = 4 + (message[0] & 15), 0, ""
    while at < len(message) and message[at] != 0xff:
        sizes = []
        first = message[at]
        at += 1
        for n in first >> 4, first & 15:
            extra = {13: 1, 14: 2}.get(n, 0)
            more = int.from_bytes(message[at:at + extra], "big")
            sizes.append(n if not extra else more + (13 if extra == 1 else 269))
            at += extra
        number += sizes[0]
        if number == 14:
            age = f" max-age {int.from_bytes(message[at:at + sizes[1]], 'big')}"
        at += sizes[1]
    code = f"{message[1] >> 5}.{message[1] & 31:02}"
    return f"{code}{age} {message[at + 1:].decode()}".strip()


def ask(link, message):
    for _ in range(60):
        link.send(message)
        try:
            while True:
                answer = link.recv(1500)
                if answer[0] >> 4 & 3 == 0:     # confirmable: it wants to know
                    link.send(b"\x60\x00" + answer[2:4])
                if answer[1]:
                    return decode(answer)
        except TimeoutError:
            pass                # no pause: an answer that comes in it is read
        except ConnectionError: # after the next message, whose refusal is first
            time.sleep(0.1)
    return "silence"


def main(port, lines):
    for line in lines:
        source, mid, path, *options, payload = line.split()
        options = [o.split("=", 1) for o in options]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
            link.settimeout(1)
            address, _, from_port = source.rpartition(":")
            link.bind((address or "127.0.0.1", int(from_port)))
            link.connect(("127.0.0.1", port))
            print(ask(link, encode(int(mid), path,
                                   [(int(n), v) for n, v in options], payload)),
                  flush=True)


main(int(sys.argv[1]), sys.argv[2:])
