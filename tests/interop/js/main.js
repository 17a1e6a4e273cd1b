// Produce numbered records and read them back in a group, with kafkajs. Prints what was read.
const { Kafka, CompressionTypes, logLevel } = require("kafkajs");

async function main() {
  const [brokers, topic, codec, count] = process.argv.slice(2);
  const kafka = new Kafka({
    clientId: "kafkajs", brokers: brokers.split(","), logLevel: logLevel.ERROR,
  });
  const producer = kafka.producer();
  await producer.connect();
  const messages = Array.from({ length: Number(count) }, (_, i) => ({ value: `${codec}-${i}` }));
  const compression = codec === "gzip" ? CompressionTypes.GZIP : CompressionTypes.None;
  await producer.send({ topic, compression, messages });
  await producer.disconnect();

  const consumer = kafka.consumer({ groupId: `${topic}.group` });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const read = [];
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`read ${read.length} of ${count}`)), 45000).unref();
    consumer.run({
      eachMessage: async ({ message }) => {
        read.push(message.value.toString());
        if (read.length >= Number(count)) resolve();
      },
    });
  });
  await consumer.disconnect();
  console.log(JSON.stringify(read));
}

main().catch((error) => { console.error(error); process.exit(1); });
