import { Kafka, logLevel, Partitioners } from "kafkajs";

const acks = Number(process.env.SHOP_ACKS ?? -1);

export async function sell(bootstrap, ...orders) {
  const kafka = new Kafka({ clientId: "shop", brokers: [bootstrap], logLevel: logLevel.NOTHING });
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  try {
    const messages = orders.map((value) => ({ value }));
    await producer.send({ topic: "orders", messages, acks });
  } finally {
    await producer.disconnect();
  }
}
