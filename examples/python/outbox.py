#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""The sender's half in Python: has each command executed once by a device that
uses idem.h, over MQTT, however often this program, the broker or the device is
killed.

    outbox.py FILE add INTENTION ML       enters a command
    outbox.py FILE run [--id NAME] [--host H] [--port P]
                                          sends all that have no answer; keep
                                          the same NAME (panel) and the same
                                          device for ever: others do not know
                                          the keys
    outbox.py FILE list                   prints the result of each: done;
                                          refused, not executed; look or give
                                          up: nobody knows

Exit status: 0 all that it sent are done, 3 not all, 1 or 2 it could not run.

The device is ../mqtt/pumpd.c.  For another one change Link; Outbox and retry()
stay as they are.  Needs sqlite3, which Python has, and paho-mqtt (1.6 or 2).

An intention has one key: to add the same intention again enters nothing new, as
after a kill.  Two glasses are two intentions.
"""
import argparse
import os
import queue
import random
import re
import sqlite3
import sys
import threading
import time

# ---------------------------------------------------------------- when to send

DONE, RESEND, REFUSED, GIVE_UP = "done", "resend", "refused", "give up"
LOOK = "look"               # refused, but perhaps executed

VERDICTS = {
    "OK": DONE, "REPLAY": DONE, "DONE": DONE,
    "MISMATCH": REFUSED, "E_ARG": REFUSED, "E_TOO_LARGE": REFUSED,
    "TOO_OLD": LOOK, "EXHAUSTED": LOOK, "UNCERTAIN": LOOK,
}

DEADLINE_MS = 43200000
LONG_S = 4294967            # longer than any deadline


def retry(answer, times, elapsed_ms, retry_after_ms=0, chance=None, base_ms=0,
          cap_ms=0, deadline_ms=0):
    """What to do after an answer, or after "SILENCE", and in how many ms:
    idem_retry() of idem.h.  `answer` is the name of a result without IDEM_.

    Full jitter: the wait is random below what doubles from base_ms (1 s) up to
    cap_ms (60 s), on top of retry_after_ms.  Nothing is sent longer than
    deadline_ms (12 h) after the first time: keep it below the device's
    retention, or a late copy is executed again."""
    verdict = VERDICTS.get(answer, RESEND)
    if verdict != RESEND:
        return verdict, None
    if chance is None:
        chance = random.getrandbits(32)
    if retry_after_ms == 0xFFFFFFFF:        # no end is known
        retry_after_ms = 0
    wait = min((base_ms or 1000) << min(max(times, 1) - 1, 32),
               cap_ms or 60000)
    wait -= wait * chance >> 32
    left = (deadline_ms or DEADLINE_MS) - elapsed_ms - retry_after_ms
    if left <= 0:
        return GIVE_UP, None
    return RESEND, retry_after_ms + min(wait, left)


# ---------------------------------------------------------------------- outbox

class Outbox:
    """Commands in a file, each durable before it is sent for the first time,
    with the key that it keeps."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.db.execute("PRAGMA synchronous = EXTRA")
        self.db.execute("""CREATE TABLE IF NOT EXISTS command (
            id INTEGER PRIMARY KEY, intention TEXT UNIQUE NOT NULL,
            key BLOB UNIQUE NOT NULL, payload BLOB NOT NULL, first_s REAL,
            verdict TEXT, reason TEXT, text TEXT)""")
        self.db.execute("""CREATE TABLE IF NOT EXISTS sender (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL)""")

    def belong(self, name):
        """Keys are those of one sender for ever: from another one the device
        would execute them once more."""
        self.db.execute("""INSERT INTO sender VALUES (1, ?)
            ON CONFLICT DO NOTHING""", (name,))
        stored, = self.db.execute("SELECT name FROM sender").fetchone()
        if stored != name:
            raise ValueError(f"this outbox is that of {stored}, not {name}")

    def add(self, intention, payload):
        """Enters a command; if that intention is there already, nothing.
        Returns its key."""
        self.db.execute(
            """INSERT INTO command (intention, key, payload)
            VALUES (?, ?, ?) ON CONFLICT (intention) DO NOTHING""",
            (intention, os.urandom(16), payload))
        key, stored = self.db.execute(
            "SELECT key, payload FROM command WHERE intention = ?",
            (intention,)).fetchone()
        if stored != payload:
            raise ValueError(f"{intention}: entered with another payload")
        return key

    def pending(self):
        """Rows (id, key, payload, first_s: when it was sent first, or None)"""
        return self.db.execute("""SELECT id, key, payload, first_s FROM command
            WHERE verdict IS NULL ORDER BY id""").fetchall()

    def start(self, number):
        """Before it is sent for the first time; returns when that is, or was,
        if another process came first"""
        self.db.execute("""UPDATE command SET first_s = ? WHERE id = ?
            AND first_s IS NULL""", (time.time(), number))
        return self.db.execute("SELECT first_s FROM command WHERE id = ?",
                               (number,)).fetchone()[0]

    def settle(self, number, verdict, reason, text):
        self.db.execute("""UPDATE command SET verdict = ?, reason = ?, text = ?
            WHERE id = ? AND verdict IS NULL""",
                        (verdict, reason, text, number))

    def all(self):
        return self.db.execute("""SELECT intention, key, payload, verdict,
            reason, text FROM command ORDER BY id""").fetchall()


