#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""architecture.py: draw processes and rooms, and list what each calls.

  doc/architecture.py SRCDIR OUTDIR

Writes architecture.svg and architecture.md to OUTDIR. Rooms and arrows come from tests/lint/rooms.txt, captions and
marks of processes from doc/architecture.md: a heading "### `ROOM`: CAPTION" and a line "- In: MARKS. Calls: LIST.".
The list is replaced. `make update-doc` calls this script, and tests/lint/picture.sh compares.
"""
import html, os, re, sys

MARKS = {'F': ('front end', '#2f6fb5'), 'S': ('supervisor', '#6b6b6b'), 'A': ('agent', '#b8541a'), 'R': ('rank', '#2e7d46')}
WIDTH, MARGIN = 1240, 30
BOX, GAP, LANE = 172, 14, 16  # width of a box; least distance of boxes, and of arrows that pass a layer
PITCH, LINE = 118, 15
INK, PALE, SOFT = '#222', '#8592a3', '#444'
PUBLIC = 'lib/rank.h'


# ---- rooms and arrows

def read_rooms(src):
    """room -> what the table lists, and room -> rooms it may include; a single header counts as its room."""
    rows = [l.split() for l in open(src + '/tests/lint/rooms.txt') if l.strip() and not l.startswith('#')]
    rooms = {r[0] for r in rows}

    def room_of(path):
        while path not in rooms:
            path = path.rsplit('/', 1)[0]
        return path
    listed, graph = {r[0]: r[1:] for r in rows}, {r[0]: {room_of(x) for x in r[1:]} for r in rows}
    # All may include the public header; for these it is the only way to the library.
    listed[PUBLIC], graph[PUBLIC] = [], {'lib/world'}
    for user in ('bench', 'examples'):
        listed[user] = [PUBLIC] + listed[user]
        graph[user].add(PUBLIC)
    return listed, graph


def read_text(src, rooms):
    """room -> (caption, marks), in the order of the document."""
    text = open(src + '/doc/architecture.md').read()
    found = {}
    for m in re.finditer(r'^### `([^`]+)`: (.+)$((?:\n(?!#).*)*)', text, re.M):
        marks = re.search(r'^- In: ([FSAR ]+)\.', m[3], re.M)
        found[m[1]] = (m[2], marks[1].split() if marks else [])
    for room in set(rooms) ^ set(found):
        sys.exit('architecture.py: %s is in only one of tests/lint/rooms.txt and doc/architecture.md' % room)
    return text, found


def below(graph, room, seen=None):
    seen = set() if seen is None else seen
    for x in graph[room] - seen:
        seen.add(x)
        below(graph, x, seen)
    return seen


def reduced(graph):
    """The arrows that no others imply."""
    return {r: sorted(x for x in to if not any(x in below(graph, y) for y in to)) for r, to in graph.items()}


# ---- layers: floors, an order in each that crosses few arrows, positions

def floors(graph):
    floor = {}

    def of(room):
        if room not in floor:
            floor[room] = 1 + max((of(x) for x in graph[room]), default=-1)
        return floor[room]
    for room in graph:
        of(room)
    return floor


def side(room):
    return 0 if room.startswith('launcher') else 1 if room == 'lib/topo' else 2


def spread(wanted, room_needed):
    """The positions nearest to wanted that keep the order and the distances between neighbours (isotonic regression)."""
    offset = [0]
    for d in room_needed:
        offset.append(offset[-1] + d)
    blocks = []
    for w, o in zip(wanted, offset):
        blocks.append([w - o, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            v, n = blocks.pop()
            blocks[-1] = [(blocks[-1][0] * blocks[-1][1] + v * n) / (blocks[-1][1] + n), blocks[-1][1] + n]
    flat = [v for v, n in blocks for _ in range(n)]
    lo, hi = MARGIN, WIDTH - MARGIN - offset[-1]
    return [min(max(v, lo), hi) + o for v, o in zip(flat, offset)]


class Layers:
    """Boxes (rooms) and lanes (arrows that pass a layer), each with the x of its middle."""
    def __init__(self, arrows, order, floor):
        self.floor, self.up, self.down = dict(floor), {}, {}
        nodes, self.chains = list(order), []
        for room in order:
            for to in arrows[room]:
                chain = [room] + [(room, to, f) for f in range(floor[room] - 1, floor[to], -1)] + [to]
                for lane in chain[1:-1]:
                    self.floor[lane] = lane[2]
                    nodes.append(lane)
                self.chains.append(chain)
        for n in nodes:
            self.up[n], self.down[n] = [], []
        for chain in self.chains:
            for a, b in zip(chain, chain[1:]):
                self.down[a].append(b)
                self.up[b].append(a)
        self.rows = [[n for n in nodes if self.floor[n] == f] for f in range(max(self.floor.values()) + 1)]
        self.arrange()
        self.place()

    def side(self, n):
        return side(n) if isinstance(n, str) else (side(n[0]) + side(n[1])) / 2

    def crossings(self):
        at = {n: i for row in self.rows for i, n in enumerate(row)}
        count = 0
        for row in self.rows:
            lines = [(at[n], at[d]) for n in row for d in self.down[n]]
            count += sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(lines) for c, d in lines[:i])
        return count

    def arrange(self):
        best, best_rows = None, None
        for sweep in range(40):
            near = self.up if sweep % 2 else self.down
            at = {n: (i + 0.5) / len(row) for row in self.rows for i, n in enumerate(row)}
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                row.sort(key=lambda n: (self.side(n), sum(at[x] for x in near[n]) / len(near[n]) if near[n] else at[n]))
                at.update({n: (i + 0.5) / len(row) for i, n in enumerate(row)})
            count = self.crossings()
            if best is None or count < best:
                best, best_rows = count, [list(row) for row in self.rows]
        self.rows = best_rows

    def half(self, n):
        return (BOX + GAP) / 2 if isinstance(n, str) else LANE / 2

    def place(self):
        self.x = {n: WIDTH * (i + 0.5) / len(row) for row in self.rows for i, n in enumerate(row)}
        for sweep in range(60):
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                near = {n: self.up[n] + self.down[n] for n in row}
                wanted = [sum(self.x[x] for x in near[n]) / len(near[n]) if near[n] else self.x[n] for n in row]
                first, last = self.half(row[0]), self.half(row[-1])
                gaps = [self.half(a) + self.half(b) for a, b in zip(row, row[1:])]
                # The ends count with half their width.
                placed = spread([w - first for w in wanted] + [WIDTH], gaps + [last + first])
                self.x.update({n: x + first for n, x in zip(row, placed)})


# ---- SVG

class Svg:
    def __init__(self):
        self.parts = []

    def add(self, text):
        self.parts.append(text)

    def rect(self, x, y, w, h, fill, stroke, more=''):
        self.add('<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s"%s/>' % (
            round(x), round(y), round(w), round(h), fill, stroke, ' ' + more if more else ''))

    def text(self, x, y, text, size=12, weight='normal', fill=INK, anchor='start'):
        self.add('<text x="%d" y="%d" font-size="%d" font-weight="%s" fill="%s" text-anchor="%s">%s</text>' % (
            round(x), round(y), size, weight, fill, anchor, html.escape(text)))

    def path(self, d, stroke=PALE, start=False, end=True, dash=''):
        self.add('<path d="%s" fill="none" stroke="%s" stroke-width="1.4"%s%s%s/>' % (
            d, stroke, ' marker-start="url(#tip)"' if start else '', ' marker-end="url(#tip)"' if end else '',
            ' stroke-dasharray="%s"' % dash if dash else ''))

    def mark(self, x, y, letter):
        self.add('<circle cx="%d" cy="%d" r="8" fill="%s"/>' % (round(x), round(y), MARKS[letter][1]))
        self.text(x, y + 4, letter, 11, 'bold', '#fff', 'middle')


def wrap(text, width):
    lines = ['']
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append('')
        lines[-1] += (' ' if lines[-1] else '') + word
    return lines


def draw_processes(svg, y):
    """Draw the processes, their hosts and what flows between them ("Processes of a job" in architecture.md)."""
    svg.text(MARGIN, y, 'Processes of a job', 18, 'bold')
    svg.text(MARGIN + 190, y, 'which process runs where, and what flows between them', 13, fill='#555')

    def box(x, y, letter, note):
        name, colour = MARKS[letter]
        svg.rect(x, y, 170, 52, '#fff', colour, 'stroke-width="2"')
        svg.mark(x + 17, y + 18, letter)
        svg.text(x + 32, y + 23, name, 15, 'bold')
        svg.text(x + 12, y + 43, note, 12, fill=SOFT)

    top = y + 16
    for x, w, name in ((MARGIN, 610, 'the user\'s host'), (700, WIDTH - MARGIN - 700, 'each further host')):
        svg.rect(x, top, w, 400, '#fafafa', '#999', 'stroke-dasharray="6 4"')
        svg.text(x + 12, top + 22, name, 13, 'bold', '#555')

    front, band, agent, rank = top + 46, top + 138, top + 212, top + 326
    svg.text(270, front + 22, 'command line, standard input, signals', 12, fill=SOFT)
    svg.text(270, front + 39, 'output, reports, exit code', 12, fill=SOFT)
    svg.path('M264,%d H226' % (front + 18))
    svg.path('M226,%d H264' % (front + 35))
    box(50, front, 'F', 'xrun: all of the job')
    svg.rect(720, front, 170, 52, '#fff', '#999')
    svg.text(735, front + 23, 'ssh or srun', 15, 'bold')
    svg.text(735, front + 43, 'command with a setup', 12, fill=SOFT)
    svg.path('M135,%d V%d H805 V%d' % (front, top + 32, front - 2))
    svg.text(300, top + 26, 'the job\'s secret, on standard input', 12, fill=SOFT)

    for x in (72, 740):
        svg.path('M%d,%d V%d' % (x, front + 52, agent - 2), dash='4 3')
        svg.text(x + 8, front + 75, 'starts', 12, fill=SOFT)
    svg.rect(110, band, 500, 46, '#e9eef5', '#7f93ad')
    svg.rect(790, band, 400, 46, '#e9eef5', '#7f93ad')
    svg.text(122, band + 19, 'overlay: one tree of connections, TCP between hosts', 12, 'bold')
    svg.text(122, band + 37, 'down: job, bindings, input, signals; up: output, exits, reports', 12, fill=SOFT)
    svg.text(802, band + 19, 'the same tree, authenticated', 12, 'bold')
    svg.text(802, band + 37, 'both ways: PMIx fences, direct modex, events', 12, fill=SOFT)
    svg.path('M614,%d H786' % (band + 23), start=True)
    svg.path('M180,%d V%d' % (front + 54, band - 4), start=True)
    for x in (50, 720):
        box(x, agent, 'S', 'kills what is left')
        box(x + 300, agent, 'A', 'PMIx and PMI-1 server')
        svg.path('M%d,%d H%d' % (x + 170, agent + 26, x + 297))
        svg.text(x + 190, agent + 19, 'starts, waits', 12, fill=SOFT)
        svg.path('M%d,%d V%d' % (x + 385, band + 50, agent - 4), start=True)
        for r, note in ((x + 70, 'program, librank'), (x + 300, 'program, librank')):
            box(r, rank, 'R', note)
        svg.path('M%d,%d V%d' % (x + 420, agent + 56, rank - 4), start=True)
        svg.path('M%d,%d L%d,%d' % (x + 330, agent + 56, x + 200, rank - 4), start=True)
        svg.path('M%d,%d H%d' % (x + 244, rank + 26, x + 296), start=True)
    svg.text(80, agent + 72, 'pipes: standard streams', 12, fill=SOFT)
    svg.text(80, agent + 88, 'PMIx: business cards, fences', 12, fill=SOFT)
    svg.text(476, agent + 82, 'status board: waits', 12, fill=SOFT)
    svg.text(317, rank + 70, 'shared memory, CMA', 12, fill=SOFT, anchor='middle')
    svg.text(987, rank + 70, 'shared memory, CMA', 12, fill=SOFT, anchor='middle')
    svg.path('M524,%d H786' % (rank + 26), start=True)
    svg.text(670, rank + 19, 'UCX', 12, 'bold', anchor='middle')
    return top + 400


def draw_rooms(svg, layers, captions, y):
    svg.text(MARGIN, y, 'Rooms', 18, 'bold')
    svg.text(MARGIN + 76, y, 'an arrow: this room includes headers of that one; implied arrows are left out. Marks: processes that run the room', 13, fill='#555')
    svg.text(MARGIN, y + 56, 'launcher/: the executable xrun', 15, 'bold', '#2f6fb5')
    svg.text(WIDTH - MARGIN, y + 56, 'lib/, collectives/: librank', 15, 'bold', '#2e7d46', 'end')
    count = len(layers.rows)
    tops = {f: y + 44 + (count - 1 - f) * PITCH for f in range(count)}
    heights = {}
    for n in captions:
        heights[n] = 30 + LINE * len(wrap(captions[n][0], 23))

    def box_of(n):
        x, w = layers.x[n] - BOX / 2, BOX
        if n == 'lib/base':
            x, w = MARGIN, WIDTH - 2 * MARGIN
        return x, tops[layers.floor[n]], w, 48 if n == 'lib/base' else heights[n]

    def ports(n, others):
        """x of the ends of arrows at n, in the order of their other ends."""
        if not isinstance(n, str):
            return {o: layers.x[n] for o in others}
        x, _, w, _ = box_of(n)
        others = sorted(others, key=lambda o: layers.x[o])
        if n == 'lib/base':
            return {o: layers.x[o] for o in others}
        step = min(22, (w - 30) / max(1, len(others) - 1))
        return {o: x + w / 2 + (i - (len(others) - 1) / 2) * step for i, o in enumerate(others)}

    out = {n: ports(n, layers.down[n]) for n in layers.down}
    into = {n: ports(n, layers.up[n]) for n in layers.up}
    for chain in layers.chains:
        d = ''
        for a, b in zip(chain, chain[1:]):
            x1, x2 = out[a][b], into[b][a]
            if isinstance(a, str):
                _, top, _, h = box_of(a)
                y1 = top + h
                d = 'M%d,%d' % (round(x1), round(y1))
            else:
                y1 = tops[layers.floor[a]] + 80
                d += ' V%d' % round(y1)
            y2 = tops[layers.floor[b]] - (2 if isinstance(b, str) else 0)
            bend = tops[layers.floor[a]] + 80
            if y1 < bend:
                d += ' V%d' % bend
            middle = (bend + y2) / 2
            d += ' C%d,%d %d,%d %d,%d' % (round(x1), middle, round(x2), middle - 4, round(x2), round(y2))
        svg.path(d)

    for n, (caption, marks) in captions.items():
        x, top, w, h = box_of(n)
        fill, stroke = {0: ('#f3f7fc', '#2f6fb5')}.get(side(n), ('#f2f9f4', '#2e7d46'))
        if n in ('lib/base', 'lib/topo'):
            fill, stroke = '#fdf8ee', '#a07a1c'
        if not n.startswith('l') and n != 'collectives':
            fill, stroke = '#f7f7f7', '#777'
        svg.rect(x, top, w, h, fill, stroke, 'stroke-width="1.5"')
        short = n.split('/')[-1] if n != 'launcher' else 'main.c'
        svg.text(x + 9, top + 20, n if side(n) else short, 14, 'bold')
        for i, mark in enumerate(reversed(marks) if side(n) == 0 or n in ('lib/base', 'lib/topo') else []):
            svg.mark(x + w - 14 - 19 * i, top + 15, mark)
        for i, line in enumerate([caption] if n == 'lib/base' else wrap(caption, 23)):
            svg.text(x + 9, top + 38 + i * LINE, line, 12, fill=SOFT)
    return tops[0] + 48


def picture(graph, captions):
    order = list(captions)
    layers = Layers(reduced(graph), order, floors(graph))
    svg = Svg()
    bottom = draw_processes(svg, 34)
    bottom = draw_rooms(svg, layers, captions, bottom + 44)
    height = bottom + 24
    return '\n'.join([
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" '
        'font-family="DejaVu Sans, Verdana, Arial, sans-serif">' % (WIDTH, height, WIDTH, height),
        '<!-- Made by doc/architecture.py; run "make update-doc". -->',
        '<title>Processes of a job, and rooms of the tree</title>',
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 Z" fill="%s"/></marker></defs>' % PALE,
        '<rect width="100%" height="100%" fill="#fff"/>'] + svg.parts + ['</svg>', ''])


def with_calls(text, listed):
    """The document with the list of each room's calls from rooms.txt."""
    room = None
    lines = []
    for line in text.split('\n'):
        heading = re.match(r'### `([^`]+)`: ', line)
        room = heading[1] if heading else room
        if room and re.match(r'- (In: [FSAR ]+\. )?Calls: ', line):
            calls = ', '.join('`%s`' % re.sub('^launcher/', '', x) for x in listed[room]) or 'none'
            line = line.split('Calls: ')[0] + 'Calls: ' + calls + '.'
        lines.append(line)
    return '\n'.join(lines)


def main():
    src, out = sys.argv[1:]
    listed, graph = read_rooms(src)
    text, captions = read_text(src, listed)
    for name, content in (('architecture.svg', picture(graph, captions)), ('architecture.md', with_calls(text, listed))):
        with open(os.path.join(out, name + '.new'), 'w') as f:
            f.write(content)
        os.replace(os.path.join(out, name + '.new'), os.path.join(out, name))


main()
