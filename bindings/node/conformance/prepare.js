// Makes a folder in which these tests run, with the packages that they need and the binding itself:
// `node prepare.js FOLDER [CACHE]`. Packages are installed once into CACHE.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [folder, cache = join(folder ?? "", "packages")] = process.argv.slice(2).map((p) => resolve(p));
if (!folder) throw new Error("node prepare.js FOLDER [CACHE]");

const wanted = readFileSync(join(here, "package.json"));
const packages = join(cache, createHash("sha256").update(wanted).digest("hex").slice(0, 12));
if (!existsSync(packages)) {
  // At once, or not at all: another process may look for it.
  const made = `${packages}.${process.pid}`;
  mkdirSync(made, { recursive: true });
  cpSync(join(here, "package.json"), join(made, "package.json"));
  const words = ["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"];
  execFileSync("npm", words, { cwd: made, stdio: "inherit" });
  try {
    renameSync(made, packages);
  } catch {
    rmSync(made, { recursive: true, force: true }); // somebody else was faster
  }
}

const tests = join(folder, "conformance");
rmSync(tests, { recursive: true, force: true });
cpSync(here, tests, { recursive: true });
for (const [path, target] of [
  [join(folder, "node_modules"), join(packages, "node_modules")],
  [join(tests, "node_modules", "kafkascope"), dirname(here)],
]) {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true });
  symlinkSync(target, path);
}
