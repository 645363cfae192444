"""Runs a page's blocks of Python one after the other, in one module.

Input: a JSON object a line: text, name and line of a block.
Output: a JSON object a line: printed (what it wrote to standard output) and error (null, or the traceback).
"""

import contextlib
import io
import json
import sys
import traceback
import types

sys.path.insert(0, "")  # As where a script in this folder is run.
module = types.ModuleType("__main__")
sys.modules["__main__"] = module
answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    block = json.loads(line)
    printed, error = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block["line"] - 1) + block["text"], block["name"], "exec"), vars(module))
    except BaseException:  # SystemExit as well: the page's next block shall run.
        error = traceback.format_exc()
    print(json.dumps({"printed": printed.getvalue(), "error": error}), file=answers, flush=True)
