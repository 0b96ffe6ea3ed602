"""abuse: what others get while a server is attacked, or has more clients than it can serve."""
import os

from attackers import (ATTACKS, CROWD, CROWDED, DEADLINE, EACH, SETTINGS, Slowly, crowd,
                       crowd_body, percentile)
from process import memory
from support import Server
from table import line


def slow(folder):
    """Three attacks of slowhttptest at the same time; a client with a toy request meanwhile."""
    server = Server(dict(SETTINGS, max_connections=4 * EACH))
    quiet = Slowly(server)
    for _ in range(1000):
        quiet.ask_once()
    attack = Slowly(server)
    attack.begin(folder)
    ended = attack.ask()
    attack.end()
    server.stop()
    most, failed = len(ATTACKS) * EACH, len(attack.failures)
    line(f"connections held under slow attack (-H, -B, -X of {EACH} each)", f"{attack.most:.0f}",
         f"{most}", attack.most / most)
    closed = f"{ended:.1f} s" if ended else "never"
    line("all of them closed after; the deadline, and a second to begin", closed,
         f"{DEADLINE + 1:.1f} s", (ended or 1e9) / (DEADLINE + 1), "closed", ended is not None)
    line("answers of a normal client meanwhile; failed ones",
         f"{len(attack.waits) - failed}", f"{failed}", "", "none", failed == 0)
    ours, alone = (percentile(x.waits, 0.99) * 1e3 for x in (attack, quiet))
    line("its 99th percentile; without an attack", f"{ours:.1f} ms", f"{alone:.1f} ms",
         ours / alone)


def overload(folder):
    """Turns of 64 clients, whom the server can just serve, and of a crowd; the best turn of each."""
    body = crowd_body(folder)
    server = Server(CROWDED)
    crowd(server.port, body, 64, 1)
    rates, came = {64: 0, CROWD: 0}, {}
    for _ in range(3):
        for clients in rates:
            told = crowd(server.port, body, clients, 5)
            rate = told["good"] / told["us"] * 1e6
            if rate >= rates[clients]:
                rates[clients], came[clients] = rate, told
    again = [crowd(server.port, body, 64, 1) for _ in range(2)]
    after = max(told["good"] / told["us"] * 1e6 for told in again)
    resident = memory(server.pid)[1]
    server.stop()
    told, ratio = came[CROWD], rates[CROWD] / rates[64]
    line(f"answers under overload ({CROWD} clients, a queue of {CROWDED['max_queue']}); 64 clients",
         f"{rates[CROWD]:.0f} /s", f"{rates[64]:.0f} /s", ratio, ">= 0.8", ratio >= 0.8)
    bad = told["other"] + told["broken"]
    line("neither 200 nor 429, and broken connections; refused ones", f"{bad}",
         f"{told['refused'] / told['us'] * 1e6:.0f} /s", "", "none", bad == 0)
    line("answers within two seconds after it, the better one; 64 clients", f"{after:.0f} /s", f"{rates[64]:.0f} /s",
         after / rates[64], ">= 0.9", after >= 0.9 * rates[64])
    print(f"    requests of {os.path.getsize(body) / 1e3:.0f} kB; resident at most "
          f"{resident / 1e6:.0f} MB")
