"""blas: OpenBLAS as a yardstick must run the kernels of this processor.

An OpenBLAS older than the processor takes it for one of long ago and computes at a quarter of its
speed; it can be told otherwise only before a program starts.
"""
import os
import subprocess
import sys

OLD = {"prescott", "core2", "penryn", "dunnington", "nehalem", "atom", "katmai", "coppermine",
       "northwood", "banias", "opteron_sse3"}
ASK = ("import ctypes; blas = ctypes.CDLL('libopenblas.so.0'); "
       "blas.openblas_get_corename.restype = ctypes.c_char_p; "
       "print(blas.openblas_get_corename().decode())")


def core():
    """What OpenBLAS takes the processor for, or None."""
    done = subprocess.run([sys.executable, "-c", ASK], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode().strip() or None


def correct():
    """Sets OPENBLAS_CORETYPE for the programs to come, where OpenBLAS is wrong; says so."""
    taken = core()
    if not taken or taken.lower() not in OLD:
        return
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((l for l in file if l.startswith("flags")), "").split()
    except OSError:
        return
    right = "SKYLAKEX" if "avx512vl" in flags else "HASWELL" if "avx2" in flags else None
    if "OPENBLAS_CORETYPE" in os.environ or not right:
        print(f"# OpenBLAS computes as for {taken}: a slow yardstick, if it is one here")
        return
    os.environ["OPENBLAS_CORETYPE"] = right
    print(f"# OpenBLAS took this processor for {taken}: started with OPENBLAS_CORETYPE={right}")
