import { expect, test } from "@jest/globals";
import * as kafkascope from "kafkascope";

import { sell } from "./shop.js";

const broker = process.env.KAFKA_BOOTSTRAP;

test("the shop waits for all replicas", () =>
  kafkascope.within(broker, {}, async (proxy) => {
    await sell(proxy.bootstrap, "bread", "butter");
    const [request] = await proxy.assertRequest("api == Produce and acks == -1", { times: 1 });
    expect(request.topics).toEqual(["orders"]);
  }), 60_000);
