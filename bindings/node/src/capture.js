// Traffic in a file, and what has to be true of it.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";

import { locate } from "./command.js";
import { KafkascopeError, TrafficError } from "./errors.js";
import { parse } from "./json.js";
import { counted, described, errors, finding, name, plural, shortened } from "./tell.js";

const run = promisify(execFile);
const READ_MS = 300_000;
const MOST_BYTES = 1 << 30;
const MOST_LISTED = 10_000;
/** Exit code for a capture that ends in the middle: what is whole was printed. */
const DAMAGED = 4;
const LEVELS = ["error", "warning", "note", "chat"];

export class Capture {
  #command;
  #schemas;

  constructor(path, { command, ...options } = {}) {
    this.path = path;
    this.#command = locate(command);
    this.#schemas = schemas(options);
  }

  /** The channel of the proxy that writes it; null where nobody does any more. */
  get control() {
    return null;
  }

  async exchanges(filter = "") {
    return (await this.#expect({ filter })).exchanges;
  }

  async records(filter = "") {
    return (await this.#ask("records", { filter }))?.records ?? this.#read("records", filter);
  }

  async findings(level = "chat") {
    const wanted = LEVELS.slice(0, rank(level) + 1);
    const told = await this.#ask("findings", {});
    const found = told?.findings ?? (await this.#read("check", "", "--fail-on", "never"));
    return found.filter((each) => wanted.includes(each.severity));
  }

  async assertRequest(filter = "", how = {}) {
    const told = await this.#expect({ filter, ...how });
    if (told.met) return told.exchanges;
    // The channel tells what came nearest; these are those that are too many, or too few.
    return this.fail(told.text + described(told.exchanges));
  }

  async refuteRequest(filter = "", how = {}) {
    await this.assertRequest(filter, { ...how, times: 0 });
  }

  async assertRecords(filter = "", { times, within = 0 } = {}) {
    const told = await this.#ask("records", { filter, times, within });
    if (told !== null) return told.met ? told.records : this.fail(told.text);
    const found = await this.#read("records", filter);
    if (met(times, found.length)) return found;
    const seen = (await this.#read("records", "")).map((each) => `${each.topic} (${each.source})`);
    const there = counted(seen, "of ");
    return this.fail(`${missed(times, found.length, "record", filter)}; there were ${there}`);
  }

  async assertNoErrors({ allow = [] } = {}) {
    const bad = [];
    for (const each of await this.exchanges("error != 0")) {
      const names = errors(each).filter((error) => !allow.includes(error));
      if (names.length > 0) bad.push(`${name(each)}: ${names.join(", ")}`);
    }
    if (bad.length > 0) this.fail(["responses with errors:", ...shortened(bad)].join("\n"));
  }

  async assertNoFindings({ level = "warning", allow = [] } = {}) {
    const wanted = LEVELS.slice(0, rank(level) + 1);
    const every = await this.findings();
    const texts = new Map(every.map((each) => [each.id, each.text]));
    const bad = every.filter(
      (each) => wanted.includes(each.severity) && !allow.includes(each.name),
    );
    if (bad.length === 0) return;
    const lines = shortened(bad.map((each) => finding(each, texts)));
    const count = plural(bad.length, "finding");
    this.fail([`${count} of level ${level} or worse:`, ...lines].join("\n"));
  }

  async assertVersions(versions) {
    const used = new Map();
    for (const each of await this.exchanges()) {
      if (!used.has(each.api)) used.set(each.api, new Set());
      used.get(each.api).add(each.api_version);
    }
    const bad = [];
    for (const [api, allowed] of Object.entries(versions)) {
      const [low, high] = Array.isArray(allowed) ? allowed : [allowed, allowed];
      const others = [...(used.get(api) ?? [])].filter((v) => v < low || v > high);
      if (!used.has(api)) bad.push(`${api} was not used`);
      else if (others.length > 0) {
        bad.push(`${api} was used in version ${others.sort((a, b) => a - b).join(", ")}`);
      }
    }
    if (bad.length > 0) this.fail(bad.join("; "));
  }

  /** Throws what a test fails with. */
  fail(text) {
    throw new TrafficError(text);
  }

  /** The verdict of the proxy; null where there is none (any more), or more than an answer holds. */
  async #ask(of, { filter = "", times, within = 0, since }) {
    if (this.control === null) return null;
    const members = { of, filter, limit: MOST_LISTED };
    if (times !== undefined) members.count = times;
    if (within > 0) members.within = within / 1000;
    if (since !== undefined) members.since_ns = BigInt(new Date(since).getTime()) * 1_000_000n;
    const told = await this.control.ask("expect", members, { within });
    return of === "exchanges" || told[of].length === told.found ? told : null;
  }

  /** The verdict of the proxy, or of the file. */
  async #expect({ filter, times, within, since }) {
    const told = await this.#ask("exchanges", { filter, times, within, since });
    if (told !== null) return told;
    const begin = since === undefined ? null : new Date(since);
    const list = async (text) => {
      const found = await this.#read("ls", text);
      return begin === null ? found : found.filter((each) => new Date(each.time) >= begin);
    };
    const exchanges = await list(filter);
    if (met(times, exchanges.length)) return { met: true, text: "", exchanges };
    const sent = (await list("")).map((each) => `${each.api} v${each.api_version}`);
    const what = missed(times, exchanges.length, "request", filter);
    return { met: false, text: `${what}; there were ${counted(sent)}`, exchanges };
  }

  /** The objects that a command of kafkascope prints of it. */
  async #read(command, filter, ...more) {
    if (this.control !== null) {
      await this.control.ask("flush");
      if (!existsSync(this.path)) return []; // nothing has passed
    }
    const [program, ...first] = this.#command;
    const words = [...first, command, this.path, "--json", "--quiet", ...more, ...this.#schemas];
    if (filter) words.push("-Y", filter);
    let out;
    try {
      const limits = { timeout: READ_MS, maxBuffer: MOST_BYTES, killSignal: "SIGKILL" };
      out = (await run(program, words, limits)).stdout;
    } catch (error) {
      if (error.code !== DAMAGED) {
        const why = error.killed ? `no end after ${READ_MS / 1000} s` : error.stderr?.trim();
        throw new KafkascopeError(`${[program, ...words].join(" ")}:\n${why || error.message}`);
      }
      out = error.stdout;
    }
    return out.split("\n").filter(Boolean).map(parse);
  }
}

/** Options of kafkascope for schemas of keys and values. */
export function schemas({ schemas: folders = [], topicSchemas = {}, registry } = {}) {
  const words = [folders].flat().flatMap((folder) => ["--schemas", String(folder)]);
  for (const [topic, file] of Object.entries(topicSchemas)) {
    words.push("--schema", `${topic}=${file}`);
  }
  return registry === undefined ? words : [...words, "--registry", registry];
}

function met(times, count) {
  return times === undefined ? count > 0 : count === times;
}

function missed(times, count, what, filter) {
  const told = count === 0 ? `no ${what}` : `${plural(count, what)}, not ${times},`;
  return filter ? `${told} with ${filter}` : told;
}

function rank(level) {
  const place = LEVELS.indexOf(level);
  if (place < 0) throw new KafkascopeError(`${level} is none of the levels ${LEVELS.join(", ")}`);
  return place;
}
