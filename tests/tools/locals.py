#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""Names of parameters and variables of functions in idem.h: if one changes,
nothing has to change in the tests.

    Shape(text)     finds a piece of code, whatever these names are
    locals.py LIST idem.h > COPY
                    the header with the names that LIST has in lines like
                        function NAME PARAMETER VARIABLE ...
                    (or assumed), in the order of their declaration
    locals.py --all idem.h > COPY
                    the header with another name for every one of them
"""
import re
import sys

KEYWORDS = set("""if else for while do return sizeof switch case default break
    continue goto const static unsigned int char void struct int32_t uint8_t
    uint16_t uint32_t uint64_t size_t off_t""".split())
# Not a member, a call, or what is in capitals.
NAME = re.compile(r"(?<![\w.>\"])(?<!->)[a-z]\w*(?![\w(\"])")
FUNCTION = re.compile(r"^(?!typedef|enum|struct)[A-Za-z][^;{}=#]*?"
                      r"\b(\w+)\((?P<parameters>[^;{}]*?)\)\n\{.*?^\}",
                      re.M | re.S)
DECLARATION = re.compile(
    r"^ +(?:static )?(?:const )?(?:struct )?(?!return\b|else\b|goto\b|case\b)"
    r"[a-z]\w* (?:(?:int|char|long|const) )?(?=[*\w])([^;{}()]*?(?:[=\[][^;]*)?);",
    re.M)


def is_local(word):
    return word not in KEYWORDS and \
        not re.match(r"idemi?_\w+$|\w+_t$", word)


class Shape:
    """A piece of code in which only the names of local things may differ."""

    def __init__(self, text):
        self.groups, pattern, at = {}, "", 0
        text = " ".join(text.split())
        for word in NAME.finditer(text):
            if not is_local(word.group()):
                continue
            pattern += self.literal(text[at:word.start()])
            if word.group() in self.groups:
                pattern += r"(?P=%s)\b" % self.groups[word.group()]
            else:
                group = self.groups[word.group()] = "n%d" % len(self.groups)
                pattern += r"(?<!\.)(?<!->)\b(?P<%s>[a-z]\w*)\b" % group
            at = word.end()
        self.pattern = re.compile(pattern + self.literal(text[at:]))

    @staticmethod
    def literal(text):
        """As it stands, but that a line may end wherever there is a blank."""
        return r"\s+".join(map(re.escape, re.split(r"\s+", text)))

    def fill(self, match, text):
        """What stands for `text` where this was found."""
        return NAME.sub(
            lambda word: match.group(self.groups[word.group()])
            if word.group() in self.groups else word.group(), text)


def declared(function):
    """The parameters and variables of a function, in order."""
    names = re.findall(r"\b([a-z]\w*)(?:\[\w*\])?(?=,|$)",
                       function.group("parameters"))
    body = function.group()[function.group().index("\n{"):]
    for line in re.finditer(r"for \((?:unsigned|int|uint32_t|size_t) (\w+) =|" +
                            DECLARATION.pattern, body, re.M):
        inside = line.group(1) or line.group(2)
        while re.search(r"\([^()]*\)", inside):
            inside = re.sub(r"\([^()]*\)", "", inside)
        inside = re.sub(r"\[[^]]*\]|=[^,;]*|\{.*?\}", "", inside)
        names += re.findall(r"(?:^|,)\s*\**(\w+)", inside)
    return [name for at, name in enumerate(names)
            if name != "void" and name not in names[:at]]


def renamed(text, new):
    """A piece of code with other names."""
    return re.sub(r"(?<![\w.])(?<!->)[a-z]\w*",
                  lambda word: new.get(word.group(), word.group()), text)


def main():
    if sys.argv[1] == "--all":
        with open(sys.argv[2], encoding="utf-8") as file:
            sys.stdout.write(FUNCTION.sub(lambda function: renamed(
                function.group(), {
                    name: "local%d" % at
                    for at, name in enumerate(declared(function))}),
                file.read()))
        return
    with open(sys.argv[1], encoding="utf-8") as file:
        lists = [line.split()[1:] for line in file
                 if re.match(r"(function|assumed) \w+ \w", line)]
    names = {line[0]: line[1:] for line in lists}
    with open(sys.argv[2], encoding="utf-8") as file:
        text = file.read()

    unfit = {}

    def take(function):
        name, old = function.group(1), declared(function)
        new = names.get(name, old)
        unfit[name] = unfit.get(name, True) and len(old) != len(new)
        return renamed(function.group(), dict(zip(old, new)))

    sys.stdout.write(FUNCTION.sub(take, text))
    for name in names:
        # Of a hash there are several: it is to be one of them.
        if unfit.get(name, True):
            sys.exit("%s has not as many names: %s" % (
                name, " ".join(names[name])))


if __name__ == "__main__":
    main()
