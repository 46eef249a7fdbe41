"""The evaluator of JavaScript code: the body of a function over `data`, by QuickJS, behind the walls.

Requests and answers are those of `python`. The code runs in strict mode; the built-in objects are frozen, so
that no row sees what another did. There is no console, no timer, no module, no event loop: a promise is no
cell. What `JSON.stringify` makes of the returned value is the cell: undefined and NaN are null.
"""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NoReturn

from _quickjs import Context, JSException, StackOverflow

from storage.domain.javascript_reads import read_javascript
from storage.engine.sandbox.inside.cells import (
    BATCH_CHARACTERS,
    BATCH_S,
    CODE_ERROR,
    LONGEST_MESSAGE,
    MAX_VALUE,
    MEMORY_LIMIT,
    RESULT_TOO_LARGE,
)
from storage.engine.sandbox.inside.worker import Evaluator, Refusal

MEMORY_BYTES = 256 << 20
_STACK_BYTES = 1 << 20
_PLACE = re.compile(r"<(?:input|eval)>:(\d+):(\d+)")

# What it uses of the built-ins it holds itself, before any code of a tenant runs.
_DRIVER = """
"use strict";
(function () {
  const {parse, stringify} = JSON, {create, getPrototypeOf, getOwnPropertyDescriptors, freeze} = Object;
  const now = Date.now, keys = Reflect.ownKeys, call = Function.prototype.call;
  const slice = call.bind(String.prototype.slice), indexOf = call.bind(String.prototype.indexOf);
  const join = call.bind(Array.prototype.join);
  const TheError = Error, ThePromise = Promise, spelled = String;
  const [codeError, memoryLimit, tooLarge, mostMs, mostCharacters, longest, longestMessage] = ARGUMENTS;

  const {defineProperty, getOwnPropertyDescriptor} = Object;

  // A frozen inherited property could not be set on an object of one's own: `this.name = ...` of an error.
  function settable(owner, name) {
    const held = getOwnPropertyDescriptor(owner, name);
    if (held === undefined || !("value" in held)) return;
    defineProperty(owner, name, {
      configurable: false, enumerable: held.enumerable, get() { return held.value; },
      set(value) {
        if (this === owner) throw new TypeError(`'${spelled(name)}' is read-only`);
        defineProperty(this, name, {value, configurable: true, enumerable: true, writable: true});
      },
    });
  }
  for (const name of ["toString", "toLocaleString", "valueOf", "hasOwnProperty", "constructor"])
    settable(Object.prototype, name);
  for (const kind of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError,
                      AggregateError])
    for (const name of ["name", "message", "toString", "constructor"]) settable(kind.prototype, name);

  const seen = new Set();
  (function harden(value) {
    const kind = typeof value;
    if ((kind !== "object" && kind !== "function") || value === null || seen.has(value)) return;
    seen.add(value);
    freeze(value);
    harden(getPrototypeOf(value));
    const all = getOwnPropertyDescriptors(value);
    for (const key of keys(all)) { harden(all[key].value); harden(all[key].get); harden(all[key].set); }
  })(globalThis);
  for (const one of [function* () {}, async function () {}, async function* () {}, [][Symbol.iterator](),
                     "".matchAll(/x/g), new Map().values(), new Set().values(), ""[Symbol.iterator]()]) {
    for (let proto = one; (proto = getPrototypeOf(proto)) !== null;) freeze(proto);
  }

  function told(error) {
    let message, line = null, code = codeError;
    try {
      message = spelled(error);
      if (error instanceof TheError) {
        // what stands below the row's own frames is this driver
        const stack = spelled(error.stack), own = slice(stack, 0, indexOf(stack, "batch ("));
        const found = /<input>:(\\d+)/.exec(own);
        if (found) line = +found[1];
        if (message === "InternalError: out of memory") code = memoryLimit;
      }
    } catch { message = "an error that cannot be spelled"; }
    return [code, slice(message, 0, longestMessage), line];
  }

  return function batch(cell, text) {
    const {names, columns, rows} = parse(text), values = [], errors = [], until = now() + mostMs;
    let characters = 0;
    for (let row = 0; row < rows; row++) {
      let spelling = "null", failed = null;
      try {
        const data = create(null);
        for (let at = 0; at < names.length; at++) data[names[at]] = columns[at][row];
        const value = cell(data);
        if (value instanceof ThePromise) throw "a promise is no cell; return its value";
        const text = stringify(value);
        if (text !== undefined) spelling = text;
        if (spelling.length > longest) {
          failed = [tooLarge, `The value is over ${longest} characters as JSON`, null];
          spelling = "null";
        }
      } catch (error) { failed = told(error); }
      if (failed !== null) errors[errors.length] = [row, failed[0], failed[1], failed[2]];
      values[row] = spelling;
      characters += spelling.length;
      if (now() > until || characters > mostCharacters) break;
    }
    // joined, not added up: a sum of long strings is a rope, which cannot leave the engine
    return join(['{"values":[', join(values, ","), '],"errors":', stringify(errors), "}"], "");
  };
})()
"""


