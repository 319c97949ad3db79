#!/usr/bin/env python3
"""Alerts, their tests, the dashboard and the runbook belong together, and name only what a gateway shows.

docs/metrics.md is made from the table of /metrics, which a test compares; here every metric, label and value that an alert or a
panel names is looked up in it. Every alert has a case that fires, one that does not, and a part of docs/runbook.md; promtool
checks and runs the rest. Standard library, and promtool of Debian's prometheus; seconds.
"""
import json, pathlib, re, subprocess, sys

root = pathlib.Path(__file__).resolve().parents[2]
monitoring = root / "deploy/monitoring"
alerts, cases, runbook = ((root / name).read_text() for name in ("deploy/monitoring/alerts.yaml", "deploy/monitoring/alerts.test.yaml", "docs/runbook.md"))
dashboard = json.loads((monitoring / "dashboard.json").read_text())
PARTS = {"histogram": ("_bucket", "_sum", "_count")}
# What Prometheus itself adds.
ADDED = {"job", "instance", "le"}


def known():
    """Every sample with its labels and their values; None for values that are not listed."""
    metrics = {"up": {}}
    for part in (root / "docs/metrics.md").read_text().split("\n## `")[1:]:
        name, kind = re.match(r"(\w+)`\n\n(\w+)", part).groups()
        labels = part.split("\n")[2]
        values = {label: set(re.findall(r"`(\w+)`", listed)) or None for label, listed in re.findall(r"by `(\w+)`(?: \(([^)]*)\))?", labels)}
        for end in PARTS.get(kind, ("",)):
            metrics[name + end] = values
    return metrics


def faults_of(where, expression, metrics):
    for name, selector in re.findall(r"\b(countersign_\w+|up)\b(?:\{([^}]*)\})?", expression):
        if name not in metrics:
            yield f"{where}: no gateway shows {name}"
            continue
        for label, _, wanted in re.findall(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"', selector):
            listed = metrics[name].get(label)
            if label not in ADDED | set(metrics[name]):
                yield f"{where}: {name} has no label {label}"
            for value in wanted.split("|") if listed and not wanted.startswith("$") else []:
                if value not in listed:
                    yield f"{where}: {name} has no {label} “{value}”"


def all_faults():
    metrics = known()
    names = re.findall(r"- alert: (\w+)", alerts)
    expressions = re.findall(r"expr: (?:>\n)?((?:.|\n)*?)\n        for:", alerts)
    if not names or len(names) != len(expressions):
        yield f"alerts.yaml: {len(names)} names and {len(expressions)} expressions"
    for name, expression in zip(names, expressions):
        yield from faults_of(name, expression, metrics)
        if f"\n## {name}\n" not in runbook:
            yield f"docs/runbook.md: no part “{name}”"
        if f"runbook.html#{name.lower()}\n" not in alerts:
            yield f"{name}: its runbook_url leads elsewhere"
        if not re.search(rf"alertname: {name}\n\s+eval_time: \w+\n\s+exp_alerts:\n\s+- exp_labels", cases):
            yield f"alerts.test.yaml: no case in which {name} fires"
    for heading in re.findall(r"^## (Countersign\w+)$", runbook, re.M):
        if heading not in names:
            yield f"docs/runbook.md: there is no alert {heading}"
    series = set(re.findall(r"series: '(\w+)", cases))
    yield from (f"alerts.test.yaml: no gateway shows {name}" for name in sorted(series - set(metrics)))
    queries = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
    for title, expression in queries:
        yield from faults_of(f"panel “{title}”", expression, metrics)
    for heading in re.findall(r"#+ .*", runbook):
        yield from faults_of("docs/runbook.md", heading, metrics)
    for name in set(re.findall(r"\bcountersign_\w+", runbook)) - set(metrics) - {name.rsplit("_", 1)[0] for name in metrics}:
        yield f"docs/runbook.md: no gateway shows {name}"
    print(f"{len(names)} alerts and {len(queries)} queries of the dashboard name what a gateway shows")


faults = list(all_faults())
print(*faults, sep="\n", end="\n" if faults else "")
for command in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]):
    if subprocess.run(["promtool", *command], cwd=monitoring).returncode:
        faults.append(command)
sys.exit(1 if faults else 0)
