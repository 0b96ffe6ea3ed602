"""table: the lines that are printed: workload | result | baseline | ratio | target | met."""
import re

VERDICTS = []  # for every line with a target: whether it is met


def line(workload, result, baseline="", ratio="", target="", met=None):
    """`ratio` is a number, or text; `met` says whether the target is met, if there is one."""
    if isinstance(ratio, float):
        ratio = f"{ratio:.3f}" if ratio < 1 else f"{ratio:.2f}"
    verdict = {None: "", True: "yes", False: "NO"}[met]
    if met is not None:
        VERDICTS.append(bool(met))
    print(f"{workload:<66} | {result:>12} | {baseline:>14} | {ratio:>7} | {target or '-':<9} "
          f"| {verdict}".rstrip(), flush=True)


def _meets(condition, result, ratio):
    """Whether `>= 0.9 of its speed`, or `<= 64 MB`, is met: a number with a unit is looked for in `result`."""
    sign, bound, unit = re.match(r"([<>]=) ([\d.]+) ?(.*)", condition).groups()
    with_unit = re.search(rf"([\d.]+) {re.escape(unit)}(?![\w/])", result) if unit else None
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
    return f"{VERDICTS.count(False)} of {len(VERDICTS)} targets not met"
