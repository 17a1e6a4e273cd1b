// The README's examples, in each of the runners that it names; and that they are the README's.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import * as kafkascope from "kafkascope";

const { KAFKASCOPE_BROKER: broker, KAFKASCOPE_SCENARIO: only } = process.env;
const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const run = promisify(execFile);
const skip = broker && !only ? false : "KAFKASCOPE_BROKER names no broker, or one scenario is run";

/** The program of a package. */
function program(name, command = name) {
  const description = require.resolve(`${name}/package.json`);
  const { bin } = JSON.parse(readFileSync(description, "utf8"));
  return join(dirname(description), typeof bin === "string" ? bin : bin[command]);
}

const RUNNERS = {
  node: ["--test", "runners/node.test.js"],
  vitest: [program("vitest"), "run", "--testTimeout=120000", "runners/vitest.test.ts"],
  jest: [
    "--experimental-vm-modules",
    program("jest"),
    "--transform={}",
    "--watchman=false",
    "--testTimeout=120000",
    "runners/jest.test.js",
  ],
};

for (const [name, words] of Object.entries(RUNNERS)) {
  test(`${name} runs the example, and a failure leaves its capture`, { skip }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "kafkascope-test-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const env = { ...process.env, KAFKA_BOOTSTRAP: broker, KAFKASCOPE_DIR: dir, NO_COLOR: "1" };
    delete env.NODE_TEST_CONTEXT; // it is no part of this run
    await run(process.execPath, words, { cwd: here, env });
    for (const each of readdirSync(dir)) rmSync(join(dir, each));

    const failing = run(process.execPath, words, { cwd: here, env: { ...env, SHOP_ACKS: "1" } });
    await assert.rejects(failing, ({ stdout, stderr }) => {
      const said = stdout + stderr;
      assert.match(said, /no request with api == Produce .*acks == -1; there were .*1 Produce v/);
      assert.match(said, /Produce v\d+ of shop \(number \d+\) came nearest: acks is 1/);
      const [path] = /\S+\.pcapng/.exec(said.slice(said.indexOf("kafkascope: the traffic"))) ?? [];
      assert.ok(path?.startsWith(dir) && existsSync(path), said);
      return true;
    });
  });
}

test("the types fit the example, in the strictest way", async () => {
  const options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"];
  options.push("--lib", "es2022,esnext.disposable", "--skipLibCheck", "--types", "node");
  const files = ["runners/vitest.test.ts", "types.ts"];
  const words = [program("typescript", "tsc"), ...options, ...files];
  await run(process.execPath, words, { cwd: here }).catch(({ stdout }) => assert.fail(stdout));
});

test("the types name what is there", () => {
  const home = realpathSync(join(here, "node_modules", "kafkascope"));
  const types = readFileSync(join(home, "src", "index.d.ts"), "utf8");
  const named = [...types.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(named.sort(), Object.keys(kafkascope).sort());
});

test("the documented examples are those that are run", () => {
  const home = realpathSync(join(here, "node_modules", "kafkascope"));
  const page = readFileSync(join(home, "README.md"), "utf8");
  for (const name of readdirSync(join(here, "runners")).filter((each) => !each.endsWith(".d.ts"))) {
    const text = readFileSync(join(here, "runners", name), "utf8");
    assert.ok(page.includes(`${name.endsWith(".ts") ? "```ts" : "```js"}\n${text}\`\`\``), name);
  }
});
