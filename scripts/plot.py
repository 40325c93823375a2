"""Plots a recording with its scores, labelled windows and alerts, for a terminal and as SVG. Standard library only.

A recording is a Recording below, from any source."""
import dataclasses
import datetime
import html

SECOND = 10**9
KINDS = ('behaviour', 'novelty')  # of alerts: those of a neighbour graph, those of what was never there before
INKS = (('yellow', '#e08a00'), ('blue', '#8e44ad'))  # on a terminal, and in a picture
BRAILLE = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # dots of a character: column, row


@dataclasses.dataclass
class Recording:
    sensor: str
    unit: str
    times: list    # ns
    values: list
    scores: list   # None where there is none
    windows: list  # (begin, end), ns: what people labelled
    alerts: list   # dictionaries: kind (index of KINDS), raised (ns), instant (ns), severity, before, after, cleared (ns or None)


def date(ns, form='%Y-%m-%d %H:%M'):
    return datetime.datetime.fromtimestamp(ns / SECOND, datetime.timezone.utc).strftime(form)


def ranges(times, values, columns):
    """For each column of the time axis the lowest and highest value in it, or None."""
    first, last = times[0], times[-1]
    out = [None] * columns
    for time, value in zip(times, values):
        if value is None:
            continue
        at = min(columns - 1, (time - first) * columns // (last - first + 1))
        low, high = out[at] or (value, value)
        out[at] = (min(low, value), max(high, value))
    return out


def nice_bounds(values):
    """Round numbers that enclose the values."""
    low, high = min(values), max(values)
    step = 1.0
    while (high - low) / step > 12:
        step *= 2 if str(step)[0] in '15' else 2.5
    while (high - low) / step < 4:
        step /= 2
    return step * (low // step), step * -(-high // step)


def dots(columns, bounds, rows, width):
    """Rows of braille characters that show the range of each column; neighbours are joined."""
    low, high = bounds
    cells = [[0] * width for _ in range(rows)]
    before = None
    for x, span in enumerate(columns):
        if span is None:
            before = None
            continue
        bottom, top = (min(4 * rows - 1, max(0, int((v - low) / (high - low) * 4 * rows))) for v in span)
        if before:  # no gap to the column on the left
            bottom, top = min(bottom, before[1]), max(top, before[0])
        before = (bottom, top)
        for y in range(bottom, top + 1):
            row = 4 * rows - 1 - y
            cells[row // 4][x // 2] |= BRAILLE[x % 2][row % 4]
    return [''.join(chr(0x2800 + c) if c else ' ' for c in row) for row in cells]


def bars(columns, rows):
    """Rows of blocks as high as each column's highest value, 0 to 1."""
    eighths = [round((span[1] if span else 0) * 8 * rows) for span in columns]
    return [''.join(' ▁▂▃▄▅▆▇█'[max(0, min(8, n - 8 * (rows - 1 - row)))] for n in eighths) for row in range(rows)]


def days(first, last, width):
    """(column, text) of a few days on the time axis."""
    day = 86400 * SECOND
    step = next(s for s in (1, 2, 5, 7, 14, 28, 56, 112, 10**6) if (last - first) / day / s <= width / 9)
    out, at = [], (first // day + 1) * day
    while at < last:
        out.append(((at - first) * width // (last - first + 1), date(at, '%d %b')))
        at += step * day
    return out


def terminal(r, width, paint):
    """Lines of text. paint(colour, text) colours it, or not."""
    margin = 11
    plot = max(20, width - margin)
    first, last = r.times[0], r.times[-1]
    low, high = nice_bounds([v for v in r.values if v is not None])

    def column(time):
        return min(plot - 1, max(0, (time - first) * plot // (last - first + 1)))

    lines = [paint('bold', f'{r.sensor}, {r.unit}')]
    rows = 8
    for i, row in enumerate(dots(ranges(r.times, r.values, 2 * plot), (low, high), rows, plot)):
        label = f'{high:g}' if i == 0 else f'{low:g}' if i == rows - 1 else f'{(low + high) / 2:g}' if i == rows // 2 else ''
        lines.append(f'{label:>{margin - 2}} ┤' + paint('blue', row))
    lines.append(paint('bold', 'score') + ', 0 to 1')
    rows = 3
    for i, row in enumerate(bars(ranges(r.times, r.scores, plot), rows)):
        label = '1' if i == 0 else '0' if i == rows - 1 else ''
        lines.append(f'{label:>{margin - 2}} ┤' + paint('green', row))
    labelled, alerts = [' '] * plot, [[' '] * plot for _ in KINDS]
    for begin, end in r.windows:
        for x in range(column(begin), column(end) + 1):
            labelled[x] = '▀'
    for number, (begin, _) in enumerate(r.windows, 1):
        labelled[column(begin)] = str(number)
    for alert in r.alerts:
        alerts[alert['kind']][column(alert['instant'])] = '▲'
    lines.append(f'{"labels":>{margin - 1}} ' + paint('red', ''.join(labelled).rstrip()))
    for kind, (ink, _), row in zip(KINDS, INKS, alerts):
        lines.append(f'{kind:>{margin - 1}} ' + paint(ink, ''.join(row).rstrip()))
    axis = [' '] * (plot + 8)
    for x, text in days(first, last, plot):
        if x + 8 <= plot:
            axis[x:x + len(text) + 1] = '╵' + text
    lines.append(' ' * margin + ''.join(axis).rstrip())
    return lines


def svg(r, caption):
    """The same as an SVG of 1000 x 500, for light and dark pages."""
    left, right, width = 56, 16, 1000
    plot = width - left - right
    value_top, value_height, score_top, score_height, rows = 54, 210, 300, 84, 15
    first, last = r.times[0], r.times[-1]
    low, high = nice_bounds([v for v in r.values if v is not None])

    def x(time):
        return left + plot * (time - first) / (last - first)

    def outline(columns, top, height, bottom, ceiling):
        """One path up along the highest and back along the lowest."""
        step = plot / len(columns)
        ends = [[(left + (i + 0.5) * step, top + height * (1 - (span[which] - bottom) / (ceiling - bottom)))
                 for i, span in enumerate(columns) if span] for which in (1, 0)]
        return 'M' + ' L'.join(f'{a:.1f} {b:.1f}' for a, b in ends[0] + ends[1][::-1]) + ' Z'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 500" width="{width}" height="500" role="img" '
           f'font-family="Helvetica,Arial,sans-serif" font-size="13" fill="#333">',
           f'<title>{html.escape(r.sensor)}: values, scores, labelled windows and alerts</title>',
           f'<rect width="{width}" height="500" rx="8" fill="#ffffff"/>',
           f'<text x="{left}" y="28" font-size="16" font-weight="bold">{html.escape(r.sensor)}, {html.escape(r.unit)}</text>',
           f'<text x="{width - right}" y="28" text-anchor="end" fill="#777">{html.escape(caption)}</text>']
    for number, (begin, end) in enumerate(r.windows, 1):
        out.append(f'<rect x="{x(begin):.1f}" y="{value_top}" width="{x(end) - x(begin):.1f}" '
                   f'height="{score_top + score_height - value_top}" fill="#d62728" fill-opacity=".13"/>')
        out.append(f'<text x="{(x(begin) + x(end)) / 2:.1f}" y="{value_top - 5}" text-anchor="middle" fill="#b02020" '
                   f'font-weight="bold">{number}</text>')
    for at, text in days(first, last, plot / 9):
        px = left + plot * at / (plot / 9)
        out.append(f'<path d="M{px:.1f} {value_top}V{score_top + score_height}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{px:.1f}" y="{score_top + score_height + 78}" text-anchor="middle" fill="#777">{text}</text>')
    for value in (low, (low + high) / 2, high):
        y = value_top + value_height * (1 - (value - low) / (high - low))
        out.append(f'<path d="M{left} {y:.1f}H{width - right}" stroke="#e4e4e4"/>'
                   f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#777">{value:g}</text>')
    for value in (0, 1):
        y = score_top + score_height * (1 - value)
        out.append(f'<path d="M{left} {y:.1f}H{width - right}" stroke="#cccccc"/>'
                   f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#777">{value}</text>')
    values = ranges(r.times, r.values, plot)
    out.append(f'<path d="{outline(values, value_top, value_height, low, high)}" fill="#1f5fa8" stroke="#1f5fa8" '
               'stroke-width="1" stroke-linejoin="round"/>')
    scores = [span and (0, span[1]) for span in ranges(r.times, r.scores, plot)]
    out.append(f'<text x="{left}" y="{score_top - 8}" font-weight="bold">change-point score</text>')
    out.append(f'<path d="{outline(scores, score_top, score_height, 0, 1)}" fill="#2a8f4c"/>')
    foot = score_top + score_height
    for alert in r.alerts:
        px = x(alert['instant'])
        out.append(f'<path d="M{px:.1f} {foot + 6 + rows * alert["kind"]}l5 10h-10z" fill="{INKS[alert["kind"]][1]}" stroke="#ffffff" '
                   'stroke-width=".6"/>')
    entries = [('an alert of the behaviour (graph)', 0), ('of what is new (novelty), at the estimated change instant', 1)]
    out.append(f'<g transform="translate({left} 488)"><rect y="-11" width="14" height="12" fill="#d62728" fill-opacity=".25"/>'
               '<text x="20">labelled by people</text>')
    for at, (text, kind) in zip((171, 410), entries):
        out.append(f'<path d="M{at} -11l5 10h-10z" fill="{INKS[kind][1]}"/><text x="{at + 13}">{text}</text>')
    out.append('</g>')
    out.append('</svg>')
    return '\n'.join(out) + '\n'
