#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""registers.py PORT LINE...: what a Modbus gateway answers, one line each.

"WINDOW EPOCH SEQUENCE ML"   writes a command with function 16, and reads its
                             answer with function 3, until it is not 2 (not
                             done yet) or has been that for a while: the status
"once WINDOW ..."            the same, once
"raw FUNCTION AT ..."        a message as it is: 10 (16), 6 or 5; registers
"raw 23 AT COUNT ..."        writes ... to 0 and reads COUNT registers from AT
"slow"                       begins a message, and goes on a byte at a time
"mute WINDOW ..."            writes a command, begins a message on each of 20
                             connections, and asks on: the status, and whether
                             it came within 5 s
"deaf WINDOW ..."            writes a command, asks for registers again and
                             again on another connection, never reads them, and
                             asks on: the status, and whether it came within 5 s
"none TIMES"                 reads 0 registers so often: what it gets, and
                             whether that came within 2 s
"flood"                      202 commands of 1 ml in window 0, epoch 7
"crowd PID WINDOW ..."       writes a command after 200 others have connected,
                             and counts the files that PID has open"""
import os
import socket
import struct
import sys
import time


def transact(link, pdu):
    link.sendall(struct.pack(">HHHB", 1, 0, len(pdu) + 1, 1) + pdu)
    head = link.recv(7, socket.MSG_WAITALL)
    return link.recv(struct.unpack(">HHHB", head)[2] - 1, socket.MSG_WAITALL)


def write(at, values):
    return struct.pack(f">BHHB{len(values)}H", 16, at, len(values),
                       2 * len(values), *values)


def once(link, window, epoch, sequence, ml):
    command = [epoch >> 16, epoch & 0xffff, sequence >> 16, sequence & 0xffff,
               ml]
    transact(link, write(32 * window, command))
    got = transact(link, struct.pack(">BHH", 3, 32 * window + 16, 7))
    answer = struct.unpack(">BB7H", got)[2:]
    assert list(answer[:4]) == command[:4]
    return answer[4]


def ask(link, *command):
    for _ in range(20):
        status = once(link, *command)
        if status != 2:
            break
        time.sleep(0.02)
    return status


def raw(link, words):
    function, at, *values = map(int, words)
    if function == 10:
        pdu = write(at, values[1:])
        pdu = pdu[:3] + struct.pack(">H", values[0]) + pdu[5:]
    elif function == 23:
        pdu = struct.pack(">BHH", 23, at, values[0]) + write(0, values[1:])[1:]
    else:
        pdu = struct.pack(">BHH", function, at, values[0])
    answer = transact(link, pdu)
    return f"exception {answer[1]}" if answer[0] & 0x80 else "written"


def slow(link):
    """Until the gateway has had enough of it"""
    message = struct.pack(">HHHB", 1, 0, 247, 1) + write(0, [0] * 120)
    try:
        for byte in message:
            link.sendall(bytes([byte]))
            time.sleep(0.1)
    except OSError:
        return "closed"
    return "heard out"


def mute(port, link, command):
    others = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    begun = time.monotonic()
    once(link, *command)
    for one in others:
        one.sendall(b"\0")
    status = ask(link, *command)
    for one in others:
        one.close()
    return f"{status} {'soon' if time.monotonic() - begun < 5 else 'late'}"


def deaf(port, link, command):
    link.settimeout(5)
    once(link, *command)
    with socket.create_connection(("127.0.0.1", port)) as other:
        other.settimeout(0.5)
        message = struct.pack(">HHHBBHH", 1, 0, 6, 1, 3, 0, 125)
        try:
            while True:
                other.sendall(100 * message)
        except OSError:                 # closed, or nobody reads it
            pass
        try:
            return f"{ask(link, *command)} soon"
        except TimeoutError:
            return "late"


def none(link, times):
    begun = time.monotonic()
    got = {raw(link, ["3", "0", "0"]) for _ in range(times)}
    late = time.monotonic() - begun > 2
    return f"{' '.join(got)} {'late' if late else 'soon'}"


def crowd(port, pid, command):
    silent = [socket.create_connection(("127.0.0.1", port))
              for _ in range(200)]
    with socket.create_connection(("127.0.0.1", port)) as link:
        status = ask(link, *command)
    files = len(os.listdir(f"/proc/{pid}/fd"))
    for one in silent:
        one.close()
    return f"{status} {files}"


def main(port, lines):
    with socket.create_connection(("127.0.0.1", port)) as link:
        for line in lines:
            words = line.split()
            if words[0] == "slow":
                print(slow(link))
            elif words[0] == "raw":
                print(raw(link, words[1:]))
            elif words[0] == "once":
                print(once(link, *map(int, words[1:])))
            elif words[0] == "mute":
                print(mute(port, link, list(map(int, words[1:]))))
            elif words[0] == "deaf":
                print(deaf(port, link, list(map(int, words[1:]))))
            elif words[0] == "none":
                print(none(link, int(words[1])))
            elif words[0] == "crowd":
                words = list(map(int, words[1:]))
                print(crowd(port, words[0], words[1:]))
            elif words[0] == "flood":
                for sequence in range(1, 203):
                    print(ask(link, 0, 7, sequence, 1))
            else:
                print(ask(link, *map(int, words)))


main(int(sys.argv[1]), sys.argv[2:])
