// JSON with numbers of 64 bits, which Kafka has: those that a number of JavaScript cannot hold are
// BigInts.
import { randomBytes } from "node:crypto";

const MARK = `~${randomBytes(6).toString("hex")}:`;
const LONG = /\d{16}/;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d{16,}(?=[\s,\]}]|$)/g;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, "g");

export function parse(text) {
  if (!LONG.test(text)) return JSON.parse(text);
  const marked = text.replace(TOKEN, (token) =>
    token[0] === '"' || Number.isSafeInteger(Number(token)) ? token : `"${MARK}${token}"`,
  );
  return JSON.parse(marked, (_, value) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

export function stringify(value) {
  let long = false;
  const text = JSON.stringify(value, (_, each) => {
    if (typeof each !== "bigint") return each;
    long = true;
    return MARK + each;
  });
  return long ? text.replace(MARKED, "$1") : text;
}