def evaluator() -> Evaluator:
    """Return an evaluator, its engine loaded and tried."""
    evaluate = _Evaluator()
    evaluate({"inspect": "return data.a + 1"})
    evaluate({"prepare": "return data.a + 1"})
    answer = evaluate({"rows": 1, "names": ["a"], "parts": [b"[1]"]})
    if answer != b'{"values":[2],"errors":[]}':
        raise RuntimeError("QuickJS does not compute")
    return _Evaluator()


class _Evaluator:
    def __init__(self) -> None:
        self._run: Callable[[Any, str], str] | None = None
        self._cell: Any = None

    def __call__(self, request: Any) -> Any:
        if "inspect" in request:
            _compile(_context(), request["inspect"])
            return asdict(read_javascript(request["inspect"]))
        if "prepare" in request:
            context = _context()
            self._run = _driver(context)
            self._cell = _compile(context, request["prepare"])
            return None
        if self._run is None:
            raise Refusal({"why": "nothing was prepared"})
        return self._evaluated(self._run, request)

    def _evaluated(self, run: Callable[[Any, str], str], request: Any) -> bytes:
        names = json.dumps(request["names"])
        columns = b",".join(request["parts"]).decode()
        text = f'{{"names":{names},"rows":{request["rows"]},"columns":[{columns}]}}'
        try:
            return run(self._cell, text).encode()
        except (JSException, StackOverflow):  # outside of any row: there is no memory left for the answer
            raise MemoryError from None


def _context() -> Context:
    context = Context()
    context.set_memory_limit(MEMORY_BYTES)
    context.set_max_stack_size(_STACK_BYTES)
    return context


def _driver(context: Context) -> Callable[[Any, str], str]:
    arguments = [
        *(CODE_ERROR, MEMORY_LIMIT, RESULT_TOO_LARGE),
        *(int(BATCH_S * 1000), BATCH_CHARACTERS, MAX_VALUE, LONGEST_MESSAGE),
    ]
    run: Callable[[Any, str], str] = context.eval(_DRIVER.replace("ARGUMENTS", json.dumps(arguments)))
    return run


def _compile(context: Context, source: str) -> Any:
    """Compile the body of a function over `data`; nothing of it runs.

    Raises:
        Refusal: it does not parse; names line and position, from 1.
    """
    if "\0" in source:
        _refuse("it holds a NUL character")
    try:
        # within parentheses and within a class: a body that closes its function early fits one of them only
        context.eval(f'"use strict";(class {{cell(data){{{source}\n}}}})')
        return context.eval(f'"use strict";(function(data){{{source}\n}})')
    except StackOverflow:
        _refuse("it is nested too deeply")
    except JSException as error:
        _refuse(*_reason(str(error)))


def _reason(text: str) -> tuple[str, int | None]:
    why, _, rest = text.partition("\n")
    found = _PLACE.search(rest)
    return why.removeprefix("SyntaxError: "), int(found[1]) if found else None


def _refuse(why: str, line: int | None = None) -> NoReturn:
    raise Refusal({"why": why, "line": line}) from None
