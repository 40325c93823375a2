#!/usr/bin/env python3
"""A simple, slow model of algorithm = graph in numpy, from its definition in cpu/MATHEMATICS.md. Writes the results with which
test_graph_recordings.py compares. Shares no code with the implementation.

    graph_model.py > ../data/expected_graph.txt

Needs numpy. Samples of recordings count as one interval apart, whatever their times."""
import csv
import os

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data')
CASES = [  # recording, detector keys
    ('CBF.txt', dict(window=20)),
    ('CBF.txt', dict(window=20, level=0.1)),
    ('CBF.txt', dict(window=20, roughness=0.85)),
    ('Coffee.txt', dict(window=10)),
    ('Coffee.txt', dict(window=10, neighbours=5, stride=1)),
    ('Lightning2.txt', dict(window=20)),
    ('Lightning2.txt', dict(window=16, resident=300, neighbours=2, alert=0.4)),
    ('ec2_request_latency_system_failure.csv', dict(window=20)),
    ('machine_temperature_system_failure.csv', dict(window=20)),
    ('machine_temperature_system_failure.csv', dict(window=50, resident=1000, level=0.1)),
    ('machine_temperature_system_failure.csv', dict(window='auto')),
    ('CBF.txt', dict(window='auto', resident=600, alert=0.45)),
    ('Coffee.txt', dict(window='auto', resident=800)),
    ('Coffee.txt', dict(window='auto', resident=800, roughness=0.85)),
    ('Coffee.txt', dict(window='auto', resident=800, roughness=0.85, shortest=2, alert=0.4)),
    ('CBF.txt', dict(window=20, shortest=3, alert=0.4)),
    ('rogue_agent_key_hold.csv', dict(window=20, shortest=2)),
    ('CBF.txt', dict(window=24, locality=0.3)),
    ('Lightning2.txt', dict(window=16, resident=300, neighbours=2, locality=1.5, alert=0.3)),
    ('machine_temperature_system_failure.csv', dict(window='auto', roughness=0.85, shortest=2, locality=0.2)),
]


def values(recording):
    with open(os.path.join(DATA, recording)) as f:
        if recording.endswith('.txt'):
            return np.array([float(line) for line in f if line.strip()])
        return np.array([float(row['value']) for row in csv.DictReader(f)])


def half_a_period(x, widest):
    """The window found from a sensor's first samples."""
    x = x - x.mean()
    lags = min(2 * widest + 2, len(x) // 2)
    like = np.array([x[:len(x) - lag] @ x[lag:] / (len(x) - lag) for lag in range(lags)])
    like /= like[0]
    for lag in range(16, lags - 1):
        if like[lag - 1] <= like[lag] > like[lag + 1] and like[lag] > 0.2 and like[lag] - like[:lag].min() > 0.1:
            return min(lag // 2, widest)
    return min(20, widest)


def best_split(middle, shortest):
    """The best division of all windows into two parts, by the F1 score of predicting each window's part from its middle
    neighbour: the first window of the later part, how many windows of the later part have their neighbour there, and how many
    of the earlier part do."""
    live, best = len(middle), (-1, 0, 0, 0)
    own = np.arange(live)
    for s in range(shortest, live - shortest + 1):
        called = middle >= s
        truly = own >= s
        right, crossing = np.sum(called & truly), np.sum(called & ~truly)
        left, wrong = s - crossing, crossing + np.sum(~called & truly)
        f1 = left / (2 * left + wrong + 1e-9) + right / (2 * right + wrong + 1e-9)
        if f1 > best[0]:
            best = (f1, s, right, crossing)
    return best[1:]


def model(x, window, resident=1500, neighbours=3, level=0.0, roughness=0.0, shortest=5, locality=0.0, stride=None, alert=0.5):
    """Alerts, as (index of the point, index of the change), and the scores, by index of the point."""
    k, max_fill, learn = neighbours, 3, 0
    x = x - x[0]
    if window == 'auto':
        learn = min(400, resident)
        window = half_a_period(x[:learn], resident // 11)
    w = window
    stride = stride or w // 4
    nodes, shortest, unit = len(x) - w + 1, shortest * w, 16 * (w / 10) ** 0.15
    pieces = np.lib.stride_tricks.sliding_window_view(x, w)
    mean, spread, trait = pieces.mean(axis=1), np.zeros(nodes), np.zeros(nodes)
    near, who = np.full((nodes, k), -np.inf), np.full((nodes, k), -1)
    low, alerts, scores = 0, [], {}
    for c in range(nodes):
        end = c + w
        if c % w == 0:
            measured = x[max(0, end - resident - max_fill):end].std()
        own = pieces[c].std()
        running = max(measured, own, abs(mean[c]) * 2.0**-20, 2.0**-100)
        least = max(abs(mean[c]) * 2.0**-20, 2.0**-100)
        floor = max(1e-3 * running, least)
        spread[c] = max(own, floor)
        steps = max(np.sqrt(np.mean(np.diff(pieces[c]) ** 2)), floor)
        trait[c] = np.log(spread[c]) - roughness * np.log(steps / spread[c])
        if own < least:
            spread[c], trait[c] = np.inf, np.log(2.0**-100)
        low = max(low, c - (resident - w) + 1)
        others = np.arange(low, c - w // 2 + 1)
        if len(others):
            like = pieces[others] @ (pieces[c] - mean[c]) / (w * spread[others] * spread[c])
            like -= 0.2 * (trait[others] - trait[c]) ** 2 + level * ((mean[others] - mean[c]) / running) ** 2
            like -= np.where(c - others < 2 * w, locality * (1 - like), 0)
            order = np.argsort(-like, kind='stable')[:k]
            near[c, :len(order)], who[c, :len(order)] = like[order], others[order]
            for at in np.nonzero(like > near[others, -1])[0]:
                j, place = others[at], int(np.sum(near[others[at]] >= like[at]))
                near[j] = np.insert(near[j], place, like[at])[:k]
                who[j] = np.insert(who[j], place, c)[:k]
        live = c - low + 1
        if ((c + 1) % stride and end != learn) or end < learn or live < 2 * shortest:
            continue
        s, right, crossing = best_split(np.sort(who[low:c + 1], axis=1)[:, k - (k + 1) // 2] - low, shortest)
        share = (right + crossing) / live
        z = (right / (live - s) - crossing / s) / np.sqrt(share * (1 - share) * (1 / s + 1 / (live - s)) + 1e-9)
        shorter = min(s, live - s)
        if shorter < 5 * w:
            z /= 1 + 0.4 * (5 * w / shorter - 1)
        scores[end - 1] = max(z, 0) / (max(z, 0) + unit)
        if z * (1 - alert) > unit * alert:
            alerts.append((end - 1, low + s))
            low += s
            for i in range(low, c + 1):
                kept = who[i] >= low
                n = int(kept.sum())
                near[i, :n], who[i, :n] = near[i, kept], who[i, kept]
                near[i, n:], who[i, n:] = -np.inf, -1
    return alerts, scores


def write(cases, model):
    """Writes the expected file, with one line for each case."""
    print('# recording | detector keys | alerts, point:change | scores, their mean and their largest')
    for recording, keys in cases:
        alerts, scores = model(values(recording), **keys)
        text = ','.join(f'{name}={value}' for name, value in keys.items())
        found = ' '.join(f'{at}:{change}' for at, change in alerts)
        numbers = list(scores.values())
        print(f'{recording} | {text} | {found} | {len(numbers)} {np.mean(numbers):.7f} {np.max(numbers):.7f}', flush=True)


if __name__ == '__main__':
    write(CASES, model)
