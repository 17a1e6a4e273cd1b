// What the tests share: raw requests, and programs that stand for another kafkascope.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { locate } from "../src/command.js";

/** A capture with traffic of librdkafka. */
export const SAMPLE = fileURLToPath(
  new URL("../../../captures/samples/librdkafka.pcap", import.meta.url),
);

/** Whether tests with kafkascope are skipped; whoever sets KAFKASCOPE wants no skips. */
export const skip = (() => {
  try {
    locate();
    return false;
  } catch (error) {
    return process.env.KAFKASCOPE ? false : error.message;
  }
})();

export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "kafkascope-test-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export function script(t, text) {
  const path = join(folder(t), "kafkascope");
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o700);
  return path;
}

/** A connection for ApiVersions requests, version 0. */
export class Link {
  #socket;
  #bytes = Buffer.alloc(0);
  #wake = () => {};

  constructor(t, bootstrap) {
    const [host, port] = bootstrap.split(":");
    this.#socket = connect(Number(port), host);
    this.#socket.on("data", (data) => {
      this.#bytes = Buffer.concat([this.#bytes, data]);
      this.#wake();
    });
    t.after(() => this.#socket.destroy());
  }

  send(client) {
    const head = Buffer.from([0, 18, 0, 0, 0, 0, 0, 7, 0, client.length]);
    const size = Buffer.alloc(4);
    size.writeInt32BE(head.length + client.length);
    this.#socket.write(Buffer.concat([size, head, Buffer.from(client)]));
  }

  /** An answer, from its correlation id on. */
  async receive() {
    const wanted = () => (this.#bytes.length < 4 ? 4 : 4 + this.#bytes.readInt32BE(0));
    while (this.#bytes.length < wanted()) {
      await new Promise((resolve) => (this.#wake = resolve));
    }
    const end = wanted();
    const answer = this.#bytes.subarray(4, end);
    this.#bytes = this.#bytes.subarray(end);
    return answer;
  }
}

export async function apiVersions(t, bootstrap, client) {
  const link = new Link(t, bootstrap);
  link.send(client);
  return link.receive();
}

export function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export async function eventually(what, isTrue, limit = 60_000) {
  for (const end = Date.now() + limit; !(await isTrue()); await sleep(20)) {
    if (Date.now() > end) throw new Error(what);
  }
}
