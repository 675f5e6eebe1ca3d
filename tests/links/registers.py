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
"mute PID WINDOW ..."        writes a command; then, before the gateway PID goes
                             on, begins a message on each of 20 connections, and
                             writes the same command to the next window on one
                             more; asks on for the first: the status
"deaf WINDOW ..."            writes a command, asks for registers again and
                             again on another connection, and never reads them,
                             until that is closed, "hangs" if it never is; asks
                             on: the status
"none TIMES"                 reads 0 registers so often: what it gets, "hangs" if
                             that takes a quarter of a second each
"flood"                      202 commands of 1 ml in window 0, epoch 7
"crowd PID WINDOW ..."       writes a command after 200 others have connected,
                             and counts the files that PID has open"""
import os
import signal
import socket
import struct
import sys
import time


def send(link, pdu):
    link.sendall(struct.pack(">HHHB", 1, 0, len(pdu) + 1, 1) + pdu)


def receive(link):
    head = link.recv(7, socket.MSG_WAITALL)
    return link.recv(struct.unpack(">HHHB", head)[2] - 1, socket.MSG_WAITALL)


def transact(link, pdu):
    send(link, pdu)
    return receive(link)


def write(at, values):
    return struct.pack(f">BHHB{len(values)}H", 16, at, len(values),
                       2 * len(values), *values)


def numbered(epoch, sequence, ml):
    return [epoch >> 16, epoch & 0xffff, sequence >> 16, sequence & 0xffff, ml]


def once(link, window, *numbers):
    command = numbered(*numbers)
    transact(link, write(32 * window, command))
    got = transact(link, struct.pack(">BHH", 3, 32 * window + 16, 7))
    answer = struct.unpack(">BB7H", got)[2:]
    assert list(answer[:4]) == command[:4]
    return answer[4]


def ask(link, *command, times=20):
    for _ in range(times):
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


def mute(port, link, pid, window, *numbers):
    *others, last = [socket.create_connection(("127.0.0.1", port))
                     for _ in range(21)]
    raw(last, ["5", "0", "1"])          # the gateway has accepted them all
    once(link, window, *numbers)
    os.kill(pid, signal.SIGSTOP)        # so it finds all of these at once
    for one in others:
        one.sendall(b"\0")
    send(last, write(32 * (window + 1), numbered(*numbers)))
    os.kill(pid, signal.SIGCONT)
    receive(last)
    status = ask(link, window, *numbers, times=1000)
    for one in [*others, last]:
        one.close()
    return status


def deaf(port, link, *command):
    link.settimeout(60)
    once(link, *command)
    with socket.create_connection(("127.0.0.1", port)) as other:
        other.settimeout(60)
        message = struct.pack(">HHHBBHH", 1, 0, 6, 1, 3, 0, 125)
        try:
            while True:
                other.sendall(100 * message)
        except TimeoutError:
            return "hangs"
        except OSError:                 # it was closed
            pass
    return ask(link, *command, times=1000)


def none(link, times):
    begun = time.monotonic()
    got = {raw(link, ["3", "0", "0"]) for _ in range(times)}
    hangs = time.monotonic() - begun > times / 4
    return "hangs" if hangs else ' '.join(got)


def crowd(port, _, pid, *command):
    silent = [socket.create_connection(("127.0.0.1", port))
              for _ in range(200)]
    with socket.create_connection(("127.0.0.1", port)) as link:
        status = ask(link, *command)
    files = len(os.listdir(f"/proc/{pid}/fd"))
    for one in silent:
        one.close()
    return f"{status} {files}"


def flood(link):
    return "\n".join(str(ask(link, 0, 7, sequence, 1))
                     for sequence in range(1, 203))


def main(port, lines):
    others = {"once": once, "none": none, "flood": flood, "slow": slow}
    alone = {"mute": mute, "deaf": deaf, "crowd": crowd}
    with socket.create_connection(("127.0.0.1", port)) as link:
        for line in lines:
            word, *numbers = line.split()
            if word == "raw":
                print(raw(link, numbers))
            elif word in alone:
                print(alone[word](port, link, *map(int, numbers)))
            elif word in others:
                print(others[word](link, *map(int, numbers)))
            else:
                print(ask(link, int(word), *map(int, numbers)))


main(int(sys.argv[1]), sys.argv[2:])
