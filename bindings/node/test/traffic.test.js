import assert from "node:assert/strict";
import { test } from "node:test";

import * as kafkascope from "../src/index.js";
import { apiVersions, Link, SAMPLE, skip } from "./kit.js";

async function proxied(t, options = {}) {
  const served = await kafkascope.serve(SAMPLE, { test: t });
  return kafkascope.proxy(served.bootstrap, { test: t, ...options });
}

test("the traffic of a test is asserted", { skip }, async (t) => {
  const proxy = await proxied(t);
  const answer = await apiVersions(t, proxy.bootstrap, "raw");
  assert.equal(answer.readInt32BE(0), 7);
  const [one] = await proxy.assertRequest("api == ApiVersions and client == raw", { times: 1 });
  assert.equal(one.api_version, 0);
  assert.equal(one.state, "answered");
  await proxy.refuteRequest("api == Produce");
  await proxy.refuteRequest("", { since: Date.now() + 1 });
  await proxy.assertRequest("", { since: Date.now() - 600_000 });
  await proxy.assertNoErrors();
  await proxy.assertNoFindings();
  await proxy.assertVersions({ ApiVersions: [0, 0] });
  assert.equal((await proxy.exchanges()).length, 1);
  const link = new Link(t, proxy.bootstrap);
  setTimeout(() => link.send("late"), 300);
  await proxy.assertRequest("client == late", { within: 60_000 });
});

test("a failure says what was sent instead", { skip }, async (t) => {
  const proxy = await proxied(t);
  await apiVersions(t, proxy.bootstrap, "raw");
  const sent = "there were 1 ApiVersions v0";
  for (const [says, fails] of [
    [`no request with api == Fetch; ${sent}`, () => proxy.assertRequest("api == Fetch")],
    [
      `no request with api == ApiVersions and client == x; ${sent}\n` +
        "  ApiVersions v0 of raw (number 1) came nearest: client is raw",
      () => proxy.assertRequest("api == ApiVersions and client == x"),
    ],
    [
      `1 request, not 2, with api == ApiVersions; ${sent}\n  ApiVersions v0 of raw (number 1)`,
      () => proxy.assertRequest("api == ApiVersions", { times: 2 }),
    ],
    [`1 request, not 0,; ${sent}`, () => proxy.refuteRequest()],
    [
      "no record with topic == x; there were none at all",
      () => proxy.assertRecords("topic == x"),
    ],
    [
      "Produce was not used; ApiVersions was used in version 0",
      () => proxy.assertVersions({ Produce: 9, ApiVersions: [1, 3] }),
    ],
  ]) {
    await assert.rejects(fails(), (error) => {
      assert.equal(error.name, "TrafficError");
      assert.ok(error.message.startsWith(says), error.message);
      return true;
    });
  }
  for (const [says, fails] of [
    [/^grave is none of the levels error, warning, note, chat$/, () => proxy.findings("grave")],
    [/^expect: filter: /, () => proxy.assertRequest("api ==")],
    [/^fault: .*dorp/s, () => proxy.fault("api == Fetch -> dorp")],
    [/^nonsense: unknown command 'nonsense'$/, () => proxy.ask("nonsense")],
  ]) {
    await assert.rejects(fails(), { name: "KafkascopeError", message: says });
  }
});

test("frames are held, edited, dropped, released", { skip }, async (t) => {
  const proxy = await proxied(t, { hold: "api == ApiVersions" });
  const link = new Link(t, proxy.bootstrap);
  link.send("held");
  const [request] = await proxy.held({ count: 1 });
  assert.deepEqual(
    [request.api, request.kind, request.client_id],
    ["ApiVersions", "request", "held"],
  );
  await proxy.endHold();
  await request.release();
  await link.receive();

  await proxy.hold("api == ApiVersions", { on: "response" });
  link.send("held");
  const [response] = await proxy.held({ count: 1 });
  const body = await response.body();
  assert.equal(body.error_code, 0);
  await response.edit({ ...body, error_code: 35 });
  assert.equal((await link.receive()).readInt16BE(4), 35);

  link.send("dropped");
  await (await proxy.held({ count: 1 }))[0].drop();
  assert.deepEqual(await proxy.held(), []);
  await assert.rejects(request.drop(), /^KafkascopeError: drop: no frame \d+ is held$/);
  link.send("released");
  await proxy.held({ count: 1 });
  await proxy.endHold();
  await proxy.release();
  await link.receive();
  await proxy.assertRequest("api == ApiVersions", { times: 4 });
  await assert.rejects(proxy.held({ count: 1, timeout: 0 }), /0 frames are held, not 1/);
});

test("rules come, fire and go", { skip }, async (t) => {
  const proxy = await proxied(t, { faults: ["api == ApiVersions -> delay 1ms"] });
  const once = await proxy.fault("api == ApiVersions -> stamp UNSUPPORTED_VERSION once", {
    name: "stamped",
  });
  assert.equal(once.name, "stamped");
  const codes = [];
  for (const client of ["one", "two"]) {
    codes.push((await apiVersions(t, proxy.bootstrap, client)).readInt16BE(4));
  }
  assert.deepEqual(codes, [35, 0]);
  assert.equal(await proxy.fired(once), 1);
  await proxy.removeRule(once);
  const rules = await proxy.rules();
  assert.deepEqual(
    rules.map(({ action, fired }) => [action, fired]),
    [["delay", 2]],
  );
  await proxy.clearRules();
  assert.deepEqual(await proxy.rules(), []);
  await assert.rejects(
    proxy.assertNoErrors(),
    /responses with errors:\nApiVersions v0 of one \(number 1\): UNSUPPORTED_VERSION$/,
  );
  await proxy.assertNoErrors({ allow: ["UNSUPPORTED_VERSION"] });
});

test("a capture is read", { skip }, async () => {
  const capture = kafkascope.open(SAMPLE);
  const records = await capture.assertRecords("topic == librdkafka.none and api == Fetch");
  assert.ok(records.some((each) => each.headers.length > 0 && each.value?.base64 === undefined));
  assert.ok(records.some((each) => each.value?.base64 !== undefined));
  await capture.assertRecords("topic == nothing", { times: 0 });
  assert.ok((await capture.findings()).length > 0);
  await assert.rejects(capture.assertNoFindings({ level: "chat" }), /of level chat or worse:\n/);
  await assert.rejects(
    capture.assertRequest("api == Produce", { times: 0 }),
    /^TrafficError: \d+ requests, not 0, with api == Produce; there were .* \d+ Produce v\d+/,
  );
  await assert.rejects(kafkascope.open("nothing.pcap").exchanges(), /no such file or folder/);
});

test("a served capture tells what it could not answer", { skip }, async (t) => {
  const served = await kafkascope.serve(SAMPLE, { test: t });
  await apiVersions(t, served.bootstrap, "asks");
  await served.assertStderr('client "asks" connected');
  await assert.rejects(served.assertStderr("nonsense", { timeout: 0 }), /"nonsense" is not in its stderr/);
  await served.stop();
});

test("a proxy that was stopped is read on, and disposed of", { skip }, async (t) => {
  const served = await kafkascope.serve(SAMPLE, { test: t });
  const proxy = await kafkascope.proxy(served.bootstrap, { test: t });
  await apiVersions(t, proxy.bootstrap, "raw");
  await proxy.stop();
  await proxy[Symbol.asyncDispose]();
  await proxy.assertRequest("client == raw", { times: 1 });
  await assert.rejects(proxy.rules(), /^KafkascopeError: rules: the proxy has been stopped$/);
});
