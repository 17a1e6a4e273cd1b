/** Kafka traffic in tests: recorded, held against expectations, disturbed, replayed. */

/** kafkascope is not there, did not start, died, or refused what it was asked. */
export class KafkascopeError extends Error {
  name: "KafkascopeError";
}

/** Something that was to be true of the traffic is not. */
export class TrafficError extends Error {
  name: "TrafficError";
}

/** The context of a test: `t` of node:test, or that of vitest. */
export type TestContext =
  | { after(end: () => unknown): unknown }
  | { onTestFinished(end: (...told: any[]) => unknown): unknown };

export interface SchemaOptions {
  /** Folders of schemas of keys and values, for filters and records. */
  schemas?: string | string[];
  /** Files by topic: `{ orders: "order.avsc", "orders:key": "id.avsc" }`. */
  topicSchemas?: Record<string, string>;
  /** URL of a schema registry. */
  registry?: string;
}

export interface CommandOptions {
  /** How to start kafkascope, in place of KAFKASCOPE and the PATH. */
  command?: string | string[];
}

export interface ChildOptions extends SchemaOptions, CommandOptions {
  /** The test that it is for: it ends with the test. */
  test?: TestContext;
  /** Where clients connect; default: a free port of 127.0.0.1. */
  listen?: string;
  /** Further words of `kafkascope proxy`, or `kafkascope serve`: TLS and so on. */
  args?: string[];
}

export interface ProxyOptions extends ChildOptions {
  /** Rules from the start: `"api == Produce -> error NOT_LEADER_OR_FOLLOWER once"`. */
  faults?: string[];
  /** A filter: what matches is held from the start. */
  hold?: string;
  /** Whose captures are kept; default: those of tests that failed, or whose end is not known. */
  keep?: "failed" | "always" | "never";
  /** Where captures are kept; default: KAFKASCOPE_DIR, else the temporary folder. */
  dir?: string;
}

export interface Expectation {
  /** Exactly so many; 0: none. Default: one or more. */
  times?: number;
  /** Milliseconds to wait for what is still to come. */
  within?: number;
  /** Only requests that were sent then or later: where tests share a proxy. */
  since?: Date | number | string;
}

export interface ResponseError {
  code: number;
  name: string;
  topic?: string;
  partition?: number;
  group?: string;
  message?: string;
}

/**
 * A request with its answer: exchange/1 of docs/json.md, which has more members. Numbers that are
 * no safe integers are bigints.
 */
export interface Exchange {
  number: number;
  time: string;
  client_id: string;
  software: string;
  client_address: string;
  broker_address: string;
  api: string;
  api_key: number;
  api_version: number;
  correlation_id: number;
  request_bytes: number;
  response_bytes: number;
  latency_ms: number | null;
  state: "answered" | "open" | "lost" | "no-reply" | "orphan" | "opaque";
  reason: string;
  errors: ResponseError[];
  topics: string[];
  groups: string[];
  transactional_ids: string[];
  acks: number | null;
  codecs: string[];
  records: number | null;
  [member: string]: unknown;
}

export type Payload = string | { base64: string } | { left_out: string } | null;

/** A record that was produced or fetched: record/1 of docs/json.md. */
export interface RecordRow {
  exchange: number;
  source: "produce" | "fetch";
  topic: string;
  partition: number;
  offset: number | bigint | null;
  time: string | null;
  key: Payload;
  value: Payload;
  headers: [name: string, value: Payload][];
  codec: string;
  control: boolean;
  /** Where there is a schema. */
  value_decoded?: unknown;
  key_decoded?: unknown;
  [member: string]: unknown;
}

export type Level = "error" | "warning" | "note" | "chat";

/** Something odd: finding/1 of docs/json.md. */
export interface Finding {
  id: string;
  key: string;
  severity: Level;
  name: string;
  text: string;
  advice: string;
  count: number;
  filter: string;
  number: number | null;
  entities: string[];
  because: string[];
  [member: string]: unknown;
}

