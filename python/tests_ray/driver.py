"""One party of a run, in a process of its own.

On standard input as JSON: its party file, settings, workers, and the address of its cluster where it has one.
On standard output as lines of JSON: what happens, and at last its report or its error.
"""

import json
import sys

import tacit


def main() -> None:
    asked = json.load(sys.stdin)
    party = tacit.Party.load(asked["party"], **asked.get("settings", {}))
    how = {"workers": asked["workers"]}
    if "address" in asked:
        how = {"launcher": tacit.Ray(asked["address"], workers=asked["workers"], **asked.get("ray", {}))}

    def heard(event: tacit.Event) -> None:
        if event.kind in ("note", "warning", "units", "stage"):
            words = [event.kind, event.text or event.stage or "", event.rows, event.total, event.retries]
            print(json.dumps(words), flush=True)

    try:
        report = party.run(progress=heard, **how)
    except tacit.TacitError as error:
        said = {"error": type(error).__name__, "text": str(error), "step": error.step, "code": error.code}
        print(json.dumps(said), flush=True)
    else:
        print(json.dumps({"report": report.to_dict()}), flush=True)


if __name__ == "__main__":
    main()
