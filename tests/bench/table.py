"""table: the lines that are printed: figure | ours | yardstick | ratio | wanted | met."""


def line(figure, ours, yardstick="", ratio="", wanted="", met=None):
    """`ratio` is a number, or text; `met` says whether it is what is wanted, if anything is."""
    if isinstance(ratio, float):
        ratio = f"{ratio:.3f}" if ratio < 1 else f"{ratio:.2f}"
    verdict = {None: "", True: "yes", False: "NO"}[met]
    print(f"{figure:<66} | {ours:>12} | {yardstick:>14} | {ratio:>7} | {wanted or '-':<9} "
          f"| {verdict}".rstrip(), flush=True)
