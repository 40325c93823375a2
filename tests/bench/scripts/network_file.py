"""Makes up a network of pipes and writes it as a model file: nodes on a jittered grid, pipes along a random tree of its edges and a
share of the other edges, two tanks, some large customers with meters, and unmetered demand at all other nodes."""
import math
import random


def town(side, seed, customers=4, pressures=6, loops=0.2, metered=0.6, flow=200.0, spacing=120.0):
    """Returns the lines of the file, and the nodes that may leak. flow: total demand in l/s, of which the share
    `metered` is metered."""
    chance = random.Random(seed)
    n = side * side
    name = [f'n{i}' for i in range(n)]
    grid = [(i, i + 1) for i in range(n) if (i + 1) % side] + [(i, i + side) for i in range(n - side)]
    chance.shuffle(grid)
    root, edges = list(range(n)), []

    def find(i):
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i
    for a, b in grid:
        if find(a) != find(b):
            root[find(a)] = find(b)
        elif chance.random() >= loops:
            continue
        edges.append((a, b))
    tanks = [0, n - 1]
    rest = [i for i in range(n) if i not in tanks]
    chance.shuffle(rest)
    large, gauges = rest[:customers], rest[customers:customers + pressures]
    # pipes are as wide as the number of nodes that hang on them in a tree from tank 0 requires, so that pressure remains at the
    # customers
    near = {i: [] for i in range(n)}
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    order, parent = [0], {0: None}
    for i in order:
        for j in near[i]:
            if j not in parent:
                parent[j] = i
                order.append(j)
    load = [1.0 if i not in large else n * metered / customers for i in range(n)]
    for i in reversed(order[1:]):
        load[parent[i]] += load[i]
    total = load[0]

    def diameter(a, b):
        share = (load[b] if parent[b] == a else load[a] if parent[a] == b else 1.0) / total
        return max(0.1, round(math.sqrt(4 / math.pi * 1.2 * share * flow / 1000 / 0.8), 3))  # at about 0.8 m/s
    lines = ['kind network', 'units bar l/s']
    for a, b in edges:
        length = round(spacing * (0.7 + 0.6 * chance.random()), 1)
        lines.append(f'edge {name[a]} {name[b]} {length} {diameter(a, b)} {0.018 + 0.008 * chance.random():.4f} {chance.choice([450, 1000, 1100])} 1')
    lines += [f'height {name[i]} {10 * chance.random():.1f}' for i in range(n) if i not in tanks]
    lines += [f'height {name[i]} 60' for i in tanks]
    weight = {i: chance.random() for i in rest[customers:]}
    scale = flow * (1 - metered) / sum(weight.values())
    lines += [f'demand {name[i]} {w * scale:.4f}' for i, w in weight.items()]
    lines += [f'sensor tank{k}.p p {name[i]} boundary\nsensor tank{k}.q in {name[i]} check' for k, i in enumerate(tanks)]
    lines += [f'sensor meter{k} out {name[i]} boundary' for k, i in enumerate(large)]
    lines += [f'sensor gauge{k} p {name[i]} check' for k, i in enumerate(gauges)]
    return '\n'.join(lines) + '\n', [name[i] for i in rest[customers + pressures:]]


if __name__ == '__main__':
    import sys
    print(town(int(sys.argv[1]), int(sys.argv[2]))[0], end='')
