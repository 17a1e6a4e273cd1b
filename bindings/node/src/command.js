// Where kafkascope is.
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";

import { KafkascopeError } from "./errors.js";

/**
 * The words that start kafkascope: those asked for, else what KAFKASCOPE says, else the program on
 * the PATH.
 */
export function locate(wished) {
  let words = typeof wished === "string" ? [wished] : [...(wished ?? [])];
  const told = process.env.KAFKASCOPE;
  if (words.length === 0 && told) words = existsSync(told) ? [told] : split(told);
  const where = words.length === 0 ? "" : ` at ${words[0]}`;
  if (words.length === 0) words = ["kafkascope"];
  if (isProgram(words[0])) return words;
  throw new KafkascopeError(
    `there is no kafkascope${where}: install it, or say where it is (KAFKASCOPE)`,
  );
}

const PART = /\\([^])|'([^']*)'|"((?:[^"\\]|\\[^])*)"|([^\s'"\\]+)|(\s+)|([^])/g;

/** The words of a command as in a shell, with quotes and backslashes alone. */
export function split(command) {
  const words = [];
  let word = null;
  for (const [, escaped, single, double, plain, blank] of command.matchAll(PART)) {
    const text = escaped ?? single ?? double?.replace(/\\(["\\$`\n])/g, "$1") ?? plain;
    if (text !== undefined) word = (word ?? "") + text;
    else if (blank === undefined) {
      throw new KafkascopeError("KAFKASCOPE: a quote or a backslash has no end");
    } else if (word !== null) {
      words.push(word);
      word = null;
    }
  }
  return word === null ? words : [...words, word];
}

function isProgram(name) {
  const places = name.includes("/")
    ? [name]
    : (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, name));
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK);
      return statSync(place).isFile();
    } catch {
      return false;
    }
  });
}
