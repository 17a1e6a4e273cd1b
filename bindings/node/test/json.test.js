import assert from "node:assert/strict";
import { test } from "node:test";

import { split } from "../src/command.js";
import { parse, stringify } from "../src/json.js";

test("numbers of 64 bits come through", () => {
  for (const text of [
    '{"a":9223372036854775807,"b":[-9223372036854775808,1],"c":9007199254740991}',
    '{"text":"1234567890123456789, \\"9223372036854775807\\" ","n":-9007199254740993}',
    '{"float":1.2345678901234567,"big":1e400,"none":null,"s":"\\udc80"}'.replace("1e400", "1e40"),
    "9223372036854775807",
    '"9223372036854775807"',
  ]) {
    assert.deepEqual(parse(stringify(parse(text))), parse(text));
    if (!text.includes("float")) assert.equal(stringify(parse(text)), text);
  }
  assert.deepEqual(parse('{"a":9223372036854775807}'), { a: 9223372036854775807n });
  assert.equal(parse('{"a":1.2345678901234567}').a, 1.2345678901234567);
  assert.equal(parse(`{"a":"${"x".repeat(30 << 20)}","b":9223372036854775807}`).b, 2n ** 63n - 1n);
});

test("a command is split as in a shell", () => {
  for (const [command, words] of [
    ["kafkascope", ["kafkascope"]],
    ["  /a/python  -m\tkafkascope ", ["/a/python", "-m", "kafkascope"]],
    [`'/a b/c' "d e" f\\ g ''`, ["/a b/c", "d e", "f g", ""]],
    [`a"b 'c'"'d "e'`, [`ab 'c'd "e`]],
    [`"\\a\\"\\\\" '\\'`, ['\\a"\\', "\\"]],
    ["", []],
  ]) {
    assert.deepEqual(split(command), words);
  }
  for (const command of ["'a", '"a', "a\\"]) {
    assert.throws(() => split(command), /a quote or a backslash has no end/);
  }
});