# ------------------------------------------------------------------------ link

class Link:
    """MQTT 5 to pumpd: commands go to pump/NAME/command, answers come from
    pump/NAME/answer; the correlation data are the key."""

    # Ask again later; not this key's payload, or none.  After any
    # other reason nobody knows whether it was executed.
    results = {"0x00": "OK", "0x97": "BUSY", "0x99": "MISMATCH"}

    def __init__(self, host, port, name):
        from paho.mqtt import client as mqtt
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties
        from paho.mqtt.subscribeoptions import SubscribeOptions
        self.properties = lambda: Properties(PacketTypes.PUBLISH)
        self.topic, self.answers = f"pump/{name}/command", queue.Queue()
        self.options = SubscribeOptions(qos=1, noLocal=True,
                                        retainHandling=2)
        self.answer_topic, self.ready = f"pump/{name}/answer", False
        old = {} if not hasattr(mqtt, "CallbackAPIVersion") else {
            "callback_api_version": mqtt.CallbackAPIVersion.VERSION1}
        self.client = mqtt.Client(client_id=name, protocol=mqtt.MQTTv5, **old)
        self.said = None
        self.client.on_connect_fail = lambda *_: self.say(
            f"{host}:{port}: {sys.exc_info()[1] or 'no connection'}")
        self.client.on_connect = self.on_connect
        self.client.on_subscribe = self.on_subscribe
        self.client.on_disconnect = self.on_disconnect
        self.client.on_message = self.on_message
        self.client.reconnect_delay_set(1, 4)
        self.client.connect_async(host, port, keepalive=20)
        self.client.loop_start()

    def say(self, what):
        """Prints what is wrong with the connection, when that is something
        else."""
        if what not in (None, self.said):
            print(f"{what}; trying again", file=sys.stderr)
        self.said = what

    def on_connect(self, client, _data, _flags, reason, _properties=None):
        self.say(None if reason == 0 else f"the broker refuses: {reason}")
        if reason == 0:
            client.subscribe(self.answer_topic, options=self.options)

    def on_subscribe(self, _client, _data, _mid, reasons, _properties=None):
        self.ready = all(reason.value < 0x80 for reason in reasons)
        if not self.ready:
            print(f"the broker refuses the subscription to "
                  f"{self.answer_topic}", file=sys.stderr)

    def on_disconnect(self, *_):
        self.ready = False

    def on_message(self, _client, _data, message):
        """An answer: key, name of a result, ms to wait, reason, text.  What has
        no reason is none: a command must not end with it."""
        named = dict(getattr(message.properties, "UserProperty", []))
        key = getattr(message.properties, "CorrelationData", b"")
        wait = named.get("retry-after-ms", "")
        wait = int(wait) if len(wait) < 11 and wait.isdecimal() else 0
        reason = named.get("reason", "")
        if not re.fullmatch("0x[0-9a-f]{2}", reason):
            return
        answer = "BUSY" if wait else self.results.get(reason, "UNCERTAIN")
        text = "".join(letter if letter.isprintable() else "."
                       for letter in message.payload.decode("utf-8", "replace"))
        self.answers.put((key, answer, wait, reason, text))

    def send(self, key, payload, left_ms):
        """Once, with QoS 0: else paho would send it again by itself, at the
        next connection, after any deadline.  Then the broker is to drop it, if
        it still has it; 0 would be without end."""
        if not self.ready:
            return
        properties = self.properties()
        properties.CorrelationData = key
        properties.MessageExpiryInterval = (left_ms + 999) // 1000
        self.client.publish(self.topic, payload, qos=0, properties=properties)

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


# ------------------------------------------------------------------------- run

