import * as kafkascope from "kafkascope";
import { expect, test } from "vitest";

import { sell } from "./shop.js";

const broker = process.env.KAFKA_BOOTSTRAP!;

test("the shop waits for all replicas", async (context) => {
  const proxy = await kafkascope.proxy(broker, { test: context });
  await sell(proxy.bootstrap, "bread", "butter");
  const [request] = await proxy.assertRequest("api == Produce and acks == -1", { times: 1 });
  expect(request.topics).toEqual(["orders"]);
});

test("a leader that moves costs no order", async () => {
  await using proxy = await kafkascope.proxy(broker, {
    faults: ["api == Produce -> error NOT_LEADER_OR_FOLLOWER once"],
  });
  await sell(proxy.bootstrap, "milk");
  await proxy.assertRequest("api == Produce", { times: 2 });
});
