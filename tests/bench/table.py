"""table: the lines that are printed: figure | ours | yardstick | ratio | wanted | met."""
import re

VERDICTS = []  # of every figure of which something is wanted: is it met?


def line(figure, ours, yardstick="", ratio="", wanted="", met=None):
    """`ratio` is a number, or text; `met` says whether it is what is wanted, if anything is."""
    if isinstance(ratio, float):
        ratio = f"{ratio:.3f}" if ratio < 1 else f"{ratio:.2f}"
    verdict = {None: "", True: "yes", False: "NO"}[met]
    if met is not None:
        VERDICTS.append(bool(met))
    print(f"{figure:<66} | {ours:>12} | {yardstick:>14} | {ratio:>7} | {wanted or '-':<9} "
          f"| {verdict}".rstrip(), flush=True)


def _meets(condition, ours, ratio):
    """Of `>= 0.9 of its speed`, or `<= 64 MB`: a number with a unit is looked for in `ours`."""
    sign, bound, unit = re.match(r"([<>]=) ([\d.]+) ?(.*)", condition).groups()
    with_unit = re.search(rf"([\d.]+) {re.escape(unit)}(?![\w/])", ours) if unit else None
    value = float(with_unit.group(1) if with_unit else re.match(r"[\d.]+", ratio).group())
    return value >= float(bound) if sign == ">=" else value <= float(bound)


def judge(text):
    """A line as a program printed it, with the verdict that it may lack, which is counted."""
    fields = [field.strip() for field in text.split("|")]
    if len(fields) < 5 or fields[4][:2] not in ("<=", ">="):
        return text
    if len(fields) == 5:
        met = all(_meets(c, fields[1], fields[3]) for c in fields[4].split(", "))
        text += " | " + ("yes" if met else "NO")
    else:
        met = fields[5] == "yes"
    VERDICTS.append(met)
    return text


def summary():
    return f"{VERDICTS.count(False)} of {len(VERDICTS)} figures not met"
