// Reads steps from stdin, `Produce topic=a count=60`, runs them with kafkajs, answers in JSON.
// java/Driver.java and clients/steps.py do the same.
const fs = require("fs");
const readline = require("readline");
const { Kafka, CompressionTypes, ConfigResourceTypes, logLevel } = require("kafkajs");

const EPOCH = 1700000000000;
const SECONDS = 60;

// The records that every driver makes; tests/interop/known.py says the same in Python.
function known(topic, index) {
  const tail = index % 10 === 9 ? " äö€🚀" : "";
  const text = `${topic}/${index}/${"abcdefghij".repeat(1 + (index % 12))}${tail}`;
  const gone = index % 17 === 16;
  const headers = {};
  if (index % 3 === 0) {
    headers.n = index % 6 === 0 ? [String(index), "again"] : String(index);
    headers.src = topic;
  }
  return {
    partition: index % 2,
    timestamp: String(EPOCH + index * 1000),
    key: gone ? Buffer.from("gone") : index % 5 === 0 ? null : Buffer.from(`k${index % 7}`),
    value: gone ? null
      : index % 13 === 12 ? Buffer.from([0xff, 0xfe, index & 0xff]) : Buffer.from(text),
    headers,
  };
}

function payload(data) {
  if (data === null || data === undefined) return null;
  const bytes = Buffer.from(data);
  const text = bytes.toString("utf8");
  return Buffer.from(text).equals(bytes) ? text : { base64: bytes.toString("base64") };
}

// [topic, partition, offset, time, key, value, headers]
function row(topic, partition, offset, m) {
  const headers = Object.entries(m.headers || {}).flatMap(([name, values]) =>
    (Array.isArray(values) ? values : [values]).map((value) => [name, payload(value)]));
  return [topic, partition, offset, Number(m.timestamp), payload(m.key), payload(m.value), headers];
}

function kafka(a, suffix = "") {
  const settings = {
    clientId: (a.client || "kafkajs") + suffix,
    brokers: a.bootstrap.split(","),
    logLevel: logLevel.ERROR,
    requestTimeout: Number(a.timeout || 30000),
    retry: { initialRetryTime: 100, retries: a.timeout ? 4 : 12, maxRetryTime: 1000 },
  };
  if (a.ca) {
    settings.ssl = { ca: [fs.readFileSync(a.ca)] };
    if (a.cert) settings.ssl.cert = settings.ssl.key = fs.readFileSync(a.cert);
  }
  if (a.user) {
    const mechanism = (a.mechanism || "PLAIN").toLowerCase();
    settings.sasl = { mechanism, username: a.user, password: a.password };
  }
  return new Kafka(settings);
}

async function send(producer, a, first, count) {
  const messages = Array.from({ length: count }, (_, i) => known(a.topic, first + i));
  const acks = { 0: 0, 1: 1 }[a.acks] ?? -1;
  const compression = a.codec === "gzip" ? CompressionTypes.GZIP : CompressionTypes.None;
  const told = await producer.send({ topic: a.topic, acks, compression, messages });
  const next = {};
  for (const each of told || []) next[each.partition] = Number(each.baseOffset);
  return messages.map((m) =>
    row(a.topic, m.partition, acks === 0 ? null : next[m.partition]++, m));
}

async function produce(a) {
  const idempotent = a.idempotent === "true";
  const producer = kafka(a).producer({ idempotent, maxInFlightRequests: idempotent ? 1 : null });
  await producer.connect();
  try {
    return { produced: await send(producer, a, Number(a.first || 0), Number(a.count || 60)) };
  } finally {
    await producer.disconnect();
  }
}

function until(what, why, seconds = SECONDS) {
  return new Promise((resolve, reject) => {
    const end = Date.now() + seconds * 1000;
    const look = () => {
      if (what()) resolve();
      else if (Date.now() > end) reject(new Error(why()));
      else setTimeout(look, 20);
    };
    look();
  });
}

class Member {
  constructor(a, suffix = "") {
    this.a = a;
    this.rows = [];
    this.holds = -1;
    this.consumer = kafka(a, suffix).consumer({
      // kafkajs has no way without a group
      groupId: a.group || `${a.topic}.none.${process.pid}`, sessionTimeout: 10000,
      heartbeatInterval: 300, maxWaitTimeInMs: 200,
      readUncommitted: a.isolation !== "read_committed",
    });
    this.consumer.on("consumer.group_join", ({ payload: joined }) => {
      this.holds = (joined.memberAssignment[a.topic] || []).length;
    });
    // After most crashes it starts again by itself.
    this.consumer.on("consumer.crash", ({ payload: crash }) => {
      if (!crash.restart) this.crash = crash.error;
    });
  }

