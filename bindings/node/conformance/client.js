// What the steps ask of a client, done with kafkajs: pure JavaScript, and so the one of the living
// clients that installs wherever Node 20 does. (@confluentinc/kafka-javascript fetches a build of
// librdkafka when it is installed, @platformatic/kafka wants Node 22.)
import { setTimeout as sleep } from "node:timers/promises";

import { Kafka, logLevel, Partitioners } from "kafkajs";

const READ_MS = 30_000;

function kafka(bootstrap) {
  return new Kafka({ clientId: "kafkajs", brokers: [bootstrap], logLevel: logLevel.NOTHING });
}

function writer(bootstrap, options = {}) {
  return kafka(bootstrap).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    ...options,
  });
}

/** Makes a topic with one partition, and waits until it has a leader. */
export async function makeTopic(bootstrap, topic) {
  const admin = kafka(bootstrap).admin();
  await admin.connect();
  try {
    await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: false });
    for (const end = Date.now() + READ_MS; ; await sleep(50)) {
      const told = await admin.fetchTopicMetadata({ topics: [topic] }).catch((error) => error);
      if (told.topics?.[0].partitions.every((each) => each.leader >= 0)) return;
      if (Date.now() > end) throw new Error(`${topic} has no leader`, { cause: told });
    }
  } finally {
    await admin.disconnect();
  }
}

/** The name of the error that a broker gave, wherever kafkajs has it. */
function kafkaName(error) {
  for (let each = error; each; each = each.cause ?? each.originalError) {
    if (each.type && each.type !== "UNKNOWN") return each.type;
  }
  return null;
}

/** Gives how many were delivered, and the name of the error of the first. */
export async function produce(bootstrap, topic, values, acks = "all") {
  const producer = writer(bootstrap);
  await producer.connect();
  try {
    const messages = values.map((value) => ({ value }));
    await producer.send({ topic, messages, acks: acks === "all" ? -1 : acks });
    return { delivered: values.length, error: null };
  } catch (error) {
    return { delivered: 0, error: kafkaName(error) ?? error.message };
  } finally {
    await producer.disconnect();
  }
}

/** Values of a topic from its beginning, committed ones only, until so many have come. */
export async function consume(bootstrap, topic, count) {
  const consumer = kafka(bootstrap).consumer({
    groupId: `kafkajs-${topic}-${process.pid}-${Date.now()}`, // there is no way without a group
    maxWaitTimeInMs: 200,
  });
  const values = [];
  await consumer.connect();
  try {
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message }) => void values.push(message.value?.toString()),
    });
    for (const end = Date.now() + READ_MS; values.length < count && Date.now() < end; ) {
      await sleep(20);
    }
    return [...values];
  } finally {
    await consumer.disconnect();
  }
}

export async function transact(bootstrap, topic, values, commit) {
  const options = { transactionalId: `${topic}-writer`, idempotent: true, maxInFlightRequests: 1 };
  const producer = writer(bootstrap, options);
  await producer.connect();
  try {
    const transaction = await producer.transaction();
    await transaction.send({ topic, messages: values.map((value) => ({ value })) });
    await (commit ? transaction.commit() : transaction.abort());
  } finally {
    await producer.disconnect();
  }
}
