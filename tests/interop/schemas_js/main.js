// Writes what KafkaJS's serializers make of values: `node main.js BROKER REGISTRY`. Prints one line
// of JSON for each record: topic, the schema's id, and the value.
const { Kafka, logLevel } = require('kafkajs')
const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')

const AVRO = {
  type: 'record', name: 'Order', namespace: 'js',
  fields: [
    { name: 'id', type: 'string' },
    { name: 'note', type: ['null', 'string'], default: null },
    { name: 'kind', type: { type: 'enum', name: 'Kind', symbols: ['A', 'B'] } },
    { name: 'sizes', type: { type: 'array', items: 'int' } },
    { name: 'prices', type: { type: 'map', values: 'double' } },
  ],
}
const JSON_SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#', title: 'Item', type: 'object',
  properties: { count: { type: 'integer' }, none: { type: 'null' } }, required: ['count'],
}
const PROTO = `syntax = "proto3"; package js;
message Point { sint32 x = 1; string label = 2; repeated int64 many = 3; }`

async function main(broker, url) {
  const registry = new SchemaRegistry({ host: url })
  const kafka = new Kafka({ clientId: 'kafkajs', brokers: [broker], logLevel: logLevel.NOTHING })
  const producer = kafka.producer()
  await producer.connect()
  const stories = [
    ['js-avro', SchemaType.AVRO, JSON.stringify(AVRO), [
      { id: 'a', note: 'b', kind: 'B', sizes: [1, -2], prices: { x: 1.5 } },
      { id: '\u00fc', note: null, kind: 'A', sizes: [], prices: {} },
    ]],
    ['js-json', SchemaType.JSON, JSON.stringify(JSON_SCHEMA), [{ count: 3, none: null }, { count: 0 }]],
    ['js-proto', SchemaType.PROTOBUF, PROTO, [{ x: -7, label: 'p' }, { label: 'q' }]],
  ]
  for (const [topic, type, schema, values] of stories) {
    const { id } = await registry.register({ type, schema }, { subject: `${topic}-value` })
    for (const value of values) {
      const data = await registry.encode(id, value)
      await producer.send({ topic, messages: [{ value: data }] })
      console.log(JSON.stringify({ topic, id, value }))
    }
    await producer.send({ topic, messages: [{ key: 'gone', value: null }] })
  }
  await producer.disconnect()
}

main(...process.argv.slice(2)).catch(error => { console.error(error); process.exit(1) })
