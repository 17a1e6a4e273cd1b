// A kafkascope that runs beside the test. It ends when its stdin does: `close` does that in order,
// the system does it for a test process that was killed or that forgot.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

import { KafkascopeError } from "./errors.js";

/** For a machine that is ten times as slow as ours. */
const END_MS = 30_000;
const MOST_LINES = 200;

export class Child {
  #process;
  #stderr = [];
  #busy = 0;
  #outcome = null;

  /** `hear` gets each line of its stdout. */
  constructor(command, words, hear) {
    const [program, ...first] = command;
    this.#process = spawn(program, [...first, ...words], {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true, // ctrl+c is for the test process, whose end ends it in order
    });
    const { stdin, stdout, stderr } = this.#process;
    stdin.on("error", () => {}); // it has ended: `ended` tells
    createInterface({ input: stdout, crlfDelay: Infinity }).on("line", hear);
    createInterface({ input: stderr, crlfDelay: Infinity }).on("line", (line) => {
      this.#stderr.push(line);
      if (this.#stderr.length > MOST_LINES) this.#stderr.shift();
    });
    /** Gives "ended" when it is gone and all it wrote has been read. */
    this.ended = new Promise((resolve) => {
      this.#process.on("error", (error) => {
        if (this.#process.pid !== undefined) return; // a signal that could not be sent
        this.#outcome = error.message;
        resolve("ended");
      });
      this.#process.on("close", (code, signal) => {
        this.#outcome ??= signal ? `signal ${signal}` : `exit status ${code}`;
        resolve("ended");
      });
    });
    this.#hold(false);
  }

  get pid() {
    return this.#process.pid;
  }

  /** Whether it is gone. */
  get over() {
    return this.#outcome !== null;
  }

  /** The last lines of its stderr. */
  get stderr() {
    return this.#stderr.join("\n");
  }

  write(text) {
    this.#process.stdin.write(text);
  }

  /** Keeps Node running while it is waited for; else a proxy that nobody stopped would. */
  async during(work) {
    this.#busy += 1;
    if (this.#busy === 1) this.#hold(true);
    try {
      return await work();
    } finally {
      this.#busy -= 1;
      if (this.#busy === 0) this.#hold(false);
    }
  }

  #hold(on) {
    const { stdin, stdout, stderr } = this.#process;
    for (const each of [this.#process, stdin, stdout, stderr]) {
      if (on) each?.ref?.();
      else each?.unref?.();
    }
  }

  /** A sentence about how it ended. */
  async gone(what) {
    if (!(await this.#ends(END_MS))) {
      return new KafkascopeError(`${what}: it closed its output and runs on`);
    }
    const how = this.#outcome;
    const last = this.stderr.trim().split("\n").at(-1).replace(/^kafkascope: /, "");
    if (last === "") return new KafkascopeError(`${what}: ${how}`);
    const old = /No such option|there is no command/.test(last);
    const why = old ? "it is too old for this package, update kafkascope: " : "";
    return new KafkascopeError(`${what}: ${why}${last} (${how})`);
  }

  async #ends(limit) {
    const timer = new AbortController();
    const late = sleep(limit, false, { signal: timer.signal }).catch(() => false);
    const done = await Promise.race([this.ended.then(() => true), late]);
    timer.abort();
    return done;
  }

  /** Ends it, in order if possible; resolves when it is gone. */
  async close() {
    await this.during(async () => {
      this.#process.stdin.end();
      for (const signal of ["SIGTERM", "SIGKILL"]) {
        if (await this.#ends(END_MS)) return;
        this.#process.kill(signal);
      }
      if (!(await this.#ends(END_MS))) {
        throw new KafkascopeError("kafkascope does not end, though it was killed");
      }
    });
  }
}
