// How a test ends, where its runner tells, and where its capture is then.
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/**
 * Calls `end(failed)` when a test is over: of node:test (`t`) or vitest (its context). `failed` says
 * how it ended.
 */
export function whenOver(test, end) {
  if (typeof test.after === "function") {
    test.after(() => end(!test.passed)); // older ones do not tell: then it is kept
  } else if (typeof test.onTestFinished === "function") {
    test.onTestFinished((result) => end((result?.task ?? test.task)?.result?.state === "fail"));
  } else {
    throw new TypeError("`test` is the context of a test: t of node:test, or that of vitest");
  }
}

/** Says something in the report of a test. */
export function report(test, text) {
  if (typeof test?.diagnostic === "function") test.diagnostic(text);
  else console.error(text);
}

/** Where a capture is when it is kept. */
export function place(path, folder, test) {
  if (!folder) return path;
  const title = test?.fullName ?? test?.task?.name ?? test?.name ?? "";
  const name = title.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "");
  // The folder of a capture has a name that no other has.
  const unique = basename(dirname(path)).replace(/^kafkascope-/, "");
  return join(resolve(folder), [name, unique].filter(Boolean).join("-") + ".pcapng");
}

/** Puts a capture there; false where nothing was captured. */
export function keep(path, target) {
  if (!existsSync(path)) return false;
  if (target !== path) {
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(path, target);
    discard(path);
  }
  return true;
}

/** Removes a capture and the folder that is its own. */
export function discard(path) {
  rmSync(dirname(path), { recursive: true, force: true });
}
