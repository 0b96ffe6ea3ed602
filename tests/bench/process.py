"""process: what the kernel tells about a process: CPU time and memory."""
import os
import time


def cpu_ms(pid):
    """(user, system) milliseconds that the process has computed for."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / tick * 1e3, int(fields[12]) / tick * 1e3


def cpu_exact_ms(pid):
    """The same together, to the nanosecond: its clock, as clock_getcpuclockid(3) names it."""
    return time.clock_gettime(~pid << 3 | 2) * 1e3


def memory(pid):
    """(resident now, resident at most so far) in bytes."""
    with open(f"/proc/{pid}/status") as file:
        told = dict(line.split(":", 1) for line in file)
    return tuple(int(told[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))


def family(pid):
    """The process and its children."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [pid, *map(int, file.read().split())]
