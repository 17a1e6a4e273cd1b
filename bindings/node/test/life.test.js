import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

import * as kafkascope from "../src/index.js";
import { alive, apiVersions, eventually, folder, SAMPLE, script, skip } from "./kit.js";

const VICTIM = fileURLToPath(new URL("victim.js", import.meta.url));
const INDEX = new URL("../src/index.js", import.meta.url).href;
const KIT = new URL("kit.js", import.meta.url).href;
const run = promisify(execFile);

const BEFORE = { ...process.env };

/** Sets variables of the environment while a test runs. */
function environment(t, values) {
  t.after(() => {
    for (const name of Object.keys(values)) delete process.env[name];
    Object.assign(process.env, BEFORE);
  });
  Object.assign(process.env, values);
}

/** It fails with one sentence that holds this text. */
async function sentence(promise, text) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.name, "KafkascopeError");
    assert.ok(error.message.includes(text), error.message);
    assert.ok(!error.message.includes("\n"), error.message);
    return true;
  });
}

test("without kafkascope it says what to do", async (t) => {
  const advice = ": install it, or say where it is (KAFKASCOPE)";
  for (const told of ["/nowhere/kafkascope", "no-such-program --at-all"]) {
    environment(t, { KAFKASCOPE: told });
    const text = `there is no kafkascope at ${told.split(" ")[0]}${advice}`;
    await sentence(kafkascope.proxy("127.0.0.1:1"), text);
    await sentence(kafkascope.serve(SAMPLE), text);
    assert.throws(() => kafkascope.open(SAMPLE), { message: text });
  }
  environment(t, { KAFKASCOPE: "", PATH: folder(t) });
  await sentence(kafkascope.proxy("127.0.0.1:1"), `there is no kafkascope${advice}`);
});

test("another kafkascope is refused", async (t) => {
  for (const [text, says] of [
    [
      `read line; echo '{"ok":true,"protocol":1,"bootstrap":"127.0.0.1:1"}'; cat`,
      "this kafkascope speaks protocol 1 of its control channel, and 3 is needed: update kafkascope",
    ],
    [
      `echo "Error: No such option '--control'" >&2; exit 2`,
      "kafkascope did not start: it is too old for this package, update kafkascope: Error: No such",
    ],
    [`echo "kafkascope: no" >&2; exit 3`, "kafkascope did not start: no (exit status 3)"],
    ["exit 0", "kafkascope did not start: exit status 0"],
    [
      "echo hello; exit 0",
      'kafkascope did not start, and said "hello", which is no answer of the control channel',
    ],
  ]) {
    const command = script(t, text);
    await sentence(kafkascope.proxy("127.0.0.1:1", { command }), says);
    await sentence(kafkascope.serve(SAMPLE, { command }), says);
  }
});

test("a taken port is told", { skip }, async (t) => {
  const { bootstrap: listen } = await kafkascope.serve(SAMPLE, { test: t });
  for (const start of [
    () => kafkascope.proxy("127.0.0.1:1", { listen }),
    () => kafkascope.serve(SAMPLE, { listen }),
  ]) {
    await assert.rejects(start(), {
      name: "KafkascopeError",
      message: /^kafkascope did not start: .*address already in use.* \(exit status 3\)$/i,
    });
  }
});

test("a proxy that dies is told, once", { skip }, async (t) => {
  const proxy = await kafkascope.proxy("127.0.0.1:1", { keep: "never" });
  process.kill((await proxy.ask("status")).pid, "SIGKILL");
  await sentence(proxy.fault("api == Fetch -> drop"), "fault: kafkascope has ended: ");
  await sentence(proxy.assertRequest(), "(signal SIGKILL)");
  await proxy.stop();

  const other = await kafkascope.proxy("127.0.0.1:1", { keep: "never" });
  const { pid } = await other.ask("status");
  process.kill(pid, "SIGKILL");
  await eventually("it lives", () => !alive(pid));
  await sentence(other.stop(), "kafkascope has ended");
});