  async start() {
    await this.consumer.connect();
    await this.consumer.subscribe({ topic: this.a.topic, fromBeginning: true });
    await this.consumer.run({
      eachMessage: async ({ topic, partition, message }) => {
        this.rows.push(row(topic, partition, Number(message.offset), message));
      },
    });
  }

  async holding(partitions) {
    await until(() => this.holds === partitions, () => `holds ${this.holds}, not ${partitions}`);
  }

  async stop() {
    await this.consumer.stop();
    await this.consumer.disconnect();
  }
}

async function consume(a) {
  const member = new Member(a);
  const count = Number(a.count || 60);
  try {
    await member.start();
    const seconds = Number(a.seconds || SECONDS);
    await until(() => member.rows.length >= count || member.crash, () => "", seconds).catch(() => {});
  } finally {
    await member.stop();
  }
  if (member.crash) throw member.crash;
  return { consumed: member.rows };
}

async function rebalance(a) {
  const first = new Member(a, "-1");
  const second = new Member(a, "-2");
  await first.start();
  await first.holding(2);
  await second.start();
  await second.holding(1);
  await first.holding(1);
  await new Promise((resolve) => setTimeout(resolve, 800)); // heartbeats of a group at rest
  await second.stop();
  await first.holding(2);
  await first.stop();
  return { consumed: first.rows.concat(second.rows), held: [[2, 1, 2], [1]] };
}

async function transact(a) {
  const each = Number(a.each || 10);
  const member = new Member({ ...a, topic: a.source });
  await member.start();
  await until(() => member.rows.length >= 5, () => "nothing to read");
  const producer = kafka(a).producer({
    transactionalId: a.id, idempotent: true, maxInFlightRequests: 1,
  });
  await producer.connect();
  const written = [];
  for (const [turn, end] of ["commit", "abort", "commit"].entries()) {
    const transaction = await producer.transaction();
    written.push(await send(transaction, a, turn * each, each));
    if (turn === 2) {
      const [topic, partition, offset] = member.rows[0];
      const partitions = [{ partition, offset: String(offset + 1) }];
      await transaction.sendOffsets({ consumerGroupId: a.group, topics: [{ topic, partitions }] });
    }
    await transaction[end]();
  }
  await producer.disconnect();
  await member.stop();
  const [first, aborted, last] = written;
  return { produced: first.concat(last), aborted, consumed: member.rows };
}

async function administer(a) {
  const admin = kafka(a).admin();
  await admin.connect();
  try {
    const topics = (a.topics || "").split(",").filter(Boolean);
    if (topics.length) {
      // It waits for leaders badly: a broker that does not know the topic yet is an error to it.
      const made = topics.map((topic) => ({ topic, numPartitions: 2 }));
      await admin.createTopics({ topics: made, waitForLeaders: false });
    }
    const result = { topics: (await admin.listTopics()).length, cluster: await admin.describeCluster() };
    if (a.describe) {
      result.described = (await admin.fetchTopicMetadata({ topics: [a.describe] })).topics.length;
      const resources = [{ type: ConfigResourceTypes.TOPIC, name: a.describe }];
      await admin.describeConfigs({ resources, includeSynonyms: false });
    }
    if (a.group) {
      result.groups = (await admin.listGroups()).groups.length;
      result.state = (await admin.describeGroups([a.group])).groups[0].state;
    }
    return result;
  } finally {
    await admin.disconnect();
  }
}

// A producer and a consumer that go on for seconds, while leaders move and brokers restart.
async function journey(a) {
  const count = Number(a.count || 400);
  const member = new Member(a, "-reader");
  await member.start();
  const producer = kafka(a).producer();
  await producer.connect();
  const written = new Set();
  const sent = [];
  for (let i = 0; i < count; i += 1) {
    const value = `r${i}`;
    written.add(value);
    sent.push(producer.send({ topic: a.topic, messages: [{ value }] }));
    await new Promise((resolve) => setTimeout(resolve, Number(a.pause || 50)));
  }
  await Promise.all(sent);
  await producer.disconnect();
  const read = () => new Set(member.rows.map((each) => each[5]));
  await until(() => read().size >= count, () => `read ${read().size} of ${count}`);
  await member.stop();
  const same = [...read()].every((value) => written.has(value));
  return { written: written.size, read: read().size, same };
}

const STEPS = {
  Produce: produce, Consume: consume, Rebalance: rebalance, Transact: transact,
  Administer: administer, Journey: journey,
};

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, ...pairs] = line.trim().split(/ +/);
    const a = Object.fromEntries(pairs.map((p) => [p.split("=", 1)[0], p.slice(p.indexOf("=") + 1)]));
    let answer;
    try {
      answer = await STEPS[name](a);
    } catch (failure) {
      console.error(failure);
      answer = { failed: String(failure) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
  process.exit(0);
}

main();
