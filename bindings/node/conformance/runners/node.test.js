import assert from "node:assert/strict";
import { test } from "node:test";

import * as kafkascope from "kafkascope";

import { sell } from "./shop.js";

const broker = process.env.KAFKA_BOOTSTRAP;

test("the shop waits for all replicas", async (t) => {
  const proxy = await kafkascope.proxy(broker, { test: t });
  await sell(proxy.bootstrap, "bread", "butter");
  await proxy.assertRequest("api == Produce and client == shop and acks == -1", { times: 1 });
  await proxy.refuteRequest("api == Produce and failed");
  await proxy.assertRecords("topic == orders", { times: 2 });
});

test("a leader that moves costs no order", async (t) => {
  const proxy = await kafkascope.proxy(broker, { test: t });
  const moved = await proxy.fault("api == Produce -> error NOT_LEADER_OR_FOLLOWER once");
  await sell(proxy.bootstrap, "milk");
  assert.equal(await proxy.fired(moved), 1);
  await proxy.assertRequest("api == Produce", { times: 2 });
});

test("nothing is sold before the broker has it", async (t) => {
  const proxy = await kafkascope.proxy(broker, { test: t });
  await proxy.hold("api == Produce");
  let sold = false;
  const selling = sell(proxy.bootstrap, "eggs").then(() => (sold = true));
  const [held] = await proxy.held({ count: 1 });
  assert.equal(sold, false);
  await held.release();
  await selling;
});
