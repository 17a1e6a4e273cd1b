// Every method, as TypeScript sees it: this is compiled, not run.
import * as kafkascope from "kafkascope";

export async function every(test: kafkascope.TestContext): Promise<void> {
  await using served: kafkascope.ServedCapture = await kafkascope.serve("x.pcap", { test });
  await served.assertStderr("connected", { timeout: 10 });
  const lines: string = served.stderr;
  const proxy: kafkascope.Proxy = await kafkascope.proxy(served.bootstrap, {
    test,
    faults: ["api == Fetch -> drop"],
    hold: lines,
    keep: "always",
    dir: "kept",
    listen: "127.0.0.1:1",
    args: ["--tls"],
    schemas: ["schemas"],
    topicSchemas: { orders: "order.avsc" },
    command: ["kafkascope"],
  });
  const rule: kafkascope.Rule = await proxy.fault("api == Fetch -> drop", { name: "x" });
  const fired: number = (await proxy.fired(rule)) + (await proxy.rules())[0].matched;
  await proxy.removeRule(rule);
  await proxy.clearRules();
  await proxy.hold("api == Fetch", { on: "response" });
  const [frame]: kafkascope.HeldFrame[] = await proxy.held({ count: fired, timeout: 10 });
  await frame.edit({ ...(await frame.body()), throttle_time_ms: 1n });
  await frame.drop();
  await frame.release();
  await proxy.endHold();
  await proxy.release();
  const [one]: kafkascope.Exchange[] = await proxy.assertRequest("", { times: 1, within: 10 });
  const codes: number[] = one.errors.map((each) => each.code);
  await proxy.refuteRequest("api == Fetch", { since: new Date() });
  const [record]: kafkascope.RecordRow[] = await proxy.assertRecords("", { times: codes[0] });
  const value: kafkascope.Payload = record.value;
  await proxy.assertNoErrors({ allow: [String(value)] });
  await proxy.assertNoFindings({ level: "note", allow: [] });
  await proxy.assertVersions({ Fetch: [4, 12], Produce: 9 });
  const status: { pid: number } = await proxy.ask("status");
  await proxy.stop({ failed: status.pid > 0 });
  const number: number = await kafkascope.within("b:1", { keep: "never" }, async (it) => {
    return (await it.exchanges()).length;
  });
  const capture: kafkascope.Capture = kafkascope.open("x.pcap", { registry: "http://r" });
  const [finding]: kafkascope.Finding[] = await capture.findings("error");
  // @ts-expect-error: there is no such level
  await capture.findings("grave");
  // @ts-expect-error: a rule is text
  await proxy.fault(number);
  if (finding.severity === "chat") throw new kafkascope.TrafficError(finding.text);
}
