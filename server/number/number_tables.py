"""Writes number_tables.c next to this file; tests/lint compares.

    python3 server/number/number_tables.py

The limits are those of number_tables.h.
"""
import os

POWER_MIN, POWER_MAX = -65, 45
DOUBLE_MIN, DOUBLE_MAX = -31, 45
LAYOUTS, LAYOUT_LAST, LAYOUT_SIZE = 14, 14, 32
NOTHING = 128  # for a shuffle: no byte


def lines(items, columns, width=0):
    """The items of a table, in columns as clang-format makes them."""
    rows = [items[i:i + columns] for i in range(0, len(items), columns)]
    return ["".join(f"{item + ',':{width}}" for item in row[:-1]) + row[-1] for row in rows]


def power(k):
    """The least 64-bit number with its top bit set that, scaled by a power of two, is not below
    10^k."""
    above, below = (10 ** k, 1) if k >= 0 else (1, 10 ** -k)
    shift = 64 - (above.bit_length() - below.bit_length())
    while True:
        top, bottom = above << max(shift, 0), below << max(-shift, 0)
        least = -(-top // bottom)
        if least < 1 << 63:
            shift += 1
        elif top // bottom >= 1 << 64:
            shift -= 1
        else:
            return least


def layout(point):
    """Which byte each byte of the text comes from: 0 is the dot, 15 the last digit."""
    shuffle = []
    for at in range(LAYOUT_SIZE):
        place = LAYOUT_LAST - at  # counted from the last digit's
        if place < 0:
            shuffle.append(NOTHING)
        elif place == point:
            shuffle.append(0)
        else:
            shuffle.append(at + 1 if place < point else at + 2)
    return [str(byte) for byte in shuffle]


def tables():
    powers = [f"0x{power(k):016x}" for k in range(POWER_MIN, POWER_MAX + 1)]
    doubles = [f"1e{k}" for k in range(DOUBLE_MIN, DOUBLE_MAX + 1)]
    layouts = [",\n     ".join(lines(layout(point), 16, 5)) for point in range(LAYOUTS)]
    return ("/* number_tables: powers of ten and shuffles, by number_tables.py;\n"
            " * tests/unit/test_number.c proves every entry of the first table. */\n"
            '#include "server/number/number_tables.h"\n'
            "\n"
            "const uint64_t number_powers[NUMBER_POWER_MAX - NUMBER_POWER_MIN + 1] = {\n"
            + "".join(f"    {line},\n" for line in lines(powers, 4, 20)) + "};\n"
            "\n"
            "#if defined(__x86_64__)\n"
            "const double number_power_doubles[NUMBER_DOUBLE_MAX - NUMBER_DOUBLE_MIN + 1] = {\n"
            + "".join(f"    {line},\n" for line in lines(doubles, 13, 7)) + "};\n"
            "\n"
            "const uint8_t number_layouts[NUMBER_LAYOUTS][32] = {\n"
            + "".join(f"    {{{row}}},\n" for row in layouts) + "};\n"
            "#endif\n")


TABLES = {"number_tables.c": tables}


def main():
    for name, table in TABLES.items():
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "w") as file:
            file.write(table())


if __name__ == "__main__":
    main()
