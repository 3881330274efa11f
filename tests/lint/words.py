# SPDX-License-Identifier: BSD-3-Clause
"""words.py TOP [EXCEPTIONS]: find words that CONTRIBUTING.md does not allow below TOP.

Prints one line a finding, "KIND FILE:LINE: TEXT"; KIND is person, head or term.
A line of EXCEPTIONS is "PATH WORD REASON". PATH is a file, a pattern, or a folder with its slash. WORD is "*", "head",
one of the words in lower case, or a term. Lines that excuse nothing are printed as "unused".
"""
import bisect
import fnmatch
import os
import re
import sys

FOLDERS = "lib collectives launcher tools bench examples bindings tests doc m4 .ci".split()
# What is text from the first line to the last; of C only comments and strings are.
TEXTS = (".sh", ".py", ".awk", ".inc", ".in", ".m4", ".ac", ".am", ".md", ".1", ".3", ".supp")
TEXT_NAMES = ("cases", "run", "private_shm", "rooms.txt")
OWN = ("tests/lint/words.py", "tests/lint/words.sh", "tests/lint/words.txt")
HEAD_MAX = 80 # characters, without the marks of a comment

PERSON = re.compile(r"\b(?:[Ww]ho(?:m|ever)?|[Nn]obody|[Ss]omebody|[Hh]e)\b")
# Words that earlier code used for terms of doc/glossary.md.
TERMS = set("""
    aside crew crowded descend door door_words doubt errand errands excuse flight flights front_blame front_insist gathers
    guest guests hear hopeless keeper leftovers let_go linger lives mailbox massacre modexes muster nap naps obey outline
    outlines parting patience poller relic relics seats seldom splicer stand_in stir stranger strangers tell told told_over
    twins unheld unrung usher vain verdict worlds who whom whoever nobody somebody
    """.split())
PIECE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#[ \t]*include[^\n]*", re.S | re.M)


def files(top):
    for name in sorted(os.listdir(top)):
        if name.endswith((".md", ".ac", ".am", ".sh")) and os.path.isfile(os.path.join(top, name)):
            yield name
    for folder in FOLDERS:
        for path, folders, names in os.walk(os.path.join(top, folder)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(TEXTS + (".c", ".h", ".cu")) or name in TEXT_NAMES:
                    yield os.path.relpath(os.path.join(path, name), top)


def terms_of(identifier):
    parts = identifier.lower().strip("_").split("_")
    for i, part in enumerate(parts):
        if part in TERMS:
            yield part
        if "_".join(parts[i:i + 2]) in TERMS and i + 1 < len(parts):
            yield "_".join(parts[i:i + 2])


def head_of(file, text):
    """The number and the text of the first line of a file that describes it."""
    for number, line in enumerate(text.split("\n", 4)[:4], 1):
        if "SPDX-License-Identifier" in line or line.startswith("#!") or line.strip() in ("", "/*"):
            continue
        if file.endswith((".c", ".h", ".cu")):
            return number, re.sub(r"^\s*/?\*\s?|\s*\*/\s*$", "", line)
        return number, re.sub(r'^#\s?|^"""|"""$', "", line) if line.startswith(("#", '"""')) else ""
    return 1, ""


def scan(top):
    """Yields (kind, file, line, word, text)."""
    for file in files(top):
        if file in OWN:
            continue
        with open(os.path.join(top, file), encoding="utf-8", errors="replace") as source:
            text = source.read()
        ends = [m.start() for m in re.finditer("\n", text)]

        def found(kind, word, at):
            line = bisect.bisect_left(ends, at)
            begin = ends[line - 1] + 1 if line else 0
            end = ends[line] if line < len(ends) else len(text)
            return kind, file, line + 1, word.lower(), text[begin:end].strip()

        if not file.endswith(".md"):
            number, head = head_of(file, text)
            if len(head) > HEAD_MAX and not re.search(r"\.[13]$", file):
                yield "head", file, number, "head", "%d characters: %s" % (len(head), head)
        if file.endswith((".c", ".h", ".cu")):
            code, last = [], 0
            for piece in PIECE.finditer(text):
                code.append((last, piece.start()))
                last = piece.end()
                if piece.group().lstrip()[0] in "/\"":
                    for m in PERSON.finditer(text, piece.start(), piece.end()):
                        yield found("person", m.group(), m.start())
            code.append((last, len(text)))
            lower = text.lower()
            here = [term for term in TERMS if term in lower] # far faster than one pattern of all
            identifier = re.compile(r"\b\w*(?:%s)\w*\b" % "|".join(here), re.I)
            for begin, end in code if here else ():
                for m in identifier.finditer(text, begin, end):
                    for word in terms_of(m.group()):
                        yield found("term", word, m.start())
        else:
            for m in PERSON.finditer(text):
                yield found("person", m.group(), m.start())
        for word in terms_of(os.path.splitext(os.path.basename(file))[0]):
            yield "term", file, 1, word, "is the name of the file"


def main():
    top, exceptions, terms = sys.argv[1], [], set()
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                if line.strip() and not line.startswith("#"):
                    fields = line.split(None, 2)
                    if len(fields) < 3:
                        print("exception words.txt:%d: gives no reason" % number)
                        continue
                    exceptions.append([fields[0], fields[1], number, 0])
    for kind, file, line, word, text in scan(top):
        if kind == "term":
            if (file, word) in terms: # the first place is enough
                continue
            terms.add((file, word))
        for e in exceptions:
            if e[1] in ("*", word) and (e[0] == file or e[0].endswith("/") and file.startswith(e[0]) or
                                        fnmatch.fnmatchcase(file, e[0])):
                e[3] += 1
                break
        else:
            print("%s %s:%d: %s%s" % (kind, file, line, "" if kind == "head" else word + ": ", text[:110]))
    for e in exceptions:
        if not e[3]:
            print("unused words.txt:%d: %s %s" % (e[2], e[0], e[1]))


main()
