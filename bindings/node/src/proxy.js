// A proxy before a broker.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { Capture, schemas } from "./capture.js";
import { locate } from "./command.js";
import { Control } from "./control.js";
import { KafkascopeError, TrafficError } from "./errors.js";
import * as outcome from "./outcome.js";

const HELD_MS = 30_000;
const LOOK_MS = 20;
const KEEP = ["failed", "always", "never"];

/** A frame that the proxy holds. */
class HeldFrame {
  #proxy;

  constructor(proxy, told) {
    this.#proxy = proxy;
    Object.assign(this, told);
  }

  async release() {
    await this.#proxy.ask("release", { number: this.number });
  }

  async drop() {
    await this.#proxy.ask("drop", { number: this.number });
  }

  async body() {
    return (await this.#proxy.ask("show", { number: this.number })).body;
  }

  async edit(body) {
    await this.#proxy.ask("edit", { number: this.number, body });
  }
}

export class Proxy extends Capture {
  #control;
  #options;
  #place;

  constructor(path, control, bootstrap, options) {
    super(path, options);
    this.#control = control;
    this.#options = { keep: "failed", dir: process.env.KAFKASCOPE_DIR, ...options };
    this.bootstrap = bootstrap;
    const { test, dir } = this.#options;
    this.#place = outcome.place(path, dir, test);
    if (test !== undefined) {
      outcome.whenOver(test, async (failed) => {
        try {
          await this.#control.close();
        } finally {
          this.#put(failed);
        }
      });
    }
  }

  /** Puts the capture where it stays, or away. */
  #put(failed) {
    const { test, keep } = this.#options;
    if (keep === "never" || (keep === "failed" && !failed)) return outcome.discard(this.path);
    if (!outcome.keep(this.path, this.#place)) return;
    this.path = this.#place;
    if (failed && test !== undefined) {
      outcome.report(test, `kafkascope: the traffic of this test: ${this.path}`);
    }
  }

  get control() {
    return this.#control.closed ? null : this.#control;
  }

  async ask(action, members = {}) {
    if (this.control === null) throw new KafkascopeError(`${action}: the proxy has been stopped`);
    return this.#control.ask(action, members);
  }

  async fault(rule, { name } = {}) {
    return (await this.ask("fault", { rule, name })).rule;
  }

  async rules() {
    return (await this.ask("rules")).rules;
  }

  async fired(rule) {
    return (await this.rules()).find((each) => each.name === rule.name)?.fired ?? 0;
  }

  async removeRule(rule) {
    await this.ask("remove", { name: rule.name });
  }

  async clearRules() {
    await this.ask("clear");
  }

  async hold(filter, { on } = {}) {
    await this.ask("hold", { filter, on });
  }

  async endHold() {
    await this.ask("hold", { filter: null });
  }

  async held({ count = 0, timeout = HELD_MS } = {}) {
    const end = Date.now() + timeout;
    for (;;) {
      const { held } = await this.ask("held");
      if (held.length >= count) return held.map((each) => new HeldFrame(this, each));
      if (Date.now() > end) this.fail(`${held.length} frames are held, not ${count}`);
      await sleep(LOOK_MS);
    }
  }

  async release() {
    await this.ask("release", { number: "all" });
  }

  /**
   * Ends the proxy; its capture is complete then, and can be read on. Without `test`, `failed` says
   * how the test ended; undefined: nobody knows, and the capture is kept.
   */
  async stop({ failed = true } = {}) {
    const again = this.#control.closed;
    try {
      await this.#control.close();
    } finally {
      if (this.#options.test === undefined && !again) this.#put(failed);
    }
  }

  fail(text) {
    // With a test, its report says so when the proxy has ended.
    const { test, keep } = this.#options;
    throw new TrafficError(test || keep === "never" ? text : text + this.#traffic());
  }

  #traffic() {
    return `\nkafkascope: the traffic: ${this.#place}`;
  }

  /** Adds the place of the capture to an error that has not got it. */
  tell(error) {
    const { message, stack } = error ?? {};
    if (!(error instanceof Error) || message.includes(this.#place)) return;
    error.message += this.#traffic();
    if (stack) error.stack = stack.replace(message, () => error.message);
  }

  async [Symbol.asyncDispose]() {
    await this.stop();
  }
}

/** Starts a proxy before a broker. */
export async function proxy(upstream, options = {}) {
  const { faults = [], hold, listen = "127.0.0.1:0", args = [], keep = "failed" } = options;
  if (!KEEP.includes(keep)) throw new TypeError(`keep is one of ${KEEP.join(", ")}, not ${keep}`);
  const command = locate(options.command);
  const folder = mkdtempSync(join(tmpdir(), "kafkascope-"));
  const path = join(folder, "kafka.pcapng");
  const words = ["proxy", "--upstream", upstream, "--listen", listen, "--quiet", "--grace", "1s"];
  words.push("--overwrite", "-w", path, "--control", "-");
  for (const rule of faults) words.push("--fault", rule);
  if (hold !== undefined) words.push("--hold", hold);
  words.push(...args, ...schemas(options));
  try {
    const { control, status } = await Control.open(command, words);
    return new Proxy(path, control, status.bootstrap, options);
  } catch (error) {
    outcome.discard(path);
    throw error;
  }
}

/**
 * Starts a proxy for a function: it ends with it, and when the function fails, the capture is kept
 * and the error says where.
 */
export async function within(upstream, options, use) {
  const made = await proxy(upstream, { ...options, test: undefined });
  let failure = null;
  let result;
  try {
    result = await use(made);
  } catch (error) {
    failure = { error };
  }
  try {
    await made.stop({ failed: failure !== null });
  } catch (error) {
    failure ??= { error };
  }
  if (failure === null) return result;
  if (options?.keep !== "never") made.tell(failure.error);
  throw failure.error;
}