/** Traffic in a file, and what has to be true of it. Wireshark opens the file, too. */
export interface Capture {
  /** Where the capture is. */
  readonly path: string;
  /** The requests that meet a filter, with their answers. */
  exchanges(filter?: string): Promise<Exchange[]>;
  /** The records, produced or fetched, that meet a filter. */
  records(filter?: string): Promise<RecordRow[]>;
  /** What `kafkascope check` found, of this level or worse. */
  findings(level?: Level): Promise<Finding[]>;
  /** Such a request was sent; else the error says what was sent instead. */
  assertRequest(filter?: string, expectation?: Expectation): Promise<Exchange[]>;
  /** No such request was sent. */
  refuteRequest(filter?: string, expectation?: Pick<Expectation, "since">): Promise<void>;
  /** Such records were produced or fetched. */
  assertRecords(
    filter?: string,
    expectation?: Pick<Expectation, "times" | "within">,
  ): Promise<RecordRow[]>;
  /** No answer had an error, except these. */
  assertNoErrors(options?: { allow?: string[] }): Promise<void>;
  /** `kafkascope check` finds nothing that bad (default: "warning"), except these rules. */
  assertNoFindings(options?: { level?: Level; allow?: string[] }): Promise<void>;
  /** Each API was used, and only in these versions: `{ Produce: [9, 13], Fetch: 12 }`. */
  assertVersions(versions: Record<string, number | [low: number, high: number]>): Promise<void>;
}

/** A fault, and how often it has done what. */
export interface Rule {
  name: string;
  rule: string | null;
  side: "request" | "response";
  action: string | null;
  matched: number;
  fired: number;
}

/** A request or response that the proxy holds. */
export interface HeldFrame {
  readonly number: number;
  readonly kind: "request" | "response";
  readonly api: string;
  readonly version: number;
  readonly correlation_id: number;
  readonly client_id: string;
  readonly bytes: number;
  readonly summary: string;
  readonly editable: boolean;
  /** It goes on. */
  release(): Promise<void>;
  /** It never arrives. */
  drop(): Promise<void>;
  /** Its message in the form of docs/json.md; numbers that are no safe integers are bigints. */
  body(): Promise<any>;
  /** It goes on with this body; sizes and checksums are made right. */
  edit(body: unknown): Promise<void>;
}

/** A proxy before a broker. Clients connect to `bootstrap`; all they say is captured. */
export interface Proxy extends Capture, AsyncDisposable {
  readonly bootstrap: string;
  /** Adds a rule: `"api == Fetch -> delay 200ms once"`. */
  fault(rule: string, options?: { name?: string }): Promise<Rule>;
  rules(): Promise<Rule[]>;
  /** How often the rule has done something by now. */
  fired(rule: Pick<Rule, "name">): Promise<number>;
  removeRule(rule: Pick<Rule, "name">): Promise<void>;
  /** Ends all rules. What is held stays held. */
  clearRules(): Promise<void>;
  /** Holds what matches from now on: requests, or responses where the filter names their fields. */
  hold(filter: string, options?: { on?: "request" | "response" }): Promise<void>;
  /** Holds nothing more. What is held stays held. */
  endHold(): Promise<void>;
  /** What is held, oldest first, as soon as there are so many (default: now). */
  held(options?: { count?: number; timeout?: number }): Promise<HeldFrame[]>;
  /** Lets all that is held go on. */
  release(): Promise<void>;
  /** Anything that docs/control.md knows. */
  ask(action: string, members?: object): Promise<any>;
  /**
   * Ends the proxy before its test does; the capture is complete then and can be read on. Without
   * `test`, `failed` says how the test ended (default: not known, the capture is kept).
   */
  stop(options?: { failed?: boolean }): Promise<void>;
}

/** A capture that answers as a broker. */
export interface ServedCapture extends AsyncDisposable {
  readonly bootstrap: string;
  /** The last lines of its stderr: unanswered requests, wrong passwords, clients that connected. */
  readonly stderr: string;
  /** Asserts that a text is in its stderr, now or within seconds. */
  assertStderr(text: string, options?: { timeout?: number }): Promise<void>;
  /** @deprecated Use `stderr`. */
  readonly said: string;
  /** @deprecated Use `assertStderr`. */
  assertSaid(text: string, options?: { timeout?: number }): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a proxy before a broker: HOST:PORT, or several with commas. */
export function proxy(upstream: string, options?: ProxyOptions): Promise<Proxy>;

/**
 * Starts a proxy for a function and ends it behind it. When the function fails, the capture is kept,
 * and the error says where: for test runners that tell nobody how a test ended.
 */
export function within<T>(
  upstream: string,
  options: Omit<ProxyOptions, "test">,
  use: (proxy: Proxy) => T | Promise<T>,
): Promise<T>;

/** Makes a capture answer as a broker. */
export function serve(capture: string | URL, options?: ChildOptions): Promise<ServedCapture>;

/** The traffic of a capture that is there already. */
export function open(capture: string | URL, options?: SchemaOptions & CommandOptions): Capture;
