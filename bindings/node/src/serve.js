// A capture that answers as a broker.
import { setTimeout as sleep } from "node:timers/promises";

import { schemas } from "./capture.js";
import { locate } from "./command.js";
import { Control } from "./control.js";
import { TrafficError } from "./errors.js";
import { whenOver } from "./outcome.js";

const REMARK_MS = 30_000;
const LOOK_MS = 20;

export class ServedCapture {
  #control;

  constructor(control, bootstrap) {
    this.#control = control;
    this.bootstrap = bootstrap;
  }

  get stderr() {
    return this.#control.child.stderr;
  }

  async assertStderr(text, { timeout = REMARK_MS } = {}) {
    await this.#control.child.during(async () => {
      const end = Date.now() + timeout;
      while (!this.stderr.includes(text)) {
        if (Date.now() > end) {
          throw new TrafficError(`${JSON.stringify(text)} is not in its stderr:\n${this.stderr}`);
        }
        await sleep(LOOK_MS);
      }
    });
  }

  /** @deprecated */
  get said() {
    return this.stderr;
  }

  /** @deprecated */
  assertSaid(text, options) {
    return this.assertStderr(text, options);
  }

  async stop() {
    await this.#control.close();
  }

  async [Symbol.asyncDispose]() {
    await this.stop();
  }
}

/** Makes a capture answer as a broker. */
export async function serve(capture, options = {}) {
  const { listen = "127.0.0.1:0", args = [], test } = options;
  const words = ["serve", String(capture), "--listen", listen, "--control", "-", ...args];
  words.push(...schemas(options));
  const { control, status } = await Control.open(locate(options.command), words);
  const served = new ServedCapture(control, status.bootstrap);
  if (test !== undefined) whenOver(test, () => served.stop());
  return served;
}
