"""The worked programs of docs/questions.md against numpy.

Reads what `crates/job/tests/questions.rs` (`numbers_for_numpy`) wrote: both parties' files and what the programs
derived from noised sums. Every number has to be within five standard deviations of its noise of what numpy makes
of the rows that both files have; an interval has to hold a quartile. Of other rows each statistic has to be found
wrong, so that what agrees says something.
"""

import csv
import json
import pathlib
import sys

import numpy as np

DOSES = ["none", "low", "high"]


def read(folder, name):
    with open(folder / name, newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def columns(folder):
    """By column, over the people whom both files have."""
    registry, trial = read(folder, "registry.csv"), read(folder, "trial.csv")
    both = [{**registry[key], **trial[key]} for key in registry.keys() & trial.keys()]
    number = lambda name: np.array([float(row[name]) if row[name] else np.nan for row in both])
    return {
        "ill": np.array([row["ill"] == "yes" for row in both]),
        "treated": np.array([row["treated"] == "1" for row in both]),
        "dose": np.array([row["dose"] for row in both]),
        "cost": number("cost"),
        "age": number("age"),
        "pressure": number("pressure"),
    }


def table_by_treatment(data):
    ill, treated = data["ill"], data["treated"]
    words = lambda treated, ill: f"{'' if treated else 'not '}treated, {'' if ill else 'not '}ill"
    counts = {(t, i): np.sum((treated == t) & (ill == i)) for t in (False, True) for i in (False, True)}
    truth = {f"rows, {words(t, i)}": count for (t, i), count in counts.items()}
    a, b = np.mean(ill[treated]), np.mean(ill[~treated])
    truth["share of ill, treated"], truth["share of ill, not treated"] = a, b
    of = "of ill, treated against not treated"
    truth[f"risk-difference {of}"] = a - b
    truth[f"risk-ratio {of}"] = a / b
    truth[f"odds-ratio {of}"] = a / (1 - a) / (b / (1 - b))
    truth[f"needed-to-treat {of}"] = 1 / (a - b)
    return truth


def truth_of(data):
    truth = table_by_treatment(data)
    cost = np.clip(data["cost"], -50, 450)
    for dose in DOSES:
        own = cost[data["dose"] == dose]
        truth[f"mean of cost, dose = {dose}"] = np.mean(own)
        truth[f"variance of cost, dose = {dose}"] = np.var(own, ddof=1)
        difference = np.mean(own) - np.mean(cost[data["dose"] == "none"])
        truth[f"difference of cost, dose = {dose} against dose = none"] = difference
    edges = [-50, 0, 50, 100, 200, 450]
    for low, high, count in zip(edges, edges[1:], np.histogram(data["cost"], edges)[0]):
        truth[f"rows, cost {low} to {high}"] = count
    ages = [18, 40, 55, 70, 90]
    for low, high in zip(ages, ages[1:]):
        inside = (data["age"] >= low) & (data["age"] < high)
        share = lambda dose: np.mean(data["ill"][inside & (data["dose"] == dose)])
        for dose in DOSES:
            age = f"age {low} to {high}"
            truth[f"share of ill, dose = {dose}, {age}"] = share(dose)
            against = f"dose = {dose} against dose = none, {age}"
            truth[f"risk-difference of ill, {against}"] = share(dose) - share("none")
    known = ~np.isnan(data["pressure"])
    pressure = np.clip(data["pressure"][known], 90, 190)
    design = np.column_stack([np.ones(known.sum()), data["treated"][known], pressure])
    fitted = np.linalg.lstsq(design, cost[known], rcond=None)[0]
    names = ["constant of cost", "cost by treated", "cost by pressure"]
    truth.update(zip(names, fitted))
    truth["correlation of cost with pressure"] = np.corrcoef(cost[known], pressure)[0, 1]
    return truth


def other(data):
    """Rows of which no statistic is that of `data`."""
    others = {"ill": ~data["ill"], "treated": ~data["treated"], "cost": 2 * data["cost"] + 25}
    return {**data, **others, "pressure": 280 - data["pressure"]}


def check(data, derived):
    truth, wrong = truth_of(data), []
    for number in derived:
        label = number["label"]
        if number["statistic"] == "quantile":
            share = {"1/4": 0.25, "3/4": 0.75}.get(label.split()[1], 0.5)
            low, high = number["intervals"][0]
            fine = low <= np.quantile(data["cost"], share) <= high
        else:
            fine = abs(number["value"] - truth[label]) <= number["noise"] * 5 / 1.96 + 1e-9 * abs(truth[label])
        if not fine:
            wrong.append((number["statistic"], f"{label}: {number} where numpy has {truth.get(label)}"))
    return wrong


def main():
    folder = pathlib.Path(sys.argv[1])
    derived = json.loads((folder / "derived.json").read_text(encoding="utf-8"))
    data = columns(folder)
    wrong = check(data, derived)
    found = check(other(data), derived)
    blind = {number["statistic"] for number in derived} - {statistic for statistic, _ in found}
    for _, text in wrong:
        print(text)
    if blind:
        print("agree with other rows, too:", ", ".join(sorted(blind)))
    if not wrong and not blind:
        print(f"{len(derived)} numbers of five programs agree with numpy, and {len(found)} of them not with other rows")
    sys.exit(bool(wrong or blind) or len(derived) < 40)


main()
