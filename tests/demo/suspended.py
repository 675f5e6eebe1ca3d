# SPDX-License-Identifier: 0BSD
# The serial device is suspended for two days while a copy of a command waits on
# its line: then it answers as it did, and does not pour again.
#     suspended.py DEVICE DIR AHEAD.SO SLEPT
# With AHEAD.SO clocks are two days ahead once the file SLEPT is there.
import os
import signal
import socket
import struct
import subprocess
import sys
import zlib

device, folder, ahead, slept = sys.argv[1:]


def frame(body):
    body += struct.pack("<I", zlib.crc32(body))
    blocks = body.split(b"\0")
    return b"\0" + b"".join(bytes([len(b) + 1]) + b for b in blocks) + b"\0"


def ask(line):
    line.sendall(frame(b"\1\0\5\3panelonep\5\0"))


def answer(line):
    got = b""
    while got.count(b"\0") < 2:
        got += line.recv(256)
    return got


listener = socket.socket(socket.AF_UNIX)
listener.bind(folder + "/line")
listener.listen(1)
process = subprocess.Popen([device, "--line", "unix:" + folder + "/line",
                            "--dir", folder],
                           env=dict(os.environ, LD_PRELOAD=ahead))
try:
    line = listener.accept()[0]
    line.settimeout(20)
    ask(line)
    first = answer(line)
    process.send_signal(signal.SIGSTOP)
    ask(line)
    open(slept, "w").close()
    process.send_signal(signal.SIGCONT)
    second = answer(line)
finally:
    process.kill()
print("answered as before" if first == second else "poured again")
