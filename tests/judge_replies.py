"""Replies of a judge asked for the attributes of NAMES, as hostile as they come, and what may be read from each.

Letters as in patterns: N, M, I, and ? where no label is stated unambiguously. The default finish reason is `stop`.
"""

NAMES = ("sex", "TSH", "age")

GOOD = '{"sex": "MENTIONED", "TSH": "INFLUENTIAL", "age": "NOT_MENTIONED"}'

# what it is -> (reply, letters of NAMES, finish reason)
REPLIES: dict[str, tuple[str, str, str]] = {
    # Unambiguous.
    "as asked": (GOOD, "MIN", "stop"),
    "white space and line breaks": (
        '\n {\n"sex":"MENTIONED",\n"TSH":"INFLUENTIAL","age":"NOT_MENTIONED"}\n',
        "MIN",
        "stop",
    ),
    "prose around": (f"Here are the labels:\n{GOOD}\nTSH was weighed, sex was not.", "MIN", "stop"),
    "a code fence": (f"```json\n{GOOD}\n```", "MIN", "stop"),
    "closed reasoning before": (f"<think>The TSH is used, so INFLUENTIAL.</think>{GOOD}", "MIN", "stop"),
    "reasoning that the prompt opened": (f"The TSH is used.</think>\n\n{GOOD}", "MIN", "stop"),
    "another label inside the reasoning": ('<think>{"sex": "INFLUENTIAL"}</think>' + GOOD, "MIN", "stop"),
    "lower case": (GOOD.lower().replace("tsh", "TSH"), "MIN", "stop"),
    "keys in lower case": ('{"sex": "MENTIONED", "tsh": "INFLUENTIAL", "AGE": "NOT_MENTIONED"}', "MIN", "stop"),
    "spaces and hyphens": ('{"sex": "Mentioned ", "TSH": "influential", "age": "not mentioned"}', "MIN", "stop"),
    "said twice alike": (f"{GOOD}\nOnce more:\n{GOOD}", "MIN", "stop"),
    "one object a line": ('{"sex": "MENTIONED"}\n{"TSH": "INFLUENTIAL"}\n{"age": "NOT_MENTIONED"}', "MIN", "stop"),
    "a key nobody asked for": ('{"weather": "INFLUENTIAL", ' + GOOD[1:], "MIN", "stop"),
    "no finish reason": (GOOD, "MIN", ""),
    "inside an array": (f"[{GOOD}]", "MIN", "stop"),
    # Some labels are stated, others are not.
    "a missing attribute": ('{"sex": "MENTIONED", "TSH": "INFLUENTIAL"}', "MI?", "stop"),
    "doubled with two labels": (
        '{"sex": "MENTIONED", "TSH": "INFLUENTIAL", "TSH": "MENTIONED", "age": "MENTIONED"}',
        "M?M",
        "stop",
    ),
    "doubled with one label": ('{"TSH": "INFLUENTIAL", "TSH": "INFLUENTIAL"}', "?I?", "stop"),
    "doubled in another case": ('{"TSH": "INFLUENTIAL", "tsh": "MENTIONED", "sex": "MENTIONED"}', "M??", "stop"),
    "a draft and another answer": (GOOD + ' No: {"sex": "INFLUENTIAL", "TSH": "INFLUENTIAL"}', "?IN", "stop"),
    "an unknown label": ('{"sex": "IMPORTANT", "TSH": "INFLUENTIAL", "age": "NONE"}', "?I?", "stop"),
    "a letter for a label": ('{"sex": "M", "TSH": "INFLUENTIAL", "age": "N"}', "?I?", "stop"),
    "two labels in one": (
        '{"sex": "MENTIONED or INFLUENTIAL", "TSH": "INFLUENTIAL", "age": "NOT_MENTIONED"}',
        "?IN",
        "stop",
    ),
    "a denied label": ('{"sex": "NOT INFLUENTIAL", "TSH": "INFLUENTIAL", "age": "NOT_MENTIONED"}', "?IN", "stop"),
    "a label with a reason": (
        '{"sex": "MENTIONED (restated)", "TSH": "INFLUENTIAL", "age": "NOT_MENTIONED"}',
        "?IN",
        "stop",
    ),
    "labels as objects": (
        '{"sex": {"label": "MENTIONED"}, "TSH": "INFLUENTIAL", "age": ["NOT_MENTIONED"]}',
        "?I?",
        "stop",
    ),
    "numbers, truth values, null": ('{"sex": 1, "TSH": true, "age": null}', "???", "stop"),
    "another language": ('{"sex": "ERWÄHNT", "TSH": "EINFLUSSREICH", "age": "NICHT ERWÄHNT"}', "???", "stop"),
    "keys in another language": (
        '{"Geschlecht": "MENTIONED", "TSH": "INFLUENTIAL", "Alter": "NOT_MENTIONED"}',
        "?I?",
        "stop",
    ),
    "empty values": ('{"sex": "", "TSH": " ", "age": "_"}', "???", "stop"),
    "a key with spaces": ('{" sex ": "MENTIONED", "TSH": "INFLUENTIAL", "age": "NOT_MENTIONED"}', "?IN", "stop"),
    # Nothing can be read.
    "empty": ("", "???", "stop"),
    "valid but empty": ("{}", "???", "stop"),
    "a refusal": ("I can't help with medical questions.", "???", "stop"),
    "prose alone": ("sex: MENTIONED, TSH: INFLUENTIAL, age: NOT_MENTIONED", "???", "stop"),
    "wrapped": ('{"labels": ' + GOOD + "}", "???", "stop"),
    "cut by the length limit": (GOOD, "???", "length"),
    "stopped by a filter": (GOOD, "???", "content_filter"),
    "torn": (GOOD[:40], "???", "stop"),
    "torn outside a whole object": ('{"labels": ' + GOOD, "???", "stop"),
    "labels inside the reasoning alone": (f"<think>{GOOD}</think>", "???", "stop"),
    "reasoning never closed": (f"<think>Let me see. {GOOD}", "???", "stop"),
    "reasoning opened again": (f"<think>hm</think>{GOOD}<think>wait", "???", "stop"),
    "single quotes": (GOOD.replace('"', "'"), "???", "stop"),
    "a trailing comma": (GOOD[:-1] + ",}", "???", "stop"),
    "a brace in prose": ("The set {sex, TSH}: " + GOOD, "???", "stop"),
    "deep nesting": ('{"sex": ' + "[" * 100_000, "???", "stop"),
    "a huge number": ('{"sex": ' + "9" * 10_000 + ', "TSH": "INFLUENTIAL"}', "???", "stop"),
    "no characters of text": ("\x00\x00\ufeff", "???", "stop"),
}