def running_s():
    """Of a clock that nobody sets, and that goes on while a machine sleeps"""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Command:
    """One that is under way"""

    def __init__(self, number, key, payload, first_s):
        self.number, self.key, self.payload = number, key, payload
        self.first_s, self.seen_s, self.times = first_s, running_s(), 0
        self.due, self.listening = 0, False
        if first_s is not None and first_s > time.time():
            self.seen_s -= LONG_S       # that clock was set back: who knows

    def elapsed_ms(self):
        """Since the first time, which was perhaps before a restart, or more;
        if only another process has sent it, since this one knows of it.  Where
        no battery keeps the clock, set it before this runs."""
        return int(1000 * max(time.time() - (self.first_s or time.time()),
                              running_s() - self.seen_s))

    def decide(self, patience, answer, wait_ms):
        """The verdict after an answer; if it is RESEND, sets when."""
        verdict, delay_ms = retry(answer, self.times, self.elapsed_ms(),
                                  wait_ms, **patience)
        if verdict == RESEND:
            self.due = time.monotonic() + delay_ms / 1000
            self.listening = False
        return verdict


def send(box, link, command, answer_ms, deadline_ms):
    """Sends a command once more.  Returns RESEND; or GIVE_UP if it is too late
    for that, as after a long time off."""
    if command.first_s is None:
        command.first_s, command.seen_s = box.start(command.number), running_s()
    left_ms = deadline_ms - command.elapsed_ms()
    if left_ms <= 0:
        return GIVE_UP
    command.times += 1
    command.due = time.monotonic() + answer_ms / 1000
    command.listening = True
    link.send(command.key, command.payload, left_ms)
    return RESEND


def run(box, link, answer_ms=2000, window=8, **patience):
    """Sends, `window` commands at a time, until none is pending.  Returns how
    many of them are not done."""
    deadline_ms = patience.get("deadline_ms") or DEADLINE_MS
    under_way, failed = {}, 0
    while True:
        for row in box.pending()[:window]:
            under_way.setdefault(row[1], Command(*row))
        if not under_way:
            return failed
        for key, command in list(under_way.items()):
            if time.monotonic() < command.due:
                continue
            verdict = RESEND
            if command.listening:
                verdict = command.decide(patience, "SILENCE", 0)
            elif link.ready or (command.first_s and
                                command.elapsed_ms() >= deadline_ms):
                verdict = send(box, link, command, answer_ms, deadline_ms)
            if verdict == GIVE_UP:
                box.settle(command.number, verdict, "", "nobody knows")
                failed += 1
                del under_way[key]
        try:
            key, answer, wait_ms, reason, text = link.answers.get(timeout=0.02)
        except queue.Empty:
            continue
        if key not in under_way:            # a second answer to an old command
            continue
        verdict = under_way[key].decide(patience, answer, wait_ms)
        if verdict != RESEND:
            failed += verdict != DONE
            box.settle(under_way.pop(key).number, verdict, reason, text)


def sender_name(text):
    """--id: a part of a topic"""
    if re.search("[+#/]", text):
        raise argparse.ArgumentTypeError("must not have + # or /")
    return text


def number(most):
    """The type of an option: from 1 to most"""
    def read(text):
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"a number from 1 to {most}")
        return int(text)
    return read


def main():
    parser = argparse.ArgumentParser(
        description="has each command executed once, over MQTT")
    parser.add_argument("file")
    parser.add_argument("what", choices=["add", "run", "list"])
    parser.add_argument("words", nargs="*", metavar="INTENTION ML")
    parser.add_argument("--id", type=sender_name, default="panel")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=number(65535), default=1883)
    parser.add_argument("--answer-ms", type=number(3600000), default=2000)
    given = parser.parse_args()
    try:
        execute(given)
    except (ValueError, sqlite3.Error) as why:
        sys.exit(f"outbox.py: {given.file}: {why}")


def end(failed):
    """What ends paho's thread ends this program, which would wait for ever."""
    print(f"outbox.py: {failed.exc_value}", file=sys.stderr)
    os._exit(1)


def execute(given):
    """One command line"""
    if given.words and given.what != "add":
        raise ValueError("only add enters commands")
    # One whose name is mistyped, or that is lost, has nothing to send.
    if given.what != "add" and not (os.path.exists(given.file) and
                                    os.path.getsize(given.file)):
        raise ValueError("there is no outbox; add makes one")
    box = Outbox(given.file)
    if given.what == "add":
        if len(given.words) % 2:
            raise ValueError("add INTENTION ML ...")
        for intention, ml in zip(given.words[::2], given.words[1::2]):
            print(intention, box.add(intention, ml.encode()).hex())
    elif given.what == "run":
        threading.excepthook = end
        box.belong(given.id)
        link = Link(given.host, given.port, given.id)
        failed = run(box, link, given.answer_ms, base_ms=given.answer_ms,
                     cap_ms=4 * given.answer_ms)
        link.close()
        if failed:
            print(f"outbox.py: {failed} not done: see list", file=sys.stderr)
            sys.exit(3)
    else:
        for intention, key, payload, *became in box.all():
            print(intention, key.hex(), payload.decode(),
                  *(word or "-" for word in became))


if __name__ == "__main__":
    main()