for (const [how, signal] of [["sleep", "SIGKILL"], ["sleep", "SIGINT"], ["forget", null]]) {
  const title = signal ? `is killed by ${signal}` : "forgets to stop";
  test(`a test that ${title} leaves no process`, { skip }, async () => {
    const victim = spawn(process.execPath, [VICTIM, how], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = new Promise((resolve) => victim.on("close", resolve));
    let pid = null;
    for await (const line of createInterface({ input: victim.stdout })) {
      pid = Number(/^pid (\d+)$/.exec(line)?.[1]);
      break;
    }
    assert.ok(pid > 0);
    if (signal) {
      assert.ok(alive(pid));
      victim.kill(signal);
    }
    await ended;
    await eventually("it leaves a process behind", () => !alive(pid));
  });
}

/** Runs a file of tests with node:test, and gives what it printed. */
async function report(t, text, variables = {}) {
  const file = join(folder(t), "some.test.mjs");
  writeFileSync(
    file,
    `import assert from "node:assert";
import { test } from "node:test";
import * as kafkascope from ${JSON.stringify(INDEX)};
import { apiVersions, SAMPLE } from ${JSON.stringify(KIT)};
${text}`,
  );
  const env = { ...process.env, TMPDIR: folder(t), ...variables };
  delete env.NODE_TEST_CONTEXT; // it is no part of this run
  const done = run(process.execPath, ["--test", "--test-reporter=tap", file], { env });
  return { env, said: await done.then((told) => told.stdout, (error) => error.stdout) };
}

const FAILS = `
test("sells bread", async (t) => {
  const served = await kafkascope.serve(SAMPLE, { test: t });
  const proxy = await kafkascope.proxy(served.bootstrap, { test: t });
  await apiVersions(t, proxy.bootstrap, "fails");
  assert.equal(1, 2);
});
`;

test("a test that fails keeps its capture, and says where", { skip }, async (t) => {
  const dir = folder(t);
  const { said } = await report(t, FAILS, { KAFKASCOPE_DIR: dir });
  const [, path] = /kafkascope: the traffic of this test: (\S+)/.exec(said) ?? [];
  assert.ok(path?.startsWith(join(dir, "sells-bread-")), said);
  await kafkascope.open(path).assertRequest("client == fails", { times: 1 });
});

test("a test that passes leaves nothing", { skip }, async (t) => {
  const { env, said } = await report(t, FAILS.replace("assert.equal(1, 2)", ""));
  assert.match(said, /^# pass 1$/m);
  assert.deepEqual(readdirSync(env.TMPDIR), []);
});

test("a function that fails within a proxy tells the capture", { skip }, async (t) => {
  const dir = folder(t);
  const served = await kafkascope.serve(SAMPLE, { test: t });
  let path;
  const use = (wrong) =>
    kafkascope.within(served.bootstrap, { dir }, async (proxy) => {
      await apiVersions(t, proxy.bootstrap, "within");
      path = proxy.path;
      await wrong(proxy);
      return 7;
    });
  assert.equal(await use(() => {}), 7);
  assert.ok(!existsSync(path));
  await assert.rejects(
    use(() => assert.fail("it fails")),
    (error) => {
      const [, kept] = /^it fails\nkafkascope: the traffic: (\S+)$/.exec(error.message);
      assert.ok(error.stack.includes(kept));
      path = kept;
      return true;
    },
  );
  await kafkascope.open(path).assertRequest("client == within", { times: 1 });
  await assert.rejects(
    use((proxy) => proxy.refuteRequest("client == within")),
    (error) => {
      assert.equal(error.message.split(dir).length, 2);
      return error.name === "TrafficError";
    },
  );
});

test("without a test's context the capture is kept, unless it is told otherwise", { skip }, async (t) => {
  environment(t, { TMPDIR: folder(t) });
  const served = await kafkascope.serve(SAMPLE, { test: t });
  for (const [options, how, stays] of [
    [{}, {}, true],
    [{}, { failed: false }, false],
    [{ keep: "never" }, {}, false],
    [{ keep: "always" }, { failed: false }, true],
  ]) {
    const proxy = await kafkascope.proxy(served.bootstrap, options);
    await apiVersions(t, proxy.bootstrap, "raw");
    await proxy.stop(how);
    assert.equal(existsSync(proxy.path), stays);
  }
  await assert.rejects(kafkascope.proxy("127.0.0.1:1", { keep: "some" }), /keep is one of failed/);
  await assert.rejects(kafkascope.proxy("127.0.0.1:1", { test: {}, keep: "never" }), TypeError);
});

test("it is found by its name, with types beside it", async () => {
  const { default: description } = await import(
    pathToFileURL(join(VICTIM, "..", "..", "package.json")).href,
    { with: { type: "json" } }
  );
  for (const place of Object.values(description.exports["."])) {
    assert.ok(existsSync(join(VICTIM, "..", "..", place)));
  }
  assert.equal(description.dependencies, undefined);
});
