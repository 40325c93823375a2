#!/usr/bin/env python3
"""A simple, slow model of algorithm = shift in numpy, from its definition in cpu/MATHEMATICS.md. Writes the results with which
test_graph_recordings.py compares. Shares no code with the implementation.

    shift_model.py > ../data/expected_shift.txt

Needs numpy. Samples of recordings count as one interval apart, whatever their times."""

import numpy as np

from graph_model import write

CASES = [  # recording, detector keys
    ('CBF.txt', dict(window=20)),
    ('Coffee.txt', dict(window=10, alert=0.3)),
    ('Lightning2.txt', dict(window=45, stride=3, baseline=2)),
    ('ec2_request_latency_system_failure.csv', dict(window=20)),
    ('ec2_request_latency_system_failure.csv', dict(window=60, alert=0.3, hold=2, cooldown=100)),
    ('machine_temperature_system_failure.csv', dict(window=20, alert=0.4)),
]


def model(x, window, stride=None, baseline=25, alert=0.5, hold=1, cooldown=0):
    """Alerts, as (index of the point, index of the change), and the scores, by index of the point."""
    w, stride, x = window, stride or max(1, window // 20), x - x[0]
    span, smooth, levels = 2 * w + 4, -(-w // stride), np.linspace(.05, .95, 10)
    limit = 5 * alert / (1 - alert)
    mean = variance = before = 0.0
    raw, kept, alerts, scores = [], [], [], {}
    age = over = held = 0
    raised = quiet = None
    for i, value in enumerate(x):
        alerted = raised is not None
        if not alerted or held >= 2 * span:
            age = min(age + 1, baseline * span)
            off = value - mean
            mean += off / age
            variance = (1 - 1 / age) * (variance + off * off / age)
            held = held if alerted else 0
        else:
            held += 1
        above = None
        if i + 1 >= span and (i + 1 - span) % stride == 0:
            late, early = x[i + 1 - w:i + 1], x[i + 1 - 2 * w:i + 1 - w]
            apart = np.quantile(late, levels) - np.quantile(early, levels)
            raw.append(np.sqrt(np.mean(apart**2) / variance))
            if len(raw) >= smooth:
                smoothed = np.mean(raw[-smooth:])
                past = np.sort(kept[-400:])
                if len(past) >= 200:
                    middle = past[len(past) // 2]
                    spread = (past[(len(past) - 1) * 95 // 100] - middle) / 1.645
                    above = (smoothed - middle) / max(spread, .02)
                    scores[i] = max(above, 0) / (max(above, 0) + 5)
                kept.append(smoothed)
        was_quiet = quiet is not None and quiet > 0
        quiet = quiet - 1 if was_quiet else 0
        last, before = before, before if above is None else above
        if raised is not None:
            raised += 1
            if raised == 2 * w:
                raised, over, quiet = None, 0, cooldown
        elif above is not None:
            peak = over >= hold and above < last
            over = over + 1 if above > limit else 0
            if peak and not was_quiet:
                ago = int(np.argmax(raw[:-smooth - 1:-1]))
                alerts.append((i, i + 1 - w - ago * stride))
                raised = 0
    return alerts, scores


if __name__ == '__main__':
    write(CASES, model)
