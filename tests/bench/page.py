"""page: what the page weighs, and whether it keeps up with 32 heads of 512 queries and keys, and with
144 of a whole model."""
import os
import re
import subprocess

from support import ROOT
from table import line

STUTTER = 50  # ms: what people begin to see of a frame that comes late
LIMIT = 80000  # bytes
OPENED, TYPED = 300, 100  # ms


def page(_folder):
    out = subprocess.run(["node", os.path.join(ROOT, "tests", "bench", "page.mjs")],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    told = {name: float(value) for name, value in re.findall(r"^figure (\w+) (\S+)$", out, re.M)}
    line("the page as sent, kB", f"{told['sent'] / 1000:.1f}", "", "", f"<= {LIMIT // 1000}",
         told["sent"] <= LIMIT)
    line("the page unpacked, kB", f"{told['plain'] / 1000:.1f}", "", "", "", None)
    line("32 heads of 512 x 512, from answer to picture, ms", f"{told['shown']:.0f}", "", "", "", None)
    for name, what in (("tiles", "scrolling the small ones"), ("hover", "hovering over the large one"),
                       ("scroll", "scrolling the large one"), ("head", "going from head to head"),
                       ("whole", "hovering, 144 heads of a model following")):
        longest = told[f"{name}_longest"]
        line(f"{what}: longest frame (95 % below), ms", f"{longest:.1f} ({told[f'{name}_p95']:.1f})",
             "", "", f"<= {STUTTER}", longest <= STUTTER)
        line(f"{what}: script of a frame, ms", f"{told[f'{name}_script']:.2f}", "", "", "", None)
    for name, what, limit in (("opened", "from the address to the first arcs, cold", OPENED),
                              ("typed", "from a typed word to its arcs", TYPED)):
        line(f"{what}: median (longest), ms", f"{told[name]:.0f} ({told[name + '_longest']:.0f})", "", "",
             f"<= {limit}", told[name] <= limit)
