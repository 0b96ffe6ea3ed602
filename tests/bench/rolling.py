"""rolling: requests served, and lost, while three attends behind HAProxy are restarted and killed."""
import time

from fleet import Clients, Fleet, Wrk
from table import line

ROUNDS = 5   # of three restarts each
KILLED = 10  # with -9


def under_load(fleet, what):
    """(answered, lost, seconds) of wrk and of clients that look at each byte."""
    wrk, clients = Wrk(fleet.proxy, 16), Clients(fleet.proxy, 4)
    begun = time.monotonic()
    try:
        what()
    finally:
        seconds = time.monotonic() - begun
        answered, lost = clients.end()
        by_wrk, lost_by_wrk = wrk.end()
    for problem in lost[:10]:
        print(problem)
    return answered + by_wrk, len(lost) + lost_by_wrk, seconds


def report(title, count, result):
    answered, lost, seconds = result
    line(f"{title}: served in {seconds:.0f} s", f"{answered}")
    line(f"{title}: lost in {count}", f"{lost}", "", "", "0", lost == 0)


def rolling(folder):
    """Through docker/haproxy.cfg, TLS and all."""
    del folder
    fleet = Fleet()

    def restarts():
        for i in range(3 * ROUNDS):
            fleet.restart(i % 3)

    def kills():
        for i in range(KILLED):
            fleet.kill(i % 3)
            fleet.proxy.wait(f"replica{i % 3}", "DOWN")
            fleet.start(i % 3)

    try:
        report("rolling restart of three replicas", f"{3 * ROUNDS} restarts",
               under_load(fleet, restarts))
        report("replicas killed", f"{KILLED} kills", under_load(fleet, kills))
    finally:
        fleet.end()
