// What failures say of exchanges and findings.

const MOST_TOLD = 20;

/** Exchanges, each on a line behind a message. */
export function described(exchanges) {
  return shortened(exchanges.map((each) => `  ${describe(each)}`))
    .map((line) => `\n${line}`)
    .join("");
}

export function shortened(lines) {
  if (lines.length <= MOST_TOLD) return lines;
  return [...lines.slice(0, MOST_TOLD), `  and ${lines.length - MOST_TOLD} more`];
}

export function name(exchange) {
  const { api, api_version: version, client_id: client, number } = exchange;
  return `${api} v${version} of ${client} (number ${number})`;
}

export function errors(exchange) {
  return [...new Set(exchange.errors.map((error) => error.name))].sort();
}

function describe(exchange) {
  let told = name(exchange);
  for (const [what, names] of [
    ["topics", exchange.topics],
    ["groups", exchange.groups],
    ["transactional ids", exchange.transactional_ids],
  ]) {
    if (names.length > 0) told += `, ${what} ${shortened(names).join(" ")}`;
  }
  if (exchange.acks !== null) told += `, acks ${exchange.acks}`;
  if (exchange.records) told += `, ${plural(exchange.records, "record")}`;
  const wrong = errors(exchange);
  if (wrong.length > 0) return `${told}: ${wrong.join(", ")}`;
  return exchange.state === "answered" ? told : `${told}: ${exchange.state}`;
}

export function plural(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** How many there were of each; `between` stands behind the number. */
export function counted(names, between = "") {
  const counts = new Map();
  for (const each of names) counts.set(each, (counts.get(each) ?? 0) + 1);
  const told = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  return told.map(([each, count]) => `${count} ${between}${each}`).join(", ") || "none at all";
}

export function finding(each, texts) {
  const lines = [`${each.severity} ${each.name}: ${each.text}`];
  if (each.filter) lines.push(`    ls -Y '${each.filter}'`);
  for (const cause of each.because) {
    if (texts.has(cause)) lines.push(`    because: ${texts.get(cause)}`);
  }
  return lines.join("\n");
}
