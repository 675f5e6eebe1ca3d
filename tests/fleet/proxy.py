#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""proxy.py PORT SERVICE MODE: stands between a test and its DynamoDB, and reads
from the file MODE what it does now:

    pass                forwards
    403 429 503         answers with that status, and a body that DynamoDB
                        would not send
    text                answers 200, and a body that is not JSON
    undated             forwards without the header Date
    throttle            refuses every second request
    mixed               the same, and answers others with 502 and such a body
    deny OPERATION      refuses this operation: no right to it
    only KEY LENGTH     accepts this access key id, with a session token that
                        long; all others have expired
"""
import http.client
import http.server
import itertools
import sys

count = itertools.count()


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, date=None):
        self.send_response_only(status)
        if date:
            self.send_header("Date", date)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, kind):
        self.answer(400, b'{"__type":"com.amazon#' + kind.encode() +
                    b'","message":"by the proxy"}', self.date_time_string())

    def hand_on(self, body, dated):
        service = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]))
        service.request("POST", "/", body, dict(self.headers))
        answer = service.getresponse()
        self.answer(answer.status, answer.read(),
                    answer.getheader("Date") if dated else None)
        service.close()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(sys.argv[3]) as file:
            mode, *rest = file.read().split()
        if mode in ("403", "429", "503"):
            self.answer(int(mode), b"<html>no</html>", self.date_time_string())
        elif mode == "text":
            self.answer(200, b"<html>welcome</html>", self.date_time_string())
        elif mode in ("throttle", "mixed") and next(count) % 2 == 0:
            self.refuse("ThrottlingException")
        elif mode == "mixed":
            self.answer(502, b"<html>no</html>", self.date_time_string())
        elif mode == "deny" and self.headers["X-Amz-Target"].endswith(rest[0]):
            self.refuse("AccessDeniedException")
        elif mode == "only" and (
                f"Credential={rest[0]}/" not in self.headers["Authorization"] or
                len(self.headers["X-Amz-Security-Token"]) != int(rest[1])):
            self.refuse("ExpiredTokenException")
        else:
            self.hand_on(body, mode != "undated")

    def do_GET(self):
        self.answer(200, b"")

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])),
                                Proxy).serve_forever()
