#!/usr/bin/env python3
"""Recomputes the table of docs/sizing.md from its own assumptions and units, and looks the units up in docs/measurements-appendix.md.

Usage: check-sizing.py [--write]    puts the table in place, instead of comparing it
"""
import pathlib
import re
import sys

docs = pathlib.Path(__file__).resolve().parent.parent / "docs"
page, appendix = (docs / "sizing.md").read_text(), (docs / "measurements-appendix.md").read_text()
BEGIN, END = "<!-- computed by .ci/check-sizing.py --write -->\n", "\n## What runs out first"


def figure(name):
    """The first number of the second cell of the row that begins so."""
    row = re.search(rf"^\| {re.escape(name)}[^|]*\| \**([\d,.]+)", page, re.M)
    return float(row[1].replace(",", "")) if row else sys.exit(f"docs/sizing.md has no row “{name}”")


def unit(name, shown):
    """A figure that the appendix has too, as it is written."""
    value = figure(name)
    if shown.format(f"{value:,.0f}") not in appendix:
        sys.exit(f"docs/sizing.md: “{name}” is {value:,.0f}, and docs/measurements-appendix.md has no “{shown.format(f'{value:,.0f}')}”")
    return value


def amount(bytes_):
    for name, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if bytes_ >= size:
            return f"{bytes_ / size:.3g} {name}"
    return f"{bytes_:.0f} B"


def rate(value):
    return f"{value:.2g}/s" if value < 10 else f"{value:.0f}/s"


def table():
    a_day, hours, peak = figure("Requests that ask a person"), figure("Hours"), figure("The busiest moment")
    held, days, slack = figure("Connections held"), figure("Working days"), figure("Room")
    connection, carried = unit("Memory of a connection", "| TLS, WebSocket | {} B |"), unit("Exchanges a second", "| ours | {} |")
    whole, kept = unit("An exchange, whole", "| {} B |"), unit("An exchange, afterwards", "| {} B |")
    in_30, in_400 = 30 / 365.25 * 12 * days, 400 / 365.25 * 12 * days
    yield "| developers | connections | their memory | requests | at the busiest moment | of one gateway | disk |"
    yield "|---|---|---|---|---|---|---|"
    for people in (10, 100, 1_000, 10_000):
        daily = people * a_day
        mean = daily / hours / 3600
        disk = daily * (whole * in_30 + kept * (in_400 - in_30)) * slack
        yield (f"| {people:,} | {people * held:,.0f} | {amount(people * held * connection)} | {daily:,.0f} a day, {rate(mean)} | {rate(mean * peak)} "
               f"| {mean * peak / carried:.1%} | {amount(disk)} |")


computed = "\n".join(table()) + "\n"
before, rest = page.split(BEGIN)
written, after = rest.split(END)
if "--write" in sys.argv:
    (docs / "sizing.md").write_text(before + BEGIN + computed + END + after)
elif written != computed:
    sys.exit("docs/sizing.md: the table is not what its figures give; run .ci/check-sizing.py --write")
print("docs/sizing.md: the table is what its figures give, and they are those of the appendix")
