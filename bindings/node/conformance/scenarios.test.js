// What bindings/scenarios asks of every binding; its README says what each member means.
import assert from "node:assert/strict";
import { appendFileSync, chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import * as kafkascope from "kafkascope";

import { consume, makeTopic, produce, transact } from "./client.js";

const {
  KAFKASCOPE_SCENARIOS: folder,
  KAFKASCOPE_SCENARIO: only,
  KAFKASCOPE_BROKER: broker,
  KAFKASCOPE_CAPTURE: capture,
  KAFKASCOPE_RESULTS: results,
} = process.env;

function scenarios() {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json") && !name.endsWith(".schema.json"))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")))
    .filter((each) => (only ? each.name === only : each.ends === undefined));
}

function passed(scenario, before) {
  if (results) appendFileSync(results, `${JSON.stringify({ scenario, before })}\n`);
}

/** It fails with an error that holds all these texts. */
async function fails(promise, texts) {
  await assert.rejects(promise, (error) => {
    for (const text of texts) assert.ok(error.message.includes(text), error.message);
    return true;
  });
}

/** Starting a proxy fails. */
async function start(t, { start: { command, listen }, fails: texts }) {
  const home = mkdtempSync(join(tmpdir(), "kafkascope-test-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const path = join(home, "kafkascope");
  const options = command === undefined ? {} : { command: path };
  if (command === "old") {
    const answer = '{"ok":true,"protocol":1,"bootstrap":"127.0.0.1:1"}';
    writeFileSync(path, `#!/bin/sh\nread line\necho '${answer}'\ncat\n`);
    chmodSync(path, 0o700);
  }
  if (listen === "taken") {
    const taken = createServer().listen(0, "127.0.0.1");
    t.after(() => taken.close());
    await new Promise((resolve) => taken.on("listening", resolve));
    options.listen = `127.0.0.1:${taken.address().port}`;
  }
  await fails(kafkascope.proxy("127.0.0.1:1", options), texts);
}

let topics = 0;

/** Does the steps of a scenario. */
async function play(t, { name, rules = [], steps }, upstream) {
  const topic = `node-${name}-${process.pid}-${++topics}`;
  await makeTopic(upstream, topic);
  const proxy = await kafkascope.proxy(upstream, { test: t, faults: rules });
  const begun = new Map();
  const text = JSON.stringify(steps).replaceAll("{topic}", topic);
  for (const step of JSON.parse(text)) await DO[step.do](step, { proxy, topic, begun });
}

const DO = {
  async produce(step, at) {
    const work = async () => {
      const start = performance.now();
      const told = await produce(at.proxy.bootstrap, at.topic, step.values, step.acks);
      const took = performance.now() - start;
      if (step.delivered !== undefined) {
        assert.deepEqual(told, { delivered: step.delivered, error: null });
      }
      if (step.error !== undefined) assert.equal(told.error, step.error);
      assert.ok(took >= (step.at_least_ms ?? 0), `it took only ${took} ms`);
    };
    if (step.begin === undefined) return work();
    const running = { over: false };
    running.end = work().then(
      () => ({}),
      (error) => ({ error }),
    );
    running.end.then(() => (running.over = true));
    at.begun.set(step.begin, running);
  },
  async finish({ which }, { begun }) {
    const { error } = await begun.get(which).end;
    if (error) throw error;
  },
  async running({ which }, { begun }) {
    await sleep(100);
    assert.ok(!begun.get(which).over, `${which} has ended`);
  },
  async consume(step, { proxy, topic }) {
    const values = await consume(proxy.bootstrap, step.topic ?? topic, step.count);
    const sorted = (them) => (step.any_order ? them.toSorted() : them);
    assert.deepEqual(sorted(values), sorted(step.values));
  },
  transaction: (step, { proxy, topic }) =>
    transact(proxy.bootstrap, topic, step.values, step.commit),
  rule: ({ rule }, { proxy }) => proxy.fault(rule),
  clear: (_, { proxy }) => proxy.clearRules(),
  async fired({ count }, { proxy }) {
    assert.equal((await proxy.rules())[0].fired, count);
  },
  hold: ({ filter }, { proxy }) => proxy.hold(filter),
  async held({ count }, { proxy }) {
    assert.equal((await proxy.held({ count })).length, count);
  },
  release: (_, { proxy }) => proxy.release(),
  async sent({ filter, count, fails: texts }, { proxy }) {
    const asserted = proxy.assertRequest(filter, { times: count });
    await (texts === undefined ? asserted : fails(asserted, texts));
  },
  async records({ filter, count, fails: texts }, { proxy }) {
    const asserted = proxy.assertRecords(filter, { times: count });
    await (texts === undefined ? asserted : fails(asserted, texts));
  },
  async findings({ level, allow = [], fails: texts }, { proxy }) {
    const asserted = proxy.assertNoFindings({ level, allow });
    await (texts === undefined ? asserted : fails(asserted, texts));
  },
  async kill(_, { proxy }) {
    process.kill((await proxy.ask("status")).pid, "SIGKILL");
  },
  fail: () => assert.fail("it fails, as it should"),
  die: () => process.kill(process.pid, "SIGKILL"),
};

const skip = folder ? false : "KAFKASCOPE_SCENARIOS names no folder of scenarios";

// Clients wait a lot: for groups, for metadata, for answers that come late.
test("scenarios", { skip, concurrency: 2 }, async (t) => {
  const every = scenarios();
  assert.ok(every.length > 0);
  const upstreams = { broker };
  if (every.some((each) => each.before?.includes("capture"))) {
    // One for all: their topics differ.
    upstreams.capture = (await kafkascope.serve(capture, { test: t })).bootstrap;
  }
  const running = [];
  for (const each of every) {
    for (const before of each.before ?? [null]) {
      if (before !== null && !upstreams[before]) continue;
      running.push(
        t.test(`${each.name} ${before ?? ""}`.trim(), async (t) => {
          await (before === null ? start(t, each) : play(t, each, upstreams[before]));
          passed(each.name, before);
        }),
      );
    }
  }
  await Promise.all(running);
});
