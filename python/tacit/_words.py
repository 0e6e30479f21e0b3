"""What messages say to do, in the words of this package: they come from where the command's come from."""

from __future__ import annotations

import re

_KEYWORDS = {"as": "as_", "allow-kind": "allow_kinds", "allow-study": "allow_studies"}


def _keyword(flag: str) -> str:
    return _KEYWORDS.get(flag, flag.replace("-", "_"))


def _bound(found: re.Match[str]) -> str:
    """A bound of the policy that has no keyword of its own: a flag of ``settings``."""
    return f'raise "{found[1].replace("_", "-")}" of settings={{...}} of the Party'


_AS_THEY_ARE = (
    (r"add data = \"\.\.\.\" to the party file, or --data to the command", "hand rows or a path to the call"),
    (r"add it to policy\.kinds", "add it to allow_kinds of the Party"),
    (r"(add its hash \S+) to policy\.studies", r"\1 to allow_studies of the Party"),
    (r"policy\.max_rho is (\S+) \(--max-rho\)", r"max_rho is \1"),
    (r"raise policy\.(budget|total)\b", r"raise \1 of the Party"),
    (r"raise policy\.(delta|runs|period_budget)\b", _bound),
    (r"the line `key` that it prints( into the study)", r"its fingerprint\1"),
    (r"`tacit (run|match)`", r"party.\1"),
    (r"name another with --out\b", "name another as out="),
    (r"(reading, and rows in `state`, come before it):\s+--prices\s+FILE\s+counts\s+them", r"\1: price=... counts them"),
    (r"else\s+say\s+--rows\b", "else say rows=(N, M)"),
    (r":\s+--json\s+has\s+them\.", ": the fields have them."),
    (r"\(--mean\s+(\S+)\s+is", r"(mean=\1 is"),
    (r"with\s+--mean\b", "with mean=X"),
    (r"check `as` in the party file", "check as_ of the Party"),
    (r"`?tacit check --peer-study(?: FILE)?`?", "study.check(peer=...)"),
    (r"add --data (\S+)=FILE, or --made-up ROWS", r'hand them over, {"\1": data}'),
    (r"`tacit keygen --out ([^`]+)`", r'tacit.keygen("\1")'),
    (r"`tacit keygen`", "tacit.keygen"),
    (r"(would be lost; )choose another file name", r"\1choose another, or take this key: Key.load(path)"),
    (r"`missing` behind the program's column", "`.missing()` behind the column"),
    (r"--(spend-anyway|new-lineage|new-ledger)\b", lambda found: f"{_keyword(found[1])}=True"),
    (r"--rows\s+N,M\b", "rows=(N, M)"),
    (r"--mean\s+X\b", "mean=X"),
    (r"tacit\s+run\s+PARTY_FILE", "party.run(data)"),
    (r"tacit\s+match\s+PARTY_FILE\s+--out\s+FILE", "party.match(data)"),
    (r"tacit\s+check\s+PARTY_FILE\s+rows=\(N, M\)", "party.check(data, rows=(N, M))"),
    (r"tacit\s+check\s+PARTY_FILE", "party.check(data)"),
)


def _setting(found: re.Match[str]) -> str:
    """``add lineage = "x" to the party file, or --lineage x to the command``: a keyword of Party."""
    return f"add {_keyword(found[1].replace('_', '-'))}={found[2]} to the Party"


def python_words(text: str) -> str:
    """A message of the command's, as this package says it."""
    for pattern, word in _AS_THEY_ARE:
        text = re.sub(pattern, word, text)
    text = re.sub(
        r"add ([\w-]+) = (\"[^\"]*\") to the party file, or (?:add )?--[\w-]+(?: \S+)? to the command",
        _setting,
        text,
    )
    text = re.sub(
        r"under \[format\] of the party file \(or --([\w-]+)[^)]*\)",
        lambda found: f'as settings={{"{found[1]}": ...}} of the Party',
        text,
    )
    return re.sub(r"'--([\w-]+)(?: <[^>]*>)?'", lambda found: f"`{_keyword(found[1])}`", text)
