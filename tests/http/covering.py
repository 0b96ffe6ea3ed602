"""covering: a small table of combinations that still has every three levels of its factors."""
from itertools import combinations, product


def covering(factors, allowed, strength=3):
    """Rows as dicts, factor -> level, such that any `strength` levels of different factors that are
    allowed together stand in some row, and every row is allowed. `factors` maps names to lists of
    levels; `allowed` judges rows, also such as are not yet whole. The same every time."""
    left = {}  # what is not covered yet, in order: frozensets of (factor, level)
    for names in combinations(factors, strength):
        for levels in product(*(factors[name] for name in names)):
            if allowed(dict(zip(names, levels))):
                left[frozenset(zip(names, levels))] = None
    rows = []
    while left:
        row = dict(next(iter(left)))
        missing = [name for name in factors if name not in row]
        for name in sorted(missing, key=lambda name: -len(factors[name])):  # the hardest first
            choices = [level for level in factors[name] if allowed({**row, name: level})]
            row[name] = max(choices, key=lambda level: gain(row, (name, level), strength, left))
        for group in combinations(row.items(), strength):
            left.pop(frozenset(group), None)
        rows.append({name: row[name] for name in factors})
    return rows


def gain(row, pair, strength, left):
    """How much more is covered with one more level in a row."""
    return sum(frozenset(group + (pair,)) in left for group in combinations(row.items(),
                                                                            strength - 1))
