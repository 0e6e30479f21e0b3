"""One party of a run, in a process of its own.

On standard input as JSON: its party file, settings, workers, and the address of its cluster where it has one, and whether
what Ray carries is told.
On standard output as lines of JSON: what happens, and at last its report or its error.
"""

import json
import sys
from typing import Any

import tacit


def recorded() -> dict[str, list[Any]]:
    """What Ray carries from here on for this process: values that it packs, and values that it unpacks."""
    from ray._private.serialization import SerializationContext

    carried: dict[str, list[Any]] = {"sent": [], "received": []}
    pack, unpack = SerializationContext.serialize, SerializationContext.deserialize_objects

    def packed(self: Any, value: Any, *how: Any, **named: Any) -> Any:
        carried["sent"].append(value if isinstance(value, str) else repr(value))
        return pack(self, value, *how, **named)

    def unpacked(self: Any, *how: Any, **named: Any) -> Any:
        values = unpack(self, *how, **named)
        carried["received"] += [of._asdict() if hasattr(of, "_asdict") else repr(of) for of in values]
        return values

    SerializationContext.serialize, SerializationContext.deserialize_objects = packed, unpacked
    return carried


def main() -> None:
    asked = json.load(sys.stdin)
    party = tacit.Party.load(asked["party"], **asked.get("settings", {}))
    how = {"workers": asked["workers"]}
    carried = recorded() if asked.get("record") else None
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
        if carried is not None:
            print(json.dumps({"carried": carried}), flush=True)
        print(json.dumps({"report": report.to_dict()}), flush=True)


if __name__ == "__main__":
    main()
