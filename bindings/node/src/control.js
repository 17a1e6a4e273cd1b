// The control channel of a kafkascope, over its stdin and stdout: a line goes in, a line comes back.
import { setTimeout as sleep } from "node:timers/promises";

import { Child } from "./child.js";
import { KafkascopeError } from "./errors.js";
import { parse, stringify } from "./json.js";

/** The one of docs/control.md that this package was written for; higher ones keep it. */
const PROTOCOL = 3;
// These limits are for machines that are ten times as slow as ours.
const START_MS = 90_000;
const ANSWER_MS = 60_000;

export class Control {
  /** Who waits, in the order in which answers come. */
  #queue = [];
  #strange = null;
  #told = false;
  #closing = null;

  constructor(command, words) {
    this.child = new Child(command, words, (line) => this.#hear(line));
  }

  /** Starts a kafkascope; gives it with its status, which comes when clients may connect. */
  static async open(command, words) {
    const control = new Control(command, words);
    try {
      const status = await control.ask("status", {}, { limit: START_MS });
      if (!(status.protocol >= PROTOCOL)) {
        throw new KafkascopeError(
          `this kafkascope speaks protocol ${status.protocol ?? 0} of its control channel, and ` +
            `${PROTOCOL} is needed: update kafkascope`,
        );
      }
      return { control, status };
    } catch (error) {
      await control.child.close();
      throw error;
    }
  }

  /** Events are nobody's: we do not watch. */
  #hear(line) {
    let answer;
    try {
      answer = parse(line);
    } catch {
      this.#strange ??= line.slice(0, 100);
      return;
    }
    if (typeof answer?.ok === "boolean") this.#queue.shift()?.(answer);
  }

  /** The answer to a request; `KafkascopeError` with the reason of a refusal. */
  ask(action, members = {}, { limit = ANSWER_MS, within = 0 } = {}) {
    return this.child.during(async () => {
      const answered = new Promise((resolve) => this.#queue.push(resolve));
      this.child.write(`${stringify({ do: action, ...members })}\n`);
      const timer = new AbortController();
      const waited = limit + within;
      const late = sleep(waited, "late", { signal: timer.signal }).catch(() => {});
      const answer = await Promise.race([answered, this.child.ended, late]);
      timer.abort();
      if (answer === "late") {
        const seconds = waited / 1000;
        throw new KafkascopeError(
          `${action}: kafkascope has not answered for ${seconds} s${this.#odd()}`,
        );
      }
      if (answer === "ended") throw await this.#silent(action);
      if (!answer.ok) throw new KafkascopeError(`${action}: ${answer.error}`);
      return answer;
    });
  }

  /** Why no answer comes from a kafkascope that has ended. */
  #silent(action) {
    if (action === "status") return this.child.gone("kafkascope did not start" + this.#odd());
    this.#told = true;
    return this.child.gone(`${action}: kafkascope has ended` + this.#odd());
  }

  #odd() {
    if (this.#strange === null) return "";
    return `, and said ${JSON.stringify(this.#strange)}, which is no answer of the control channel`;
  }

  /** Whether it was asked to end. */
  get closed() {
    return this.#closing !== null;
  }

  /** Ends it, and says when it had ended before and nobody was told. */
  close() {
    this.#closing ??= (async () => {
      if (!this.child.over) return this.child.close();
      if (!this.#told) throw await this.child.gone("kafkascope has ended before the test");
    })();
    return this.#closing;
  }
}
